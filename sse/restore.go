package sse

import (
	"context"
	"fmt"
	"time"
)

// OpenHub makes an open hub that goes on where the one before it on the same
// journal ended, however that was. Without a journal it is [NewHub]. An error
// means that the journal could not be read.
func OpenHub(ctx context.Context, cfg Config) (*Hub, error) {
	j := cfg.Journal
	if j == nil {
		return NewHub(cfg), nil
	}
	rows, marks, err := j.Load(ctx)
	if err != nil {
		return nil, fmt.Errorf("sse: load the notices: %w", err)
	}
	if cfg.Epoch == "" {
		cfg.Epoch = j.Epoch()
	}
	cfg = cfg.withDefaults()
	if cfg.Epoch != j.Epoch() {
		j.SetEpoch(cfg.Epoch) // kept before any notice of this life, so before any id is shown
	}
	h := newHub(cfg)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.restoreLocked(rows, marks)
	return h, nil
}

// restoreLocked takes over what a journal has kept.
func (h *Hub) restoreLocked(rows []NoticeRow, marks []SessionMark) {
	get := func(id string) *noticeLog {
		s := h.sessions[id]
		if s == nil {
			s = h.newSession(id, mark{})
			h.sessions[id] = s
		}
		return &s.log
	}
	for _, m := range marks {
		if m.Session == everySession {
			h.floor = mark{last: m.Last, evicted: m.Last}
			continue
		}
		l := get(m.Session)
		l.last, l.evicted, l.lost = m.Last, m.Evicted, m.Lost
	}
	for _, row := range rows {
		get(row.Session).restore(row)
	}
	now := time.Now()
	for id, s := range h.sessions {
		s.log.settle(now)
		if !s.log.empty() {
			continue
		}
		delete(h.sessions, id)
		if s.log.last > h.floor.last {
			h.marks[id] = s.log.mark
		} else {
			h.cfg.Journal.Forget(id)
		}
	}
	h.foldLocked()
	if len(h.sessions) > 0 {
		h.sweepLaterLocked()
	}
}
