package inmem

import (
	"context"

	"afoot/registry"
)

// Input implements [registry.Tasks]. The producer is called without the lock, for
// as long as it blocks; that it comes back when the task ends is its promise.
func (s *Service) Input(ctx context.Context, caller registry.Caller, id registry.ID, data []byte, last bool) (registry.InputResult, error) {
	r, err := s.findLive(ctx, caller, id)
	if err != nil {
		return registry.InputResult{}, err
	}
	run, takes := r.run.(registry.Input)
	if !takes {
		return registry.InputResult{}, registry.Errorf(registry.CodeConflict, "task %s is %s and takes no input", id, r.status)
	}
	return input(ctx, run, data, last)
}

// Signal implements [registry.Tasks].
func (s *Service) Signal(ctx context.Context, caller registry.Caller, id registry.ID, name string) error {
	r, err := s.findLive(ctx, caller, id)
	if err != nil {
		return err
	}
	run, takes := r.run.(registry.Signaller)
	if !takes {
		return registry.Errorf(registry.CodeConflict, "task %s is %s and takes no signals", id, r.status)
	}
	return signal(run, name)
}

// target is a live task as somebody may act on it.
type target struct {
	run    registry.Run
	status registry.Status
}

func (s *Service) findLive(ctx context.Context, caller registry.Caller, id registry.ID) (target, error) {
	s.mu.Lock()
	r, err := s.findLocked(caller, id)
	if err != nil {
		s.mu.Unlock()
		return target{}, s.refused(ctx, err)
	}
	v := r.viewLocked()
	s.mu.Unlock()
	if v.snap.Status.Terminal() {
		s.written(ctx, v.mark)
		return target{}, registry.Errorf(registry.CodeConflict, "task %s has ended: it is %s", id, v.snap.Status)
	}
	return target{run: r.run, status: v.snap.Status}, nil
}

// input and signal contain the producer's panics.
func input(ctx context.Context, run registry.Input, data []byte, last bool) (result registry.InputResult, err error) {
	defer recovered(&err)
	return run.Input(ctx, data, last)
}

func signal(run registry.Signaller, name string) (err error) {
	defer recovered(&err)
	return run.Signal(name)
}
