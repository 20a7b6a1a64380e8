package sse

import "slices"

// Hold keeps the pending notices of a key back: no stream carries them until they
// are due again or withdrawn. One that was delivered, or is on its way to a
// delivering stream at this moment, stays as it is: due again under another number
// it would be told twice.
func (h *Hub) Hold(sessionID, key string) {
	h.edit(sessionID, func(l *noticeLog) { l.hold(key) })
}

// Due ends a hold: what is still pending of the key is carried behind everything
// that there is, under a new number, so that the numbers of a stream keep rising.
func (h *Hub) Due(sessionID, key string) {
	var due []Notice
	h.edit(sessionID, func(l *noticeLog) { due = l.unhold(key) })
	for _, n := range due {
		h.Append(sessionID, n)
	}
}

func (l *noticeLog) hold(key string) {
	for _, e := range l.entries {
		if e.notice.Key == key && e.pending() && e.flights == 0 {
			e.held = true
		}
	}
}

// unhold takes the held notices of a key out of the log.
func (l *noticeLog) unhold(key string) (due []Notice) {
	l.entries = slices.DeleteFunc(l.entries, func(e *entry) bool {
		if !e.held || e.notice.Key != key {
			return false
		}
		due = append(due, e.notice)
		return true
	})
	return due
}
