package sse

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	fanout "github.com/r3labs/sse/v2"
)

// Hub holds the notice logs of all sessions and their open streams. Its methods
// are safe for concurrent use; but for [Hub.Serve] and [Hub.Close] none blocks
// on a subscriber. A hub must be closed.
type Hub struct {
	cfg    Config
	rules  rules
	fanout *fanout.Server

	mu       sync.Mutex
	sessions map[string]*session
	// marks has the sessions that hold nothing now but have given numbers before.
	marks map[string]mark
	// floor is where a session begins that is not remembered.
	floor   mark
	streams map[string]*stream
	feeds   map[*Feed]struct{}
	serial  uint64
	closed  bool
	// drained is closed once the hub is closed and its last stream has ended.
	drained chan struct{}
	// sweeper, when not nil, is due to evict what has aged.
	sweeper *time.Timer
	// changes gathers what concerns every session.
	changes window
	// maxStreams bounds the streams of a session.
	maxStreams atomic.Int64
}

// NewHub makes an open hub that keeps nothing beyond its life. With a journal its
// numbers could come twice, so that it panics; see [OpenHub].
func NewHub(cfg Config) *Hub {
	if cfg.Journal != nil {
		panic("sse: a hub with a journal is made by OpenHub")
	}
	return newHub(cfg.withDefaults())
}

func newHub(cfg Config) *Hub {
	h := &Hub{
		cfg:      cfg,
		sessions: make(map[string]*session),
		marks:    make(map[string]mark),
		streams:  make(map[string]*stream),
		feeds:    make(map[*Feed]struct{}),
		drained:  make(chan struct{}),
	}
	h.maxStreams.Store(int64(cfg.MaxStreamsPerSession))
	r := &h.rules
	r.size, r.most, r.age = cfg.LogSize, cfg.LogMax, cfg.LogAge
	r.journal, r.kept, r.parked, r.forgotten = cfg.Journal, h.kept, h.parked, h.forgotten
	h.fanout = fanout.NewWithCallback(h.subscribed, h.unsubscribed)
	h.fanout.BufferSize = 1
	h.fanout.AutoReplay, h.fanout.AutoStream = false, false
	h.fanout.SplitData = true
	h.fanout.Headers = map[string]string{"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
	return h
}

// Append adds a notice to a session's log and wakes its streams. It returns the
// notice's number: one more than that of the session's notice before. Without a
// session there is nobody to tell: nothing is kept, and the number is 0.
//
// With a journal no stream carries the notice before that has kept it; Append does
// not wait for that. A key that is kept already, pending or written, is not
// announced again: the number is that of the notice there.
func (h *Hub) Append(sessionID string, n Notice) (number uint64) {
	if sessionID == "" {
		return 0
	}
	n = n.normal()
	s := h.acquire(sessionID)
	defer h.release(s)
	number, streams := s.append(n)
	for _, c := range streams {
		c.step()
	}
	return number
}

// Withdraw takes back all notices of a key: they are neither delivered nor
// replayed any more. One that is on its way to a stream at this moment may still
// arrive.
func (h *Hub) Withdraw(sessionID, key string) {
	h.edit(sessionID, func(l *noticeLog) { l.withdraw(key) })
}

// DropOwner takes back the pending notices of an owner.
func (h *Hub) DropOwner(sessionID, owner string) {
	h.edit(sessionID, func(l *noticeLog) { l.dropOwner(owner) })
}

// Kept is a notice that a hub has, pending or for replay.
type Kept struct {
	Session, Key, Owner, Agent string
	Pending                    bool
}

// Kept gives all notices that there are, so that whoever knows what they are about
// can take back what is no longer true.
func (h *Hub) Kept() (all []Kept) {
	for _, s := range h.allSessions() {
		s.mu.Lock()
		for _, e := range s.log.entries {
			n := &e.notice
			all = append(all, Kept{Session: s.log.session, Key: n.Key, Owner: n.Owner, Agent: n.Agent, Pending: e.pending()})
		}
		s.mu.Unlock()
		h.release(s)
	}
	return all
}

// edit changes the log of a session. Streams that waited for that go on.
func (h *Hub) edit(sessionID string, change func(*noticeLog)) {
	s := h.lookup(sessionID)
	if s == nil {
		return
	}
	defer h.release(s)
	s.mu.Lock()
	change(&s.log)
	streams := s.streams
	s.mu.Unlock()
	for _, c := range streams {
		c.step()
	}
}

// Streams counts the open streams, feeds among them.
func (h *Hub) Streams() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.streams) + len(h.feeds)
}

// farewellTimeout bounds the writes of a closing hub's streams.
const farewellTimeout = time.Second

// Close refuses new streams, sends every open one a bye event with the reason,
// and returns when all have ended. A stream that does not take its bye within a
// second is cut. If ctx ends first, the streams that are left are cut at once and
// its error is returned. Close is idempotent; logs can still be added to. What was
// not carried, or not kept by the journal yet, is told after the next start, if
// the journal writes what is in its line before it ends.
func (h *Hub) Close(ctx context.Context, reason string) error {
	var feeds []*Feed
	h.mu.Lock()
	if !h.closed {
		h.closed = true
		feeds = slices.Collect(maps.Keys(h.feeds)) // no other follows
		h.drainedLocked()
	}
	if h.sweeper != nil {
		h.sweeper.Stop()
	}
	h.mu.Unlock()

	for _, f := range feeds {
		f.farewell(reason)
	}
	for _, c := range h.allStreams() {
		c.farewell(reason)
	}
	select {
	case <-h.drained:
		return nil
	case <-ctx.Done():
	}
	for _, c := range h.allStreams() {
		c.cut()
	}
	for _, f := range h.allFeeds() {
		f.cut()
	}
	return ctx.Err()
}

// Reopen takes new streams again after [Hub.Close] has returned: whoever was told bye may
// come back.
func (h *Hub) Reopen() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		return
	}
	h.closed, h.drained, h.sweeper = false, make(chan struct{}), nil
	if len(h.sessions) > 0 {
		h.sweepLaterLocked()
	}
}

// drainedLocked tells Close once the last stream of a closed hub is gone. No
// stream is added to a closed hub, so that this happens once.
func (h *Hub) drainedLocked() {
	if h.closed && len(h.streams)+len(h.feeds) == 0 {
		close(h.drained)
	}
}

func (h *Hub) allFeeds() []*Feed {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Keys(h.feeds))
}

func (h *Hub) allStreams() []*stream {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]*stream, 0, len(h.streams))
	for _, c := range h.streams {
		all = append(all, c)
	}
	return all
}
