package inmem

import (
	"context"
	"time"

	"afoot/registry"
)

// handout is what explicit reads gave out and no ack has settled yet.
type handout struct {
	// next is the largest offset of the main stream that was given out, with the
	// second stream's that goes with it.
	next cursors
	// terminal says that the end was given out with it.
	terminal bool
	// claim says that the handout holds the notice; hold ends that.
	claim bool
	hold  *time.Timer
	// standing counts the reads of this hold whose answer was not lost.
	standing int
	// fresh says that an ack is still to be expected: the record stays for it.
	fresh bool
	// turn counts the renewals, so that an old timer ends no newer hold; epoch counts
	// the holds, so that a lost answer ends no later one.
	turn, epoch uint64
}

// handOut makes the answer of an explicit read. The handout stands from now on:
// an ack may come before the server knows that its answer was written.
func (s *Service) handOut(r *record, read registry.Read, next cursors, claimed bool) *registry.Delivery {
	s.mu.Lock()
	if r.removed {
		s.mu.Unlock()
		over := func() { _ = s.endTurn(r, func() {}) }
		return registry.NewDelivery(read, func() error { over(); return nil }, over)
	}
	h := r.handout
	if h == nil {
		h = &handout{next: next}
		r.handout = h
	}
	h.addLocked(next)
	if claimed {
		h.terminal = true
		if h.claim {
			s.dropClaimLocked(r) // one claim is enough
		} else {
			h.claim, h.standing = true, 0
			h.epoch++
		}
	}
	h.standing++
	s.renewLocked(r, h)
	mine := h.epoch
	s.mu.Unlock()
	s.dispatch()
	return registry.NewDelivery(read,
		func() error { return s.endTurn(r, func() {}) },
		func() { _ = s.endTurn(r, func() { s.lostLocked(r, h, mine) }) })
}

// addLocked counts one more read in. Of two with the same main offset an ack can't
// tell which it means: the lesser piece of the second stream is the safe one.
func (h *handout) addLocked(next cursors) {
	switch {
	case next[stdout] > h.next[stdout]:
		h.next = next
	case next[stdout] == h.next[stdout]:
		h.next[stderr] = min(h.next[stderr], next[stderr])
	}
}

// stop ends the clock of the hold.
func (h *handout) stop() {
	if h.hold != nil {
		h.hold.Stop()
	}
}

// renewLocked begins the hold anew.
func (s *Service) renewLocked(r *record, h *handout) {
	h.turn++
	h.fresh = true
	h.stop()
	mine := h.turn
	h.hold = time.AfterFunc(registry.AckHold, func() {
		s.mu.Lock()
		if h.turn == mine {
			h.fresh = false
			s.releaseHoldLocked(r, h)
			s.idleLocked(r)
		}
		s.mu.Unlock()
		s.dispatch()
	})
}

// lostLocked takes an answer out of its hold, which ends with the last one. Then
// nobody knows of the end: an ack is meant for what was read before.
func (s *Service) lostLocked(r *record, h *handout, epoch uint64) {
	if h.epoch != epoch {
		return
	}
	if h.standing--; h.standing == 0 {
		h.terminal = false
		s.releaseHoldLocked(r, h)
	}
}

// releaseHoldLocked lets the notice go; what was given out can still be acked.
func (s *Service) releaseHoldLocked(r *record, h *handout) {
	if r.handout != h || !h.claim {
		return
	}
	h.claim = false
	s.dropClaimLocked(r)
}

// dropHandoutLocked forgets a handout and its hold.
func (s *Service) dropHandoutLocked(r *record) {
	h := r.handout
	if h == nil {
		return
	}
	r.handout = nil
	h.stop()
	if h.claim {
		s.dropClaimLocked(r)
	}
	s.idleLocked(r)
}

// Ack implements [registry.Tasks].
func (s *Service) Ack(ctx context.Context, caller registry.Caller, id registry.ID, next int64) error {
	s.mu.Lock()
	r, err := s.findLocked(caller, id)
	if err == nil {
		err = s.ackLocked(r, id, next)
	}
	var mark registry.Mark
	if err == nil {
		mark = r.mark
	}
	s.mu.Unlock()
	s.dispatch()
	s.written(ctx, mark)
	return s.refused(ctx, err)
}

func (s *Service) ackLocked(r *record, id registry.ID, next int64) error {
	h := r.handout
	switch {
	case next < 0:
		return registry.Errorf(registry.CodeInvalid, "nextOffset must not be negative")
	case next < r.cursors[stdout], h == nil && r.acked && next == r.cursors[stdout]:
		return nil
	case h == nil:
		return registry.Errorf(registry.CodeConflict, "task %s has no read that waits for an ack", id)
	case next > h.next[stdout]:
		return registry.Errorf(registry.CodeInvalid, "nextOffset %d lies beyond the %d that were handed out", next, h.next[stdout])
	}
	r.cursors[stdout], r.acked = next, true
	if next < h.next[stdout] {
		s.keepLocked(r)
		return nil
	}
	r.cursors[stderr] = max(r.cursors[stderr], h.next[stderr])
	if h.terminal {
		s.reportLocked(r)
	}
	s.keepLocked(r)
	s.dropHandoutLocked(r)
	return nil
}
