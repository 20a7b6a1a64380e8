package inmem

import "slices"

// numbers gives out the ids of one kind. A number that was reserved for a start
// that failed was never shown to anybody and is given out again, lowest first;
// a published one never is.
type numbers struct {
	last    uint64
	free    []uint64 // ascending
	pending map[uint64]struct{}
	// shown is the largest published number.
	shown uint64
}

func newNumbers() *numbers { return &numbers{pending: map[uint64]struct{}{}} }

func (n *numbers) reserve() uint64 {
	var got uint64
	if len(n.free) > 0 {
		got = n.free[0]
		n.free = slices.Delete(n.free, 0, 1)
	} else {
		n.last++
		got = n.last
	}
	n.pending[got] = struct{}{}
	return got
}

// publish reports whether the counter rises.
func (n *numbers) publish(got uint64) bool {
	delete(n.pending, got)
	rises := got > n.shown
	n.shown = max(n.shown, got)
	return rises
}

func (n *numbers) giveBack(got uint64) {
	delete(n.pending, got)
	i, _ := slices.BinarySearch(n.free, got)
	n.free = slices.Insert(n.free, i, got)
}

// published reports whether a number was ever shown as an id.
func (n *numbers) published(x uint64) bool {
	if x == 0 || x > n.last {
		return false
	}
	if _, is := n.pending[x]; is {
		return false
	}
	_, free := slices.BinarySearch(n.free, x)
	return !free
}
