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
	var p portion
	if err == nil {
		p, err = r.portion(opts.Stream, opts.LimitBytes)
	}
	if err == nil && opts.Explicit && p.which == stderr {
		err = registry.Errorf(registry.CodeInvalid, "an explicit read can't choose stderr: its ack counts stdout; read both")
	}
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
		return s.outOfTurn(r, w, p), nil
	}
	return s.deliver(caller, r, w, p, opts.Explicit)
}

// outOfTurn answers a wait whose bound came while another read was being
// answered: the state, and nothing that could be consumed.
func (s *Service) outOfTurn(r *record, w *waiter, p portion) *registry.Delivery {
	s.leave(r, w)
	s.mu.Lock()
	v, at := r.viewLocked(), r.startLocked()
	s.mu.Unlock()
	z := v.sizes()
	read := registry.Read{Snapshot: v.sized(z), Offset: at[p.which], NextOffset: at[p.which], Dropped: z.dropped[p.which]}
	if p.both {
		read.Stderr = &registry.Piece{Offset: at[stderr], NextOffset: at[stderr], Dropped: z.dropped[stderr]}
	}
	return registry.NewDelivery(read, nil, nil)
}

// deliver makes the answer of a read that has its turn.
func (s *Service) deliver(caller registry.Caller, r *record, w *waiter, p portion, explicit bool) (*registry.Delivery, error) {
	s.mu.Lock()
	claimed := r.dismissLocked(w)
	if r.removed {
		_, err := s.findLocked(caller, r.snap.ID)
		r.turn.passLocked()
		s.mu.Unlock()
		return nil, err
	}
	if h := r.handout; h != nil && !explicit {
		s.renewLocked(r, h)
	}
	v := r.viewLocked()
	p.at = r.startLocked()
	s.mu.Unlock()

	read, _, err := v.read(p)
	if err != nil {
		s.giveUp(r, claimed)
		return nil, s.goneOr(err, caller, r)
	}
	if explicit {
		return s.handOut(r, read, p.next(read), claimed), nil
	}
	read.Snapshot.Reported = read.Snapshot.Reported || claimed
	return registry.NewDelivery(read,
		func() error { return s.endTurn(r, func() { s.commitLocked(r, p.next(read), claimed) }) },
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
func (s *Service) commitLocked(r *record, next cursors, terminal bool) {
	r.cursors = r.cursors.further(next)
	if terminal {
		s.reportLocked(r)
		s.dropClaimLocked(r)
	}
	if h := r.handout; h != nil && r.cursors.reach(h.next) && (terminal || !h.terminal) {
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
	s.idleLocked(r)
	s.mu.Unlock()
	s.dispatch()
	return nil
}
