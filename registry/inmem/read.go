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
		p = p.last(opts.Tail)
	}
	if err == nil && opts.Explicit && p.which == stderr {
		err = registry.Errorf(registry.CodeInvalid, "an explicit read can't choose stderr: its ack counts stdout; read both")
	}
	if err != nil {
		s.mu.Unlock()
		return nil, s.refused(ctx, err)
	}
	w := s.enlistLocked(r)
	s.mu.Unlock()
	s.dispatch()
	var bound time.Time
	if opts.Wait > 0 {
		bound = time.Now().Add(opts.Wait)
		err = s.awaitEnd(ctx, r, w, opts)
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
		return s.outOfTurn(ctx, r, w, p, opts)
	}
	return s.deliver(ctx, caller, r, w, p, opts)
}

// outOfTurn answers a wait whose bound came while another read was being
// answered: the state, and nothing that could be consumed.
func (s *Service) outOfTurn(ctx context.Context, r *record, w *waiter, p portion, opts registry.ReadOptions) (*registry.Delivery, error) {
	s.leave(r, w)
	s.mu.Lock()
	if r.viewLocked().promotes(opts) {
		if err := ctx.Err(); err != nil {
			s.mu.Unlock()
			return nil, err
		}
		s.letGoLocked(r)
	}
	v := r.viewLocked()
	p.at = r.startLocked()
	s.mu.Unlock()
	s.dispatch()
	s.written(ctx, v.mark)
	return registry.NewDelivery(v.bare(p), nil, nil), nil
}

// deliver makes the answer of a read that has its turn. A wait that was promised the end
// has it also when the record was removed meanwhile: then nothing is to be committed.
func (s *Service) deliver(ctx context.Context, caller registry.Caller, r *record, w *waiter, p portion, opts registry.ReadOptions) (*registry.Delivery, error) {
	s.mu.Lock()
	claimed := r.dismissLocked(w)
	promised := claimed && opts.Wait > 0
	if r.removed && !promised {
		_, err := s.findLocked(caller, r.snap.ID)
		r.passLocked()
		s.mu.Unlock()
		return nil, s.refused(ctx, err)
	}
	if h := r.handout; h != nil && !opts.Explicit {
		s.renewLocked(r, h)
	}
	v := r.viewLocked()
	p.at = r.startLocked()
	s.mu.Unlock()

	read, _, err := v.read(p)
	if err != nil && promised && s.wasRemoved(r) {
		read, err = v.bare(p), nil
	}
	if err != nil {
		s.giveUp(r, claimed)
		return nil, s.goneOr(ctx, err, caller, r)
	}
	if v.promotes(opts) {
		end, err := s.promote(ctx, r, &v, &read)
		if err != nil {
			s.giveUp(r, claimed)
			return nil, err
		}
		if end != nil {
			return s.deliver(ctx, caller, r, end, p, opts)
		}
	}
	s.written(ctx, v.mark)
	if opts.Explicit {
		return s.handOut(r, read, p.next(read), claimed), nil
	}
	read.Snapshot.Reported = read.Snapshot.Reported || claimed
	return registry.NewDelivery(read,
		func() error { return s.endTurn(r, func() { s.commitLocked(r, read.Snapshot, p.next(read), claimed) }) },
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

// commitLocked records a delivery that was written, with the sizes that it told.
func (s *Service) commitLocked(r *record, told registry.Snapshot, next cursors, terminal bool) {
	was := r.snap.Reported
	moved := !r.cursors.reach(next)
	r.acked = r.acked && next[stdout] <= r.cursors[stdout]
	r.cursors = r.cursors.further(next)
	r.toldLocked(told)
	if terminal {
		s.reportLocked(r)
	}
	if moved || was != r.snap.Reported {
		s.keepLocked(r)
	}
	if terminal {
		s.dropClaimLocked(r)
	}
	if h := r.handout; h != nil && r.cursors.reach(h.next) && (terminal || !h.terminal) {
		s.dropHandoutLocked(r)
	}
}

// endTurn applies what became of a delivery and lets the next read answer. It does not
// wait until that is written: the caller has its answer.
func (s *Service) endTurn(r *record, apply func()) error {
	s.mu.Lock()
	if !r.removed {
		apply()
	}
	r.passLocked()
	s.idleLocked(r)
	mark := r.mark
	s.mu.Unlock()
	s.aside(mark)
	return nil
}
