package sse

import (
	"slices"
	"sync"
	"time"
)

// session is a log with its streams. It exists while somebody uses it or its log
// holds something; otherwise its mark in the hub is all that is left.
type session struct {
	id string
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
		s = &session{id: id, log: noticeLog{mark: h.marks[id], size: h.cfg.LogSize, age: h.cfg.LogAge}}
		delete(h.marks, id)
		h.sessions[id] = s
		h.sweepLaterLocked()
	}
	s.uses++
	return s
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
	delete(h.sessions, s.id)
	if s.log.last > 0 {
		h.marks[s.id] = s.log.mark
	}
}

// append adds to the log; a stream that still wanted what had to go has lost its
// place.
func (s *session) append(n Notice) (number uint64, streams []*stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	number, evicted := s.log.append(n)
	if evicted != nil {
		s.lagLocked(evicted)
	}
	return number, s.streams
}

// expire evicts what has aged.
func (s *session) expire(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lagLocked(s.log.expire(now)...)
}

// lagLocked ends the streams that still wanted what was evicted. They have an
// event on its way, or somebody about to take a step for them, so that no other
// step is needed.
func (s *session) lagLocked(evicted ...*entry) {
	for _, c := range s.streams {
		if slices.ContainsFunc(evicted, c.cursor.wants) {
			c.byeLocked(ByeLagged)
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
	held := make([]*session, 0, len(h.sessions))
	for _, s := range h.sessions {
		s.uses++
		held = append(held, s)
	}
	h.mu.Unlock()
	now := time.Now()
	for _, s := range held {
		s.expire(now)
		h.release(s)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.sessions) > 0 {
		h.sweepLaterLocked()
	}
}
