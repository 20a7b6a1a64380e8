package sse

import "slices"

// leaving is a notice that was pending and is an entry no more, but may be one for the
// journal. No stream passes over it before the journal knows better: behind a crash the
// notice would be pending again, and who resumes behind it would never hear of it.
type leaving struct {
	number uint64
	agent  string
	// call is the newest call of the journal before it left: with a later one of its session
	// kept it has left.
	call uint64
}

// leave notes what leaves the log, and reports whether streams have to wait for that. What
// the journal has kept as held comes under a new number in any case.
func (l *noticeLog) leave(entries []*entry) (wait bool) {
	if l.journal == nil {
		return false
	}
	for _, e := range entries {
		if e.pending() && !e.parked {
			l.leaving = append(l.leaving, leaving{number: e.number, agent: e.notice.Agent, call: l.calls.Load()})
			wait = true
		}
	}
	return wait
}

// left says that the journal has kept a call, and with it all that it was told before.
func (l *noticeLog) left(call uint64) {
	l.leaving = slices.DeleteFunc(l.leaving, func(g leaving) bool { return g.call < call })
}

// forgotten lets the streams pass over what the journal has removed.
func (h *Hub) forgotten(sessionID string, call uint64) {
	h.edit(sessionID, func(l *noticeLog) { l.left(call) })
}

// readyFor gives the newest number that the stream of a cursor may come to.
func (l *noticeLog) readyFor(c *cursor) uint64 {
	ready := l.ready
	for _, g := range l.leaving {
		if g.number > c.after && (c.agent == "" || c.agent == g.agent) {
			ready = min(ready, g.number)
		}
	}
	return ready
}
