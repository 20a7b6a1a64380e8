package sse

// Pending is a notice that no delivering stream has carried yet. Held says that it
// waits for [Hub.Due].
type Pending struct {
	Notice
	Held bool
}

// Pending gives the pending notices for an agent, the oldest first. What is on its way
// to a stream at this moment is among them.
func (h *Hub) Pending(sessionID, agent string) (all []Pending) {
	h.edit(sessionID, func(l *noticeLog) {
		for _, e := range l.entries {
			if e.pending() && e.notice.Agent == agent {
				all = append(all, Pending{Notice: e.notice, Held: e.held})
			}
		}
	})
	return all
}

// Epoch is the first part of every id.
func (h *Hub) Epoch() string { return h.cfg.Epoch }
