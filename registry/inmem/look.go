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
		return registry.Read{}, s.refused(ctx, err)
	}
	p, err := r.portion(opts.Stream, opts.LimitBytes)
	if err != nil {
		s.mu.Unlock()
		return registry.Read{}, err
	}
	v := r.viewLocked()
	if offset == registry.AtCursor {
		p.at = r.startLocked()
	} else {
		p.at[p.which], p.both = offset, false
	}
	s.mu.Unlock()
	read, seen, err := v.read(p)
	if err == nil && opts.Wait > 0 {
		read, v.mark, err = s.lookOn(ctx, r, v.mark, read, seen, p, opts.Wait)
	}
	if err != nil {
		return registry.Read{}, s.goneOr(ctx, err, caller, r)
	}
	s.written(ctx, v.mark)
	return read, nil
}

// lookOn repeats a look until it has something to show: a whole character beyond
// the offset, or the end of the task. A time-out shows what is. The mark is that of what is shown.
func (s *Service) lookOn(ctx context.Context, r *record, mark registry.Mark, read registry.Read, seen cursors, p portion, wait time.Duration) (registry.Read, registry.Mark, error) {
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
	shut := s.shutting()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for over := false; nothing(read) && !read.Snapshot.Status.Terminal() && !over; {
		var err error
		if over, err = s.awaitMore(ctx, r.grown(p, seen), settled, shut, timer); err != nil {
			return registry.Read{}, 0, err
		}
		s.mu.Lock()
		v := r.viewLocked()
		s.mu.Unlock()
		if read, seen, err = v.read(p); err != nil {
			return registry.Read{}, 0, err
		}
		mark = v.mark
	}
	return read, mark, nil
}

// growth is a stream that may have more than was seen.
type growth struct {
	stream registry.Stream
	seen   int64
	grown  <-chan struct{}
}

// grown watches the streams of a portion. A final output never grows.
func (r *record) grown(p portion, seen cursors) (watched [2]growth) {
	for i, stream := range r.streams() {
		if stream != nil && (p.both || i == p.which) {
			watched[i] = growth{stream, seen[i], stream.Grown(seen[i])}
		}
	}
	return watched
}

// more reports whether a stream that woke its watcher has more than was seen. If
// not it has ended, and is watched no longer: the end of the task is next.
func (g *growth) more() bool {
	written, _ := g.stream.Size()
	g.grown = nil
	return written > g.seen
}

// awaitMore blocks until there are more bytes than seen, or the task has
// settled. Over says that waiting any longer is no use.
func (s *Service) awaitMore(ctx context.Context, streams [2]growth, settled, shut <-chan struct{}, timer *time.Timer) (over bool, err error) {
	begun := s.begun()
	for more := false; !more; {
		select {
		case <-streams[stdout].grown:
			more = streams[stdout].more()
		case <-streams[stderr].grown:
			more = streams[stderr].more()
		case <-settled:
			return false, nil
		case <-timer.C:
			return true, nil
		case <-shut:
			return true, nil
		case <-begun:
			return true, nil
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	return false, nil
}
