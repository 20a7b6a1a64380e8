package inmem

import (
	"context"

	"afoot/registry"
)

// OpenLog implements [registry.Tasks].
func (s *Service) OpenLog(_ context.Context, caller registry.Caller, id registry.ID, stream string) (registry.RawLog, error) {
	s.mu.Lock()
	r, err := s.findLocked(caller, id)
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if r.stream == nil {
		return nil, registry.Errorf(registry.CodeConflict, "task %s has final output only, and no log", id)
	}
	chosen, err := r.chosen(stream)
	if err != nil {
		return nil, err
	}
	return chosen.Open()
}

// chosen gives the stream of that name.
func (r *record) chosen(name string) (registry.Stream, error) {
	switch name {
	case "", registry.StreamStdout:
		return r.stream, nil
	case registry.StreamStderr:
		if r.stderr != nil {
			return r.stderr, nil
		}
		return nil, registry.Errorf(registry.CodeInvalid, "task %s has one stream, and no stderr of its own", r.snap.ID)
	}
	return nil, registry.Errorf(registry.CodeInvalid, "stream must be stdout or stderr")
}
