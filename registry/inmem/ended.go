package inmem

import (
	"container/heap"

	"afoot/registry"
)

// ended are the ended tasks of a bucket. A task is in the heaps of its owner's
// bucket and of the total, unless it was taken out because it can't go just now.
type ended struct {
	count, unreported int
	// byReport holds the unreported ones and the reported ones, oldest end first.
	byReport [2]endedHeap
}

// The heaps of ended by what they hold, in the order in which tasks give way.
const (
	reportedOnes = iota
	unreportedOnes
)

// The places of a record in heaps: one of its owner's, and one of the total.
const (
	ownPlace = iota
	totalPlace
)

// endedHeap is a [heap.Interface]. Each record knows its place in it, counted from
// one, so that it can be taken out.
type endedHeap struct {
	of      []*record
	account int // ownPlace or totalPlace
}

func (h *endedHeap) Len() int { return len(h.of) }

func (h *endedHeap) Less(i, j int) bool {
	a, b := h.of[i], h.of[j]
	if a.snap.finishedAt != b.snap.finishedAt {
		return a.snap.finishedAt < b.snap.finishedAt
	}
	return a.seq < b.seq
}

func (h *endedHeap) Swap(i, j int) {
	h.of[i], h.of[j] = h.of[j], h.of[i]
	h.of[i].places[h.account], h.of[j].places[h.account] = int32(i)+1, int32(j)+1
}

// Push is part of [heap.Interface].
func (h *endedHeap) Push(x any) {
	r := x.(*record) //nolint:forcetypeassert // this file alone pushes
	h.of = append(h.of, r)
	r.places[h.account] = int32(len(h.of))
}

// Pop is part of [heap.Interface].
func (h *endedHeap) Pop() any {
	last := len(h.of) - 1
	r := h.of[last]
	h.of[last] = nil
	h.of = h.of[:last]
	r.places[h.account] = 0
	return r
}

// first is the oldest one, nil if there is none.
func (h *endedHeap) first() *record {
	if len(h.of) == 0 {
		return nil
	}
	return h.of[0]
}

// heapOf chooses the heap of a bucket that a record belongs into.
func (e *ended) heapOf(r *record) *endedHeap {
	if r.snap.Reported {
		return &e.byReport[reportedOnes]
	}
	return &e.byReport[unreportedOnes]
}

// surplus is the next one that has to go so that most are left: a reported one, and
// an unreported one only when they alone are too many.
func (e *ended) surplus(most int) *record {
	if e.count <= most {
		return nil
	}
	if r := e.byReport[reportedOnes].first(); r != nil {
		return r
	}
	if e.unreported > most {
		return e.byReport[unreportedOnes].first()
	}
	return nil
}

// tooMany reports whether r is one of too many.
func (e *ended) tooMany(r *record, most int) bool {
	return e.count > most && (r.snap.Reported || e.unreported > most)
}

func (s *Service) accountsLocked(r *record) [2]*ended {
	return [2]*ended{ownPlace: &s.roomLocked(r.agent).ended, totalPlace: &s.total.ended}
}

// countEndedLocked counts a record that has ended in or out.
func (s *Service) countEndedLocked(r *record, delta int) {
	for _, e := range s.accountsLocked(r) {
		e.count += delta
		if !r.snap.Reported {
			e.unreported += delta
		}
	}
}

// putLocked puts an ended record among those that can go. takeLocked is its
// opposite. Neither does anything twice.
func (s *Service) putLocked(r *record) {
	for account, e := range s.accountsLocked(r) {
		if r.places[account] == 0 {
			h := e.heapOf(r)
			h.account = account
			heap.Push(h, r)
		}
	}
}

func (s *Service) takeLocked(r *record) {
	for account, e := range s.accountsLocked(r) {
		if at := r.places[account]; at > 0 {
			heap.Remove(e.heapOf(r), int(at)-1)
		}
	}
}

// markReportedLocked moves a record from the unreported ones to the reported ones,
// if it has ended.
func (s *Service) markReportedLocked(r *record, next registry.Snapshot) {
	if !r.snap.status.terminal() {
		s.setStatusLocked(r, next)
		return
	}
	among := r.places[ownPlace] > 0
	s.takeLocked(r)
	s.countEndedLocked(r, -1)
	s.setStatusLocked(r, next)
	s.countEndedLocked(r, 1)
	if among {
		s.putLocked(r)
	}
}
