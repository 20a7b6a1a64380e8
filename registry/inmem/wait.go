package inmem

import (
	"context"
	"slices"
	"time"
)

// waiter is a consuming read that waits for the end. Settlement promises its
// result to it: the waiter then holds a claim, whatever else happened.
type waiter struct {
	settled  chan struct{}
	promised bool
}

// awaitEnd blocks until r has settled, the time is over, ctx has ended or the
// service closes. Promised says that the caller holds a claim on the end. A
// cancelled wait is only an error when nothing was promised.
func (s *Service) awaitEnd(ctx context.Context, r *record, most time.Duration) (promised bool, err error) {
	w := &waiter{settled: make(chan struct{})}
	s.mu.Lock()
	if r.snap.Status.Terminal() || r.removed {
		s.mu.Unlock()
		return false, nil
	}
	r.waiters = append(r.waiters, w)
	r.blocked++
	s.mu.Unlock()

	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-w.settled:
	case <-timer.C:
	case <-s.closing:
	case <-ctx.Done():
		err = ctx.Err()
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	r.blocked--
	if w.promised {
		return true, nil
	}
	if i := slices.Index(r.waiters, w); i >= 0 {
		r.waiters = slices.Delete(r.waiters, i, i+1)
	}
	return false, err
}

// settledLocked gives a channel that is closed when r is terminal.
func (r *record) settledLocked() chan struct{} {
	ch := make(chan struct{})
	if r.snap.Status.Terminal() {
		close(ch)
	} else {
		r.looks = append(r.looks, ch)
	}
	return ch
}

// forgetLookLocked takes a channel of settledLocked back.
func (r *record) forgetLookLocked(ch chan struct{}) {
	if i := slices.Index(r.looks, ch); i >= 0 {
		r.looks = slices.Delete(r.looks, i, i+1)
	}
}

// turn lets consuming reads of one task answer one after another, in the order
// in which they had something to answer. Guarded by Service.mu.
type turn struct {
	taken bool
	queue []chan struct{}
}

// takeTurn blocks while another read of r is being answered.
func (s *Service) takeTurn(ctx context.Context, r *record) error {
	s.mu.Lock()
	if !r.turn.taken {
		r.turn.taken = true
		s.mu.Unlock()
		return nil
	}
	mine := make(chan struct{})
	r.turn.queue = append(r.turn.queue, mine)
	s.mu.Unlock()
	select {
	case <-mine:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(r.turn.queue, mine); i >= 0 {
		r.turn.queue = slices.Delete(r.turn.queue, i, i+1)
	} else {
		r.turn.passLocked() // it came in the same instant
	}
	return ctx.Err()
}

func (t *turn) passLocked() {
	if len(t.queue) == 0 {
		t.taken, t.queue = false, nil
		return
	}
	next := t.queue[0]
	t.queue = slices.Delete(t.queue, 0, 1)
	close(next)
}
