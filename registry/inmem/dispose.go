package inmem

import (
	"context"
	"maps"
	"slices"
	"time"

	"afoot/registry"
)

// DisposeAgent implements [registry.Agents].
func (s *Service) DisposeAgent(ctx context.Context, caller registry.Caller, id string) error {
	s.mu.Lock()
	a, err := s.disposableLocked(caller, id)
	if err == nil {
		err = s.openLocked() // Close ends everything there is
	}
	if err != nil || a == nil {
		s.mu.Unlock()
		return s.refused(ctx, err)
	}
	s.disposeLocked(a, "agent disposed")
	begun := s.move.begun
	s.mu.Unlock()
	select {
	case <-a.disposed:
		return nil
	case <-begun:
		return errMoving()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// disposableLocked finds the agent to dispose; one whose disposal is under way is
// joined. A default agent that was never needed is nil: there is nothing to end.
func (s *Service) disposableLocked(caller registry.Caller, id string) (*agent, error) {
	if id == registry.DefaultAgent {
		mine := s.sessions[caller.Session]
		if mine == nil || caller.Session == "" {
			return nil, nil
		}
		if mine.standin != nil {
			return mine.standin, nil
		}
		for _, a := range slices.Backward(mine.agents) {
			if a.owner.Agent == registry.DefaultAgent {
				return a, nil // its disposal is under way
			}
		}
		return nil, nil
	}
	if a := s.agents[id]; a != nil && a.disposing && a.owner.Session == caller.Session {
		return a, nil
	}
	return s.agentLocked(registry.Caller{Session: caller.Session, Agent: id})
}

// disposeLocked begins the end of an owner, once. It goes on by itself.
func (s *Service) disposeLocked(a *agent, reason string) {
	if a.disposing {
		return
	}
	a.disposing = true
	s.keepEndingLocked(a)
	if mine := s.sessions[a.owner.Session]; mine != nil && mine.standin == a {
		mine.standin = nil // the next start begins a successor
	}
	if a.timer != nil {
		a.timer.Stop()
	}
	quiet := a.quietChan()
	s.disposals.Go(func() { s.dispose(a, quiet, reason) })
}

// dispose ends an owner's tasks, waits for them, removes its records, tells the
// listeners, and only then lets its callers go.
func (s *Service) dispose(a *agent, quiet <-chan struct{}, reason string) {
	bound := time.NewTimer(s.bound())
	defer bound.Stop()
	select {
	case <-quiet:
	case <-bound.C:
		s.cfg.Logger.Warn("a start did not return while its agent was disposed", "agent", a.owner.Agent)
	}
	for more := true; more; { // again for a start that returned meanwhile
		s.mu.Lock()
		mine := s.ownedLocked(a)
		s.mu.Unlock()
		s.teardown(mine, reason, false)
		s.mu.Lock()
		more = slices.ContainsFunc(s.ownedLocked(a), (*record).live)
		a.gone = !more
		s.mu.Unlock()
	}

	s.mu.Lock()
	mine := s.ownedLocked(a)
	s.removeAllLocked(a, mine)
	mark := s.rows.removals
	s.emitLocked(registry.ChangeOwnerGone, &record{agent: a})
	heard := make(chan struct{})
	s.events.pending = append(s.events.pending, event{mark: heard})
	s.mu.Unlock()
	s.dispatch()
	s.written(context.Background(), mark)
	for _, r := range mine {
		s.discard(r)
	}
	<-heard
	close(a.disposed)
}

func (s *Service) ownedLocked(a *agent) []*record {
	var out []*record
	for _, r := range s.sessionLocked(a.owner.Session).tasks {
		if r.agent == a {
			out = append(out, r)
		}
	}
	return out
}

// teardown cancels live tasks and waits until they have settled and nothing of
// the finished ones is left. What refuses, or takes longer than the bound, is
// failed by force.
func (s *Service) teardown(tasks []*record, reason string, shutdown bool) {
	var ends []<-chan struct{}
	for _, r := range tasks {
		s.mu.Lock()
		live := !r.snap.status.terminal()
		if live && shutdown {
			s.letGoLocked(r) // the call ends too, so the owner is told after the next start
		}
		ends = append(ends, r.settledLocked())
		s.mu.Unlock()
		if !live {
			if gone := s.stopLeftovers(r, reason); gone != nil {
				ends = append(ends, gone)
			}
			continue
		}
		if _, _, err := s.cancel(r, reason, shutdown, true); err != nil {
			s.forceFail(r, "cancel failed: "+err.Error(), shutdown)
		}
	}
	bound := time.NewTimer(s.bound())
	defer bound.Stop()
	for _, end := range ends {
		if !s.await(end, bound) {
			break
		}
	}
	for _, r := range tasks {
		s.forceFail(r, "did not end when it was stopped", shutdown)
	}
}

// await reports whether something ended within the bound, which begins anew if nothing
// could end meanwhile.
func (s *Service) await(end <-chan struct{}, bound *time.Timer) bool {
	for {
		select {
		case <-end:
			return true
		case <-bound.C:
		}
		if !s.stay() {
			return false
		}
		bound.Reset(s.bound())
	}
}

// forceFail settles the record alone, if it is still live. It does not claim that
// the work has stopped, and a later outcome changes nothing. One that was reported, and
// waits for something else, counts.
func (s *Service) forceFail(r *record, why string, shutdown bool) {
	s.stay()
	s.mu.Lock()
	l, orphaned := r.launch, false
	if r.live() {
		r.snap.Reported = r.snap.Reported || !shutdown
		o, at := registry.Outcome{Status: registry.StatusFailed, Detail: why + "; work may be orphaned"}, now()
		if orphaned = l.outcome == nil; !orphaned {
			o, at = l.end(), l.at
		}
		s.settleLocked(r, o, at)
	}
	s.mu.Unlock()
	s.dispatch()
	if orphaned {
		s.cfg.Logger.Warn("task failed by force, work may be orphaned", "task", r.snap.ID, "reason", why)
	}
}

// Close implements [registry.Service].
func (s *Service) Close(ctx context.Context) error {
	s.TakeBack()
	s.mu.Lock()
	if !s.shut {
		s.shut = true
		close(s.closing)
		s.stopRetentionLocked()
		quiet := s.total.quietChan()
		go s.shutdown(quiet)
	}
	s.mu.Unlock()
	select {
	case <-s.closed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Service) shutdown(quiet <-chan struct{}) {
	bound := time.NewTimer(s.bound())
	defer bound.Stop()
	select {
	case <-quiet:
	case <-bound.C:
		s.cfg.Logger.Warn("a start did not return while the daemon shut down")
	}
	s.mu.Lock()
	for _, a := range s.agents {
		if a.timer != nil {
			a.timer.Stop()
		}
	}
	all := slices.Collect(maps.Values(s.records))
	s.mu.Unlock()
	for len(all) > 0 { // again for a start that returned meanwhile
		s.teardown(all, registry.DetailShutdown, true)
		s.mu.Lock()
		all = slices.DeleteFunc(slices.Collect(maps.Values(s.records)), func(r *record) bool { return !r.live() })
		s.mu.Unlock()
	}
	s.disposals.Wait()
	s.sweeps.Wait()
	s.lockWritten()
	for _, r := range s.records {
		if h := r.handout; h != nil {
			h.stop() // an ack may still come: who asks for certainty gets it to the last moment
		}
	}
	close(s.closed) // under the lock: a late start sees it, or was seen
	s.mu.Unlock()
}
