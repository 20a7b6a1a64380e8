package sse

// Hold keeps the pending notices of a key back: no stream carries them until they
// are due again or withdrawn. One that was delivered, or that was ever on its way to a
// delivering stream, or may have been before this hub was opened, stays as it is: its client
// may have it, and due again under another number it would be told twice.
func (h *Hub) Hold(sessionID, key string) {
	h.edit(sessionID, func(l *noticeLog) { l.hold(key) })
}

// Unless tells the streams of what is answered otherwise, at once: they pass over notices
// of what was delivered, and wait at a pending one whose answer is on its way until
// [Hub.Hold], [Hub.Due] or [Hub.Withdraw] says what becomes of it. It is set before the
// first stream is opened; answered is called with locks held, and must neither block nor
// call the hub.
func (h *Hub) Unless(answered func(key string) (delivered, underway bool)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.rules.answered = answered
}

// Due ends a hold: what is still pending of the key is carried behind everything
// that there is, under a new number, so that the numbers of a stream keep rising.
//
// Streams go on in any case: one may have waited at a notice that is not held, as it was on
// its way to another stream.
func (h *Hub) Due(sessionID, key string) {
	h.edit(sessionID, func(l *noticeLog) { l.due(key) })
}

func (l *noticeLog) due(key string) {
	for _, e := range l.entries {
		e.unheld = e.unheld && e.notice.Key != key
	}
	for _, e := range l.unhold(key) {
		l.leave([]*entry{e})
		l.append(e.notice, e.number) // there is room: one has just gone
	}
}

func (l *noticeLog) hold(key string) {
	for _, e := range l.entries {
		if e.notice.Key != key || !e.pending() || e.held {
			continue
		}
		if e.unheld = e.flown; !e.unheld {
			l.park(e)
		}
	}
}

// park holds an entry, and has the journal keep that.
func (l *noticeLog) park(e *entry) {
	e.held = true
	if l.journal == nil {
		e.parked = true
		return
	}
	session, number, parked := l.session, e.number, l.parked
	l.journal.Held(session, number, func() { parked(session, number) })
}

// parked lets the streams pass over a notice that the journal has kept as held.
func (h *Hub) parked(sessionID string, number uint64) {
	h.edit(sessionID, func(l *noticeLog) {
		if i, found := l.find(number); found {
			l.entries[i].parked = true
		}
	})
}

// unhold takes the held notices of a key out of the log.
func (l *noticeLog) unhold(key string) (due []*entry) {
	return l.take(func(e *entry) bool { return e.held && e.notice.Key == key })
}
