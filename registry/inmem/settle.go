package inmem

import (
	"time"

	"afoot/registry"
)

// settle takes a run's report of its end. The first one counts; it is applied
// once the task is published and no cancel of it is under way.
func (s *Service) settle(l *launch, o registry.Outcome, broken error) {
	s.mu.Lock()
	if l.outcome != nil {
		s.mu.Unlock()
		return
	}
	kept := o.Kept(broken)
	l.outcome, l.at = &kept, now()
	s.askLastLocked(l)
	s.applyLocked(l)
	orphan := l.orphan
	s.mu.Unlock()
	s.dispatch()
	if orphan != nil {
		s.discard(&record{run: orphan})
	}
}

func (s *Service) applyLocked(l *launch) {
	if l.rec == nil || l.outcome == nil || l.asking || l.rec.cancelling > 0 {
		return
	}
	s.settleLocked(l.rec, l.end(), l.at)
}

// end is the outcome that was reported, and counts.
func (l *launch) end() registry.Outcome {
	o := *l.outcome
	if l.ended {
		o.Status, o.Detail = registry.StatusKilled, registry.DetailShutdown
	}
	return o
}

// settleLocked records the first terminal outcome: commit, release the waiters,
// then observers, and last the notice.
func (s *Service) settleLocked(r *record, o registry.Outcome, at time.Time) {
	// Who ended before its start was published did not end before it began.
	at = max(momentOf(at), r.snap.startedAt).time()
	next, first := r.snapshotLocked().Settled(o, at)
	if !first {
		return
	}
	if r.streams()[stdout] == nil {
		r.source.final = validText(o.Output)
	}
	s.setStatusLocked(r, next)
	s.endedLocked(r)
	s.roomLocked(r.agent).live--
	s.total.live--
	l := r.launch
	for _, w := range l.waiters {
		w.promised = true
		r.claims++
		close(w.settled)
	}
	for _, look := range l.looks {
		close(look)
	}
	l.waiters, l.looks = nil, nil
	s.keepLocked(r)
	r.launch = nil
	s.emitLocked(registry.ChangeSettled, r)
	s.announceLocked(r)
}

// reportLocked marks a task as reported and lets a pending notice be withdrawn. The
// caller keeps the record.
func (s *Service) reportLocked(r *record) {
	next, changed := r.snapshotLocked().MarkedReported()
	if !changed {
		return
	}
	s.markReportedLocked(r, next)
	s.emitLocked(registry.ChangeReported, r)
	s.idleLocked(r)
	if !r.live() {
		s.crowdedLocked(r)
	}
}

// Answered implements [registry.Tasks].
func (s *Service) Answered(id registry.ID) (delivered, underway bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.records[id]
	if r == nil || r.live() {
		return false, false
	}
	return r.snap.Reported, r.claims > 0
}

// claimLocked holds the notice for an answer that carries the end.
func (s *Service) claimLocked(r *record) {
	r.claims++
	if r.claims == 1 && r.announced && !r.snap.Reported {
		s.emitLocked(registry.ChangeHeld, r)
	}
}

// dropClaimLocked ends a claim; without another, an unreported end is due.
func (s *Service) dropClaimLocked(r *record) {
	r.claims--
	s.idleLocked(r)
	if r.claims > 0 || r.removed || r.snap.Reported {
		return
	}
	if r.announced {
		s.emitLocked(registry.ChangeDue, r)
		return
	}
	s.announceLocked(r)
}
