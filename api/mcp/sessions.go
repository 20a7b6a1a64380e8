package mcp

import (
	"context"
	"fmt"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"afoot/registry"
)

// sessions are the MCP sessions that live.
type sessions struct {
	most, subscriptions int
	idle                time.Duration
	// end closes a session of the SDK in the background.
	end func(*sdk.ServerSession)

	mu   sync.Mutex
	byID map[string]*bound
}

// bound is an MCP session and who it belongs to.
type bound struct {
	owner   owner
	session *sdk.ServerSession
	// ctx ends with the MCP session.
	ctx    context.Context //nolint:containedctx // the life of the session
	cancel context.CancelFunc

	// The fields below are guarded by the mutex of sessions.
	requests int
	quiet    time.Time
	timer    *time.Timer
	uris     map[string]struct{}
}

func newSessions(cfg Config, end func(*sdk.ServerSession)) *sessions {
	return &sessions{most: cfg.MaxSessions, subscriptions: cfg.MaxSubscriptions, idle: cfg.Idle, end: end, byID: map[string]*bound{}}
}

// open makes an MCP session its opener's, whose request is under way. One that has too
// many loses the one that was silent longest.
func (s *sessions) open(who Who, session *sdk.ServerSession) (*bound, error) {
	b := &bound{owner: who.owner(), session: session, uris: map[string]struct{}{}, requests: 1}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	s.mu.Lock()
	var evicted *bound
	defer func() {
		s.mu.Unlock()
		s.finish(evicted)
	}()
	count, oldest := 0, ""
	for id, other := range s.byID {
		if other.owner.session != b.owner.session || other.owner.subject != b.owner.subject {
			continue
		}
		count++
		if other.requests == 0 && (oldest == "" || other.quiet.Before(s.byID[oldest].quiet)) {
			oldest = id
		}
	}
	if count >= s.most {
		if oldest == "" {
			b.cancel()
			err := registry.Errorf(registry.CodeLimitReached, "This session has %d MCP sessions with requests under way, as many as it may have (AFOOT_MAX_MCP_SESSIONS); end one of them.", count)
			err.Limit = "AFOOT_MAX_MCP_SESSIONS"
			return nil, err
		}
		evicted = s.takeLocked(oldest)
	}
	s.byID[session.ID()] = b
	return b, nil
}

// enter finds the MCP session of a request, if it is the caller's. Until leave is
// called it is not silent.
func (s *sessions) enter(id string, who Who) (b *bound, leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b = s.byID[id]
	if b == nil || b.owner != who.owner() {
		return nil, nil
	}
	b.requests++
	if b.timer != nil {
		b.timer.Stop()
	}
	return b, func() { s.leave(id, b) }
}

// leave ends a request of an MCP session, which may be silent from now on.
func (s *sessions) leave(id string, b *bound) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b.requests--
	if b.requests > 0 || s.byID[id] != b {
		return
	}
	b.quiet = time.Now()
	if b.timer == nil {
		b.timer = time.AfterFunc(s.idle, func() { s.expire(id, b) })
	} else {
		b.timer.Reset(s.idle)
	}
}

// expire ends a silent MCP session.
func (s *sessions) expire(id string, b *bound) {
	s.mu.Lock()
	var silent *bound
	if s.byID[id] == b && b.requests == 0 {
		silent = s.takeLocked(id)
	}
	s.mu.Unlock()
	s.finish(silent)
}

// remove ends an MCP session, and with it the requests that are under way in it.
func (s *sessions) remove(id string) {
	s.mu.Lock()
	b := s.takeLocked(id)
	s.mu.Unlock()
	s.finish(b)
}

// removeAll ends those that which chooses.
func (s *sessions) removeAll(which func(owner) bool) {
	s.mu.Lock()
	var taken []*bound
	for id, b := range s.byID {
		if which(b.owner) {
			taken = append(taken, s.takeLocked(id))
		}
	}
	s.mu.Unlock()
	s.finish(taken...)
}

func (s *sessions) takeLocked(id string) *bound {
	b := s.byID[id]
	delete(s.byID, id)
	if b != nil && b.timer != nil {
		b.timer.Stop()
	}
	return b
}

// finish ends MCP sessions that were taken out.
func (s *sessions) finish(taken ...*bound) {
	for _, b := range taken {
		if b != nil {
			b.cancel()
			s.end(b.session)
		}
	}
}

// count says how many there are.
func (s *sessions) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byID)
}

// listen notes that an MCP session wants to hear of a resource.
func (s *sessions) listen(b *bound, uri string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := b.uris[uri]; !known && len(b.uris) >= s.subscriptions {
		return fmt.Errorf("this MCP session has %d subscriptions, as many as it may have (AFOOT_MAX_MCP_SUBSCRIPTIONS); end some", s.subscriptions)
	}
	b.uris[uri] = struct{}{}
	return nil
}

func (s *sessions) unlisten(b *bound, uri string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(b.uris, uri)
}

// heard gives what an MCP session wants to hear of.
func (s *sessions) heard(b *bound) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	uris := make([]string, 0, len(b.uris))
	for uri := range b.uris {
		uris = append(uris, uri)
	}
	return uris
}
