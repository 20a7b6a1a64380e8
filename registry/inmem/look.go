package inmem

import (
	"context"
	"time"

	"afoot/registry"
)

// Look implements [registry.Tasks].
func (s *Service) Look(ctx context.Context, caller registry.Caller, id registry.ID, offset int64, opts registry.LookOptions) (registry.Read, error) {
	if offset < 0 && offset != registry.AtCursor {
		return registry.Read{}, registry.Errorf(registry.CodeInvalid, "offset must not be negative")
	}
	s.mu.Lock()
	r, err := s.findLocked(caller, id)
	if err != nil {
		s.mu.Unlock()
		return registry.Read{}, err
	}
	v := r.viewLocked()
	if offset == registry.AtCursor {
		offset = r.startLocked()
	}
	s.mu.Unlock()
	read, err := v.read(offset, opts.LimitBytes)
	if err != nil || opts.Wait <= 0 {
		return read, err
	}
	return s.lookOn(ctx, r, read, offset, opts)
}

// lookOn repeats a look until it has something to show: a whole character beyond
// the offset, or the end of the task. A time-out shows what is.
func (s *Service) lookOn(ctx context.Context, r *record, read registry.Read, offset int64, opts registry.LookOptions) (registry.Read, error) {
	s.mu.Lock()
	settled := r.settledLocked()
	r.blocked++
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		r.forgetLookLocked(settled)
		r.blocked--
	}()
	timer := time.NewTimer(opts.Wait)
	defer timer.Stop()
	for over := false; read.NextOffset == read.Offset && !read.Snapshot.Status.Terminal() && !over; {
		var err error
		if over, err = s.awaitMore(ctx, r, settled, timer, read.Snapshot.OutputBytes); err != nil {
			return registry.Read{}, err
		}
		s.mu.Lock()
		v := r.viewLocked()
		s.mu.Unlock()
		if read, err = v.read(offset, opts.LimitBytes); err != nil {
			return registry.Read{}, err
		}
	}
	return read, nil
}

// awaitMore blocks until there are more bytes than seen, or the task has
// settled. Over says that waiting any longer is no use.
func (s *Service) awaitMore(ctx context.Context, r *record, settled <-chan struct{}, timer *time.Timer, seen int64) (over bool, err error) {
	var grown <-chan struct{}
	if r.stream != nil {
		grown = r.stream.Grown(seen)
	}
	for {
		select {
		case <-grown:
			if written, _ := r.stream.Size(); written > seen {
				return false, nil
			}
			grown = nil // the output has ended; the end of the task is next
		case <-settled:
			return false, nil
		case <-timer.C:
			return true, nil
		case <-s.closing:
			return true, nil
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}
