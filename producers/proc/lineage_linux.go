package proc

import "sync"

// lineage keeps, over all trees of a host, who belongs to which. It learns from each
// look at all processes: whoever has a known parent, or is in a session with somebody
// known, is known from then on, also when its parents are gone.
//
// Between two looks somebody may fork, have its child make a session, and exit. Then
// the child is an orphan of ours whose descent can't be seen any more. Its stamp says
// whose it is. For one that has got rid of that there are hints: the mark in its
// environment, the pipe it still writes to, or that only one tree was there when it was
// born. One that no hint is good for is a stray: it is told of in the log, and ended when
// no tree is left or the host closes.
type lineage struct {
	nets    *nets
	stamps  stamps
	tidying tidying

	mu sync.Mutex
	// numbers counts stamps. Stamped are the trees by stamp, also those that are being
	// born, which are nil.
	numbers uint64
	stamped map[uint64]*descent
	trees   map[*descent]string // with their marks
	known   map[int]kin
	// aside are orphans that belong to no tree: strays, and those that something else
	// in this program started.
	aside map[int]aside
	// listed are the strays' rows in the host's roll.
	listed entries
}

// kin is a process and its tree.
type kin struct {
	start uint64
	tree  *descent
}

type aside struct {
	Member
	stray bool
}

func newLineage(n *nets, stamps uint64) *lineage {
	l := &lineage{
		nets: n, stamped: make(map[uint64]*descent),
		trees: make(map[*descent]string), known: make(map[int]kin), aside: make(map[int]aside),
	}
	l.stamps.init(stamps)
	l.tidying.quit = make(chan struct{})
	return l
}

// expect gives a stamp to a tree that is about to be born.
func (l *lineage) expect() (stamp uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		l.numbers++
		stamp = l.stamps.of(l.numbers)
		if _, taken := l.stamped[stamp]; !taken {
			l.stamped[stamp] = nil
			return stamp
		}
	}
}

// unexpect takes back a stamp that nobody was born with.
func (l *lineage) unexpect(stamp uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.stamped, stamp)
	l.tidyLocked()
}

// adopt casts the net over a tree that was just born.
func (l *lineage) adopt(g *group, birth birth) *descent {
	d := &descent{group: g, lineage: l, born: birth.at, pipes: birth.pipes, stamp: birth.stamp}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stamped[d.stamp] = d
	l.trees[d] = birth.mark
	return d
}

// disown forgets a tree. Nobody is left of it.
func (l *lineage) disown(d *descent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, open := l.trees[d]; !open {
		return
	}
	delete(l.trees, d)
	delete(l.stamped, d.stamp)
	d.last = nil
	for pid, k := range l.known {
		if k.tree == d {
			delete(l.known, pid)
		}
	}
	l.tidyLocked()
}

// knows tells that a process was seen below one of the trees, or as a stray.
func (l *lineage) knows(s stat) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k, ok := l.known[s.pid]; ok && k.start == s.start {
		return true
	}
	a, ok := l.aside[s.pid]
	return ok && a.start == s.start && a.stray
}

// left reports whether one of the orphans may be of that tree. Of a tree whose leader
// was reaped each member descends from an orphan, or is one.
func (l *lineage) left(d *descent) bool {
	orphans, err := l.nets.reaper.orphans()
	if err != nil && !d.released.Load() {
		return true
	}
	for _, s := range orphans {
		if s.dead {
			continue
		}
		l.mu.Lock()
		_, open := l.trees[d]
		tree, sure := l.treeOfLocked(s)
		l.mu.Unlock()
		if open && (tree == d || !sure) {
			return true
		}
	}
	return false
}

// empty asks for many trees with one list of the orphans.
func (l *lineage) empty(trees []*Tree) []bool {
	empty := make([]bool, len(trees))
	l.nets.sweep()
	there, ok := l.inhabited()
	if !ok {
		// Some are to be looked at first.
		l.nets.host.procs.look()
		if there, ok = l.inhabited(); !ok {
			return empty
		}
	}
	for i, tree := range trees {
		d, is := tree.net.(*descent)
		empty[i] = is && !there[d] && d.group.empty()
	}
	return empty
}

// inhabited gives the trees of all live orphans; not ok means that of one that can't be
// told yet.
func (l *lineage) inhabited() (there map[*descent]bool, ok bool) {
	orphans, err := l.nets.reaper.orphans()
	if err != nil {
		return nil, false
	}
	there = make(map[*descent]bool)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range orphans {
		d, sure := l.treeOfLocked(s)
		if !s.dead && !sure {
			return nil, false
		}
		if !s.dead && d != nil {
			there[d] = true
		}
	}
	return there, true
}

// treeOfLocked gives the tree of an orphan, nil if it has none; not sure means that it
// was never looked at.
func (l *lineage) treeOfLocked(s stat) (d *descent, sure bool) {
	if k, ok := l.known[s.pid]; ok && k.start == s.start {
		return k.tree, true
	}
	if a, ok := l.aside[s.pid]; ok && a.start == s.start {
		return nil, true
	}
	return l.stampedLocked(s)
}

// stampedLocked gives the tree of a stamp. Sure says that it is a stamp of this host; a
// tree that is being born, or has ended, is nil.
func (l *lineage) stampedLocked(s stat) (d *descent, sure bool) {
	stamp, ok := stampOf(s.pid)
	if !ok || !l.stamps.own(stamp) {
		return nil, false
	}
	return l.stamped[stamp], true
}
