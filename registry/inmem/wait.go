package inmem

import (
	"context"
	"slices"
	"time"

	"afoot/registry"
)

// waiter is a consuming read on its way. While it is enlisted settlement promises
// its result to it: the read then holds a claim, whatever else happened.
type waiter struct {
	settled  chan struct{}
	promised bool
}

// enlistLocked makes a read one that settlement promises its result to. One that
// comes after the end claims it at once.
func (s *Service) enlistLocked(r *record) *waiter {
	w := &waiter{settled: make(chan struct{})}
	if r.snap.status.terminal() {
		w.promised = true
		close(w.settled)
		s.claimLocked(r)
	} else {
		r.launch.waiters = append(r.launch.waiters, w)
	}
	return w
}

// dismissLocked ends the enlistment and reports whether the read holds a claim.
func (r *record) dismissLocked(w *waiter) (claimed bool) {
	if l := r.launch; l != nil {
		if i := slices.Index(l.waiters, w); i >= 0 {
			l.waiters = slices.Delete(l.waiters, i, i+1)
		}
	}
	return w.promised
}

// leave ends a read that answers nothing.
func (s *Service) leave(r *record, w *waiter) {
	s.mu.Lock()
	if r.dismissLocked(w) {
		s.dropClaimLocked(r)
	}
	s.mu.Unlock()
	s.dispatch()
}

// shutting gives a channel that is closed when a wait that begins now has to answer with
// what is: when Close begins, or, after that, when it has ended all work. So nobody who
// asks again spins meanwhile.
func (s *Service) shutting() <-chan struct{} {
	select {
	case <-s.closing:
		return s.closed
	default:
		return s.closing
	}
}

// awaitEnd blocks until r has settled, the time is over, ctx has ended, or the
// service closes or is handed over. A cancelled wait is only an error when nothing was promised.
func (s *Service) awaitEnd(ctx context.Context, r *record, w *waiter, opts registry.ReadOptions) error {
	s.countBlocked(r, 1)
	defer s.countBlocked(r, -1)
	begun, shut := s.begun(), s.shutting()
	if opts.Promote {
		shut = s.closing // its call ends, and lets go of the task
	}
	timer := time.NewTimer(opts.Wait)
	defer timer.Stop()
	select {
	case <-w.settled:
	case <-timer.C:
	case <-shut:
	case <-begun:
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		if !w.promised {
			return ctx.Err()
		}
	}
	return nil
}

func (s *Service) countBlocked(r *record, delta int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.blocked += delta
}

// settledLocked gives a channel that is closed when r is terminal.
func (r *record) settledLocked() chan struct{} {
	ch := make(chan struct{})
	if r.snap.status.terminal() {
		close(ch)
	} else {
		r.launch.looks = append(r.launch.looks, ch)
	}
	return ch
}

// forgetLookLocked takes a channel of settledLocked back.
func (r *record) forgetLookLocked(ch chan struct{}) {
	if l := r.launch; l != nil {
		if i := slices.Index(l.looks, ch); i >= 0 {
			l.looks = slices.Delete(l.looks, i, i+1)
		}
	}
}

// queue has consuming reads of one task answer one after another, in the order
// in which they had something to answer. Guarded by Service.mu.
type queue struct{ waiting []chan struct{} }

// takeTurn blocks while another read of r is being answered: until ctx ends, or
// until the bound of a wait, which is the zero time for a read that does not wait.
// got is false when the bound came first.
func (s *Service) takeTurn(ctx context.Context, r *record, bound time.Time) (got bool, err error) {
	s.mu.Lock()
	if !r.answering || r.removed { // nobody would let it go
		r.answering = true
		s.mu.Unlock()
		return true, nil
	}
	mine := make(chan struct{})
	if r.queue == nil {
		r.queue = &queue{}
	}
	r.queue.waiting = append(r.queue.waiting, mine)
	s.mu.Unlock()
	var over <-chan time.Time
	if !bound.IsZero() {
		timer := time.NewTimer(time.Until(bound))
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-mine:
		return true, nil
	case <-over:
	case <-ctx.Done():
		err = ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !r.unqueueLocked(mine) && !r.removed {
		r.passLocked() // it came in the same instant
		s.idleLocked(r)
	}
	return false, err
}

// unqueueLocked takes a read out of the queue, and reports whether it was in it.
func (r *record) unqueueLocked(mine chan struct{}) bool {
	q := r.queue
	if q == nil {
		return false
	}
	i := slices.Index(q.waiting, mine)
	if i < 0 {
		return false
	}
	if q.waiting = slices.Delete(q.waiting, i, i+1); len(q.waiting) == 0 {
		r.queue = nil
	}
	return true
}

// dissolveLocked lets everybody go who waits for a turn of a removed record.
func (r *record) dissolveLocked() {
	if q := r.queue; q != nil {
		for _, next := range q.waiting {
			close(next)
		}
		r.queue = nil
	}
}

// passLocked gives the turn to the next in the queue.
func (r *record) passLocked() {
	if r.queue == nil {
		r.answering = false
		return
	}
	next := r.queue.waiting[0]
	r.unqueueLocked(next)
	close(next)
}
