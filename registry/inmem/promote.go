package inmem

import (
	"context"

	"afoot/registry"
)

// letGoLocked makes a foreground task a background one, if it lives.
func (s *Service) letGoLocked(r *record) {
	if !r.snap.Foreground || !r.live() {
		return
	}
	r.snap.Foreground = false
	s.keepLocked(r)
	s.emitLocked(registry.ChangePromoted, r)
}

// promotes reports whether a read with that view is to let go of its task.
func (v view) promotes(opts registry.ReadOptions) bool {
	return opts.Promote && v.snap.Foreground && !v.snap.Status.Terminal()
}

// promote lets go of a task for a live answer that is made but for this: it then tells
// the state of this moment. If the end has come since the view was taken, nobody may be
// told of it any more, so the answer has to be made anew, with the end that is claimed
// for it here. A caller who has left promotes nothing.
func (s *Service) promote(ctx context.Context, r *record, v *view, read *registry.Read) (end *waiter, err error) {
	defer s.dispatch()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case r.removed:
		return &waiter{}, nil
	case !r.live():
		return s.enlistLocked(r), nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	s.letGoLocked(r)
	told := read.Snapshot
	read.Snapshot, v.mark = r.snapshotLocked(), r.mark
	read.Snapshot.OutputBytes, read.Snapshot.DroppedBytes = told.OutputBytes, told.DroppedBytes
	return nil, nil
}
