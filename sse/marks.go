package sse

import (
	"cmp"
	"slices"
)

// mark is what has to survive of a log that holds nothing.
type mark struct {
	// last is the newest number given, evicted the highest one that was evicted.
	last, evicted uint64
}

// everySession is the name under which a journal keeps the floor. No session is
// called so.
const everySession = ""

// maxMarks is how many sessions that hold nothing are remembered one by one.
const maxMarks = 10_000

// unmarkLocked gives the mark from which a session goes on, and whether it was
// remembered; otherwise that is the floor.
func (h *Hub) unmarkLocked(id string) (m mark, found bool) {
	m, found = h.marks[id]
	if !found {
		return h.floor, false
	}
	delete(h.marks, id)
	return m, true
}

// markLocked remembers the mark of a session that holds nothing. Up to the floor
// there is nothing to remember.
func (h *Hub) markLocked(id string, m mark) {
	if m.last > h.floor.last {
		h.marks[id] = m
		h.foldLocked()
	}
}

// foldLocked keeps the marks within their bound: the floor takes the place of
// the half with the lowest numbers. No number below the floor is given any more,
// so that none comes twice, and ids below it are answered with a gap.
func (h *Hub) foldLocked() {
	if len(h.marks) <= maxMarks {
		return
	}
	type marked struct {
		id   string
		last uint64
	}
	all := make([]marked, 0, len(h.marks))
	for id, m := range h.marks {
		all = append(all, marked{id, m.last})
	}
	slices.SortFunc(all, func(a, b marked) int { return cmp.Compare(a.last, b.last) })
	floor := all[len(all)/2].last
	var folded []string
	for _, m := range all {
		if m.last <= floor {
			folded = append(folded, m.id)
			delete(h.marks, m.id)
		}
	}
	h.floor = mark{last: floor, evicted: floor}
	if j := h.cfg.Journal; j != nil {
		j.Mark(everySession, floor, floor)
		j.Forget(folded...)
	}
}
