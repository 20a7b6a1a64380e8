package inmem

import (
	"context"
	"fmt"
)

// MakeRoom lets ended and reported tasks go, oldest first, until [Config.Room] is
// content or none is left. It blocks while it does so.
func (s *Service) MakeRoom() { _ = s.makeRoom(context.Background()) }

// makeRoom is MakeRoom, and gives Room's error when no task can go any more.
func (s *Service) makeRoom(ctx context.Context) error {
	if none, err := s.noRoom(); none == nil || err != nil {
		return err
	}
	select {
	case s.keep.turn <- struct{}{}:
		defer func() { <-s.keep.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	s.mu.Lock()
	s.recallLocked()
	s.mu.Unlock()
	for {
		none, err := s.noRoom()
		if none == nil || err != nil {
			return err
		}
		s.mu.Lock()
		r := s.oldestReportedLocked()
		if r == nil {
			s.armLocked() // for what lingers
			s.mu.Unlock()
			return none
		}
		s.mu.Unlock()
		s.evict(r, reportedLocked)
	}
}

// noRoom asks for room. none is its refusal; err is a panic, for which nothing has
// to go.
func (s *Service) noRoom() (none, err error) {
	if s.cfg.Room == nil {
		return nil, nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("room panicked: %v", p)
		}
	}()
	return s.cfg.Room(), nil
}

// oldestReportedLocked takes the one out that has to go first.
func (s *Service) oldestReportedLocked() *record {
	h := &s.total.ended.byReport[reportedOnes]
	for r := h.first(); r != nil && !s.shut; r = h.first() {
		if s.takeIdleLocked(r) {
			return r
		}
	}
	return nil
}

func reportedLocked(r *record) bool { return r.snap.Reported }
