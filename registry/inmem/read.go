package inmem

import (
	"context"
	"time"

	"afoot/registry"
)

// Read implements [registry.Tasks].
func (s *Service) Read(ctx context.Context, caller registry.Caller, id registry.ID, opts registry.ReadOptions) (*registry.Delivery, error) {
	s.mu.Lock()
	r, err := s.findLocked(caller, id)
	if err != nil {
		s.mu.Unlock()
		return nil, err
	}
	w := s.enlistLocked(r)
	s.mu.Unlock()
	s.dispatch()
	var bound time.Time
	if opts.Wait > 0 {
		bound = time.Now().Add(opts.Wait)
		err = s.awaitEnd(ctx, r, w, opts.Wait)
	}
	got := false
	if err == nil {
		got, err = s.takeTurn(ctx, r, bound)
	}
	if err != nil {
		s.leave(r, w)
		return nil, err
	}
	if !got {
		return s.outOfTurn(r, w), nil
	}
	return s.deliver(caller, r, w, opts)
}

// outOfTurn answers a wait whose bound came while another read was being
// answered: the state, and nothing that could be consumed.
func (s *Service) outOfTurn(r *record, w *waiter) *registry.Delivery {
	s.leave(r, w)
	s.mu.Lock()
	v, at := r.viewLocked(), r.startLocked()
	s.mu.Unlock()
	snap := v.fill()
	return registry.NewDelivery(registry.Read{Snapshot: snap, Offset: at, NextOffset: at, Dropped: snap.DroppedBytes}, nil, nil)
}

// deliver makes the answer of a read that has its turn.
func (s *Service) deliver(caller registry.Caller, r *record, w *waiter, opts registry.ReadOptions) (*registry.Delivery, error) {
	s.mu.Lock()
	claimed := r.dismissLocked(w)
	if r.removed {
		_, err := s.findLocked(caller, r.snap.ID)
		r.turn.passLocked()
		s.mu.Unlock()
		return nil, err
	}
	if h := r.handout; h != nil && !opts.Explicit {
		s.renewLocked(r, h)
	}
	v, cursor := r.viewLocked(), r.startLocked()
	s.mu.Unlock()

	read, err := v.read(cursor, opts.LimitBytes)
	if err != nil {
		s.giveUp(r, claimed)
		return nil, err
	}
	if opts.Explicit {
		return s.handOut(r, read, claimed), nil
	}
	read.Snapshot.Reported = read.Snapshot.Reported || claimed
	return registry.NewDelivery(read,
		func() error { return s.endTurn(r, func() { s.commitLocked(r, read.NextOffset, claimed) }) },
		func() { s.giveUp(r, claimed) }), nil
}

// giveUp ends a delivery that did not reach its caller.
func (s *Service) giveUp(r *record, claimed bool) {
	_ = s.endTurn(r, func() {
		if claimed {
			s.dropClaimLocked(r)
		}
	})
}

// commitLocked records a delivery that was written.
func (s *Service) commitLocked(r *record, next int64, terminal bool) {
	r.cursor = max(r.cursor, next)
	if terminal {
		s.reportLocked(r)
		s.dropClaimLocked(r)
	}
	if h := r.handout; h != nil && r.cursor >= h.next && (terminal || !h.terminal) {
		s.dropHandoutLocked(r)
	}
}

// endTurn applies what became of a delivery and lets the next read answer.
func (s *Service) endTurn(r *record, apply func()) error {
	s.mu.Lock()
	if !r.removed {
		apply()
	}
	r.turn.passLocked()
	s.mu.Unlock()
	s.dispatch()
	return nil
}

// read gives the piece of output from the cursor on, with the facts of the view.
// A view that is not terminal never gives the end of file.
func (v view) read(from, limit int64) (registry.Read, error) {
	if limit <= 0 || limit > registry.MaxPageBytes {
		limit = registry.MaxPageBytes
	}
	// Sizes first: whoever waits for more than OutputBytes must not miss bytes that
	// came after the page was cut.
	snap := v.fill()
	page, err := v.page(from, limit)
	if err != nil {
		return registry.Read{}, err
	}
	snap.OutputBytes = max(snap.OutputBytes, page.NextOffset)
	snap.DroppedBytes = max(snap.DroppedBytes, page.Dropped)
	return registry.Read{
		Snapshot: snap, Text: page.Text,
		Offset: page.Offset, NextOffset: page.NextOffset, Dropped: page.Dropped,
		EOF:     snap.Status.Terminal() && page.End,
		Skipped: max(0, page.Offset-from),
	}, nil
}
