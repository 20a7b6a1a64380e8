package sse

import (
	"slices"
	"sync"
	"time"
)

// session is a log with its streams. It exists while somebody uses it or its log
// holds something; otherwise its mark in the hub is all that is left.
type session struct {
	// uses counts those who hold the session; guarded by the hub's mutex.
	uses int

	// mu guards the log, the fields below, and those fields of the session's
	// streams that say so.
	mu  sync.Mutex
	log noticeLog
	// streams is replaced when it changes, never changed: a copy of the slice stays
	// good without the lock.
	streams []*stream
	// feeds counts the open feeds.
	feeds   int
	changes window
}

// acquire gives the session, made if need be, to be released after use.
func (h *Hub) acquire(id string) *session {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.sessions[id]
	if s == nil {
		from, known := h.unmarkLocked(id)
		s = h.newSession(id, from)
		s.log.unmarked = !known && from.last > 0
		h.sessions[id] = s
		h.sweepLaterLocked()
	}
	s.uses++
	return s
}

func (h *Hub) newSession(id string, from mark) *session {
	return &session{log: noticeLog{rules: &h.rules, session: id, mark: from, ready: from.last}}
}

// lookup is acquire for a session that exists; otherwise nil.
func (h *Hub) lookup(id string) *session {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.sessions[id]
	if s != nil {
		s.uses++
	}
	return s
}

// release ends a use. Whoever is last reads the log without its lock: all other
// uses have ended before, under this same mutex.
func (h *Hub) release(s *session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.uses--
	if s.uses > 0 || !s.log.empty() {
		return
	}
	delete(h.sessions, s.log.session)
	h.markLocked(s.log.session, s.log.mark)
}

// append adds to the log, unless the notice is kept already; a stream that still
// wanted what had to go has lost its place.
func (s *session) append(n Notice) (number uint64, streams []*stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if number, found := s.log.has(n.Key); found {
		s.log.due(n.Key) // whoever announces it again holds it no more
		return number, s.streams
	}
	number = s.log.append(n)
	s.lagLocked(s.log.trim(s.wantedLocked)...)
	return number, s.streams
}

// wantedLocked says that an open stream has not come to an entry yet.
func (s *session) wantedLocked(e *entry) bool {
	return slices.ContainsFunc(s.streams, func(c *stream) bool {
		return c.phase == phaseOpen && c.bye == "" && c.cursor.wants(e)
	})
}

// allSessions gives every session, each to be released.
func (h *Hub) allSessions() []*session {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]*session, 0, len(h.sessions))
	for _, s := range h.sessions {
		s.uses++
		all = append(all, s)
	}
	return all
}

// kept lets the streams go on to a notice that the journal has kept.
func (h *Hub) kept(sessionID string, number, call uint64) {
	h.edit(sessionID, func(l *noticeLog) {
		l.ready = max(l.ready, number)
		l.left(call)
	})
}

// expire evicts what has aged.
func (s *session) expire(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lagLocked(s.log.expire(now)...)
}

// step lets all streams go on.
func (s *session) step() {
	s.mu.Lock()
	streams := s.streams
	s.mu.Unlock()
	for _, c := range streams {
		c.step()
	}
}

// lagLocked ends the streams that still wanted what was evicted, unless it was the
// journal that held them up, or the notice that was held: those are told of the gap and go
// on, also where they have passed over what was held. They have an
// event on its way, or somebody about to take a step for them, so that no other
// step is needed.
func (s *session) lagLocked(evicted ...*entry) {
	for _, e := range evicted {
		for _, c := range s.streams {
			switch {
			case e.held && c.cursor.minds(e):
				c.gap = GapUndelivered
			case !c.cursor.wants(e):
			case e.number > s.log.ready:
				c.gap = GapUndelivered
			default:
				c.byeLocked(ByeLagged)
			}
		}
	}
}

// sweepLaterLocked makes sure that logs age although nobody touches them.
func (h *Hub) sweepLaterLocked() {
	if h.sweeper == nil && !h.closed {
		h.sweeper = time.AfterFunc(max(h.cfg.LogAge/24, time.Second), h.sweep)
	}
}

func (h *Hub) sweep() {
	h.mu.Lock()
	h.sweeper = nil
	h.mu.Unlock()
	now := time.Now()
	for _, s := range h.allSessions() {
		s.expire(now)
		s.step() // whoever lost its place waits for nobody
		h.release(s)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.sessions) > 0 {
		h.sweepLaterLocked()
	}
}
