package inmem

import (
	"context"
	"errors"
	"fmt"

	"afoot/registry"
)

// Kill implements [registry.Tasks].
func (s *Service) Kill(ctx context.Context, caller registry.Caller, id registry.ID, reason string) (registry.KillOutcome, registry.Snapshot, error) {
	s.mu.Lock()
	r, err := s.findLocked(caller, id)
	if err != nil {
		s.mu.Unlock()
		return "", registry.Snapshot{}, s.refused(ctx, err)
	}
	s.mu.Unlock()
	v, live, err := s.cancel(r, reason, false, false)
	if err != nil {
		return "", registry.Snapshot{}, err
	}
	if live {
		s.written(ctx, v.mark)
		return registry.KillRequested, v.fill(), nil
	}
	s.mu.Lock()
	if r.removed {
		_, err = s.findLocked(caller, id)
		s.mu.Unlock()
		return "", registry.Snapshot{}, s.refused(ctx, err)
	}
	if !r.snap.Reported {
		s.reportLocked(r)
		s.keepLocked(r)
	}
	v = r.viewLocked()
	s.mu.Unlock()
	s.dispatch()
	s.stopLeftovers(r, reason)
	s.written(ctx, v.mark)
	return registry.KillAlreadyFinished, v.fill(), nil
}

// cancel asks the producer first. If it refuses, nothing has changed; else the task is
// stopping, and reported unless the shutdown asks: then its end, if it was not known
// before, is the shutdown's. A settlement in between waits for the verdict. Nothing is
// asked, and live is false, when the task has ended. While the work is in other hands a
// patient caller waits, and another is refused.
func (s *Service) cancel(r *record, reason string, shutdown, patient bool) (v view, live bool, err error) {
	s.mu.Lock()
	for s.move.held && r.live() {
		over := s.move.over
		s.mu.Unlock()
		if !patient {
			return view{}, false, errMoving()
		}
		<-over
		s.mu.Lock()
	}
	if r.snap.status.terminal() {
		s.mu.Unlock()
		return view{}, false, nil
	}
	l := r.launch
	known := l.outcome != nil
	r.cancelling++
	s.move.asks.Add(1)
	s.mu.Unlock()
	err = s.ask(r, reason)
	s.mu.Lock()
	r.cancelling--
	if err == nil {
		was := r.snap
		l.ended = l.ended || shutdown && !known
		if !shutdown && !r.snap.Reported {
			next, _ := r.snapshotLocked().MarkedReported()
			s.markReportedLocked(r, next)
			if r.snap.status.word() != registry.StatusRunning {
				s.emitLocked(registry.ChangeReported, r)
			}
		}
		if next, changed := r.snapshotLocked().Stopped(); changed {
			s.setStatusLocked(r, next)
			s.emitLocked(registry.ChangeStopping, r)
		}
		if was.status != r.snap.status || was.Reported != r.snap.Reported {
			s.keepLocked(r)
		}
	}
	v = r.viewLocked()
	s.applyLocked(l)
	s.idleLocked(r)
	s.move.asks.Done()
	if errors.Is(err, registry.ErrEnded) {
		settled := r.settledLocked() // another cancel's verdict may still be due
		s.mu.Unlock()
		s.dispatch()
		<-settled
		return view{}, false, nil
	}
	s.mu.Unlock()
	s.dispatch()
	return v, true, err
}

// ask calls the producer's cancel; its panic is a refusal.
func (s *Service) ask(r *record, reason string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("producer panicked: %v", p)
		}
		var known *registry.Error
		if err != nil && !errors.As(err, &known) {
			err = registry.Wrap(registry.CodeUnavailable, err, "task %s could not be stopped: %v", r.snap.ID, err)
		}
	}()
	return r.run.Cancel(reason)
}

// stopLeftovers ends what outlived a finished run; the channel is closed when
// nothing is left, and nil when nothing was.
func (s *Service) stopLeftovers(r *record, reason string) (gone <-chan struct{}) {
	if run, may := r.run.(registry.Leftovers); may {
		s.contain("stop leftovers", func() { gone = run.StopLeftovers(reason) })
	}
	return gone
}

// Purge implements [registry.Tasks].
func (s *Service) Purge(ctx context.Context, caller registry.Caller, id registry.ID) error {
	s.mu.Lock()
	r, err := s.findLocked(caller, id)
	if err == nil && !r.snap.status.terminal() {
		err = registry.Errorf(registry.CodeConflict, "task %s is %s; stop it before purging it", id, r.snap.status.word())
	}
	if err != nil {
		s.mu.Unlock()
		return s.refused(ctx, err)
	}
	s.removeLocked(r, registry.ChangeRemoved)
	mark := s.rows.removals
	s.mu.Unlock()
	s.dispatch()
	if gone := s.stopLeftovers(r, "purged"); gone != nil {
		select {
		case <-gone:
		case <-s.begun(): // so it does after the exec
		case <-ctx.Done(): // the stopping goes on
		}
	}
	s.written(context.WithoutCancel(ctx), mark) // no record comes back without its output
	s.discard(r)
	return nil
}

// discard gives back what is stored for a removed record.
func (s *Service) discard(r *record) {
	s.contain("discard", func() {
		if err := r.run.Discard(); err != nil {
			s.cfg.Logger.Warn("output not removed", "task", r.snap.ID, "error", err)
		}
	})
}
