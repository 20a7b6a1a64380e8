package inmem

import (
	"context"

	"afoot/registry"
)

// OpenLog implements [registry.Tasks].
func (s *Service) OpenLog(ctx context.Context, caller registry.Caller, id registry.ID, stream string) (registry.RawLog, error) {
	s.mu.Lock()
	r, err := s.findLocked(caller, id)
	s.mu.Unlock()
	if err != nil {
		return nil, s.refused(ctx, err)
	}
	if r.streams()[stdout] == nil {
		return nil, registry.Errorf(registry.CodeConflict, "task %s has final output only, and no log", id)
	}
	which, err := r.chosen(stream)
	if err != nil {
		return nil, err
	}
	log, err := r.streams()[which].Open()
	if err != nil {
		return nil, s.goneOr(ctx, err, caller, r)
	}
	return log, nil
}
