package inmem

import (
	"context"
	"time"

	"afoot/registry"
)

// retention is the part of a Service that lets ended tasks go. Guarded by
// Service.mu, but for the turn.
type retention struct {
	// turn is held by whoever takes records out to let them go, one at a time: then
	// none of them asks for what another has in hand. It is held while foreign code
	// runs (Left, Discard, Room), and never together with the mutex.
	turn chan struct{}
	// over are the buckets that may hold too many.
	over map[*ended]struct{}
	// lingering are due records of which something still lives.
	lingering map[*record]struct{}
	// sweeping says that a sweep is under way or about to begin.
	sweeping bool
	// timer begins the next sweep, at the time of next; the zero time is none.
	timer *time.Timer
	next  time.Time
}

// lingerCheck is how often what lives of a due record is asked again.
const lingerCheck = time.Minute

func newRetention() retention {
	return retention{
		turn: make(chan struct{}, 1),
		over: map[*ended]struct{}{}, lingering: map[*record]struct{}{},
	}
}

// endedLocked takes a record that has just ended among those that can go.
func (s *Service) endedLocked(r *record) {
	s.countEndedLocked(r, 1)
	s.putLocked(r)
	s.crowdedLocked(r)
	s.armLocked()
}

// crowdedLocked has surplus tasks of a record's owner let go.
func (s *Service) crowdedLocked(r *record) {
	if e := &s.roomLocked(r.agent).ended; e.surplus(s.cfg.RetainCount) != nil {
		s.keep.over[e] = struct{}{}
		s.sweepLocked()
	}
}

// busyLocked reports whether an answer about an ended record, its notice or its report is
// on its way, or an answer was handed out just now.
func (r *record) busyLocked() bool {
	return r.untoldLocked() || r.telling || r.claims > 0 || r.answering || r.cancelling > 0 || r.handout != nil && r.handout.fresh
}

// untoldLocked reports whether nobody but the record knows of an end that is to be told:
// its notice still waits for the disk, or for its turn.
func (r *record) untoldLocked() bool { return r.announced && !r.heard && !r.snap.Reported }

// idleLocked puts a record back that was due while it was busy.
func (s *Service) idleLocked(r *record) {
	if r.due && !r.removed && !r.busyLocked() {
		r.due = false
		s.putLocked(r)
		s.crowdedLocked(r)
		s.sweepLocked()
	}
}

// sweepLocked begins a sweep, unless one is under way: that one looks again.
func (s *Service) sweepLocked() {
	if s.keep.sweeping || s.shut {
		return
	}
	s.keep.sweeping = true
	s.sweeps.Go(s.sweep)
}

// sweep lets everything go that is due.
func (s *Service) sweep() {
	select {
	case s.keep.turn <- struct{}{}:
		defer func() { <-s.keep.turn }()
	case <-s.closing:
		return
	}
	for {
		s.mu.Lock()
		r := s.nextDueLocked()
		if r == nil {
			s.keep.sweeping = false
			s.armLocked()
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		s.evict(r, s.dueLocked)
	}
}

// nextDueLocked takes the next due record out: by age, then by number.
func (s *Service) nextDueLocked() *record {
	for i := range s.total.ended.byReport {
		h := &s.total.ended.byReport[i]
		for r := h.first(); r != nil && s.agedLocked(r); r = h.first() {
			if s.takeIdleLocked(r) {
				return r
			}
		}
	}
	for e := range s.keep.over {
		for r := e.surplus(s.cfg.RetainCount); r != nil; r = e.surplus(s.cfg.RetainCount) {
			if s.takeIdleLocked(r) {
				return r
			}
		}
		delete(s.keep.over, e)
	}
	return nil
}

func (s *Service) agedLocked(r *record) bool {
	return s.life.age(r.snap.finishedAt) >= s.cfg.RetainAge
}

func (s *Service) dueLocked(r *record) bool {
	return s.agedLocked(r) || s.roomLocked(r.agent).ended.tooMany(r, s.cfg.RetainCount)
}

// takeIdleLocked takes a record out, and reports whether it can go. A busy one
// comes back when it is idle; one of an ending owner goes with it.
func (s *Service) takeIdleLocked(r *record) bool {
	s.takeLocked(r)
	if s.shut || r.agent != nil && r.agent.disposing {
		return false
	}
	r.due = r.busyLocked()
	return !r.due
}

// evict lets a record go that was taken out, unless it has something alive, is no
// longer due, or became busy meanwhile.
func (s *Service) evict(r *record, due func(*record) bool) {
	left := s.left(r)
	s.mu.Lock()
	gone := false
	var mark registry.Mark
	switch {
	case r.removed || s.shut || r.agent != nil && r.agent.disposing:
	case left:
		s.keep.lingering[r] = struct{}{}
	case !due(r):
		s.putLocked(r)
	case r.busyLocked():
		r.due = true
	default:
		gone = true
		s.removeLocked(r, registry.ChangeEvicted)
		mark = s.rows.removals
	}
	s.mu.Unlock()
	s.dispatch()
	if gone {
		s.written(context.Background(), mark)
		s.discard(r)
	}
}

// left asks whether something that outlived the run lives. A producer that can't
// tell keeps its record.
func (s *Service) left(r *record) (left bool) {
	run, may := r.run.(registry.Leftovers)
	if may {
		left = true
		s.contain("left", func() { left = run.Left() })
	}
	return left
}

// recallLocked has all that lingers asked again.
func (s *Service) recallLocked() {
	for r := range s.keep.lingering {
		s.putLocked(r)
		s.crowdedLocked(r)
	}
	clear(s.keep.lingering)
}

// armLocked sets the timer for the next record that comes of age.
func (s *Service) armLocked() {
	if s.shut {
		return
	}
	var next time.Time
	for i := range s.total.ended.byReport {
		if r := s.total.ended.byReport[i].first(); r != nil {
			next = earlier(next, now().Add(s.cfg.RetainAge-s.life.age(r.snap.finishedAt)))
		}
	}
	if len(s.keep.lingering) > 0 {
		next = earlier(next, now().Add(lingerCheck))
	}
	if next.IsZero() || !s.keep.next.IsZero() && !next.Before(s.keep.next) {
		return
	}
	s.keep.next = next
	if s.keep.timer == nil {
		s.keep.timer = time.AfterFunc(time.Until(next), s.wake)
	} else {
		s.keep.timer.Reset(time.Until(next))
	}
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

func (s *Service) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keep.next = time.Time{}
	s.recallLocked()
	s.sweepLocked()
}

// stopRetentionLocked ends retention with the service.
func (s *Service) stopRetentionLocked() {
	if s.keep.timer != nil {
		s.keep.timer.Stop()
	}
}
