package proc

import (
	"os"
	"slices"
	"strconv"
	"sync"
)

// youth is how many clock ticks an orphan has to show whose it is.
const youth = 10

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
		tree, sure := l.placedLocked(s)
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
		d, sure := l.placedLocked(s)
		if !s.dead && !sure {
			return nil, false
		}
		if !s.dead && d != nil {
			there[d] = true
		}
	}
	return there, true
}

// placedLocked gives the tree of an orphan, nil if it has none; not sure means that it
// was never looked at.
func (l *lineage) placedLocked(s stat) (d *descent, sure bool) {
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

// see learns from a look at all processes.
func (l *lineage) see(p *pass) {
	l.mu.Lock()
	defer l.mu.Unlock()
	look := l.sort(p)
	for d := range l.trees {
		for _, member := range d.own(p.sessions[d.sid]) {
			look.claim(member.PID, d)
		}
	}
	for pid, k := range l.known {
		if s, ok := look.alive[pid]; ok && s.start == k.start {
			look.claim(pid, k.tree)
		}
	}
	for _, s := range p.all {
		if _, ok := look.claimed[s.pid]; !ok && !s.dead && l.nets.reaper.orphan(s) {
			l.place(s, look)
		}
	}
	for pid, a := range l.aside {
		s, ok := look.alive[pid]
		if _, claimed := look.claimed[pid]; !ok || s.start != a.start || claimed {
			delete(l.aside, pid)
		}
	}
	clear(l.known)
	for d := range l.trees {
		d.last = nil // those who asked before have a slice of their own
	}
	for _, s := range slices.Backward(p.all) {
		if d := look.claimed[s.pid]; d != nil && !s.dead {
			l.known[s.pid] = kin{start: s.start, tree: d}
			d.last = append(d.last, s.member())
		}
	}
	l.enrolLocked()
}

// enrolLocked puts who is known on the host's roll.
func (l *lineage) enrolLocked() {
	roll := &l.nets.host.roll
	for d := range l.trees {
		roll.learn(&d.listed, d.last, d.reaped.Load())
	}
	roll.learn(&l.listed, l.straysLocked(), true)
}

// look is a pass, sorted.
type look struct {
	lineage  *lineage
	sessions map[int][]stat
	alive    map[int]stat
	children map[int][]stat
	claimed  map[int]*descent
	held     func() map[int]struct{}
}

func (l *lineage) sort(p *pass) *look {
	v := &look{
		lineage: l, sessions: p.sessions,
		alive: make(map[int]stat, len(p.all)), children: make(map[int][]stat), claimed: make(map[int]*descent),
		held: sync.OnceValue(pidfds),
	}
	for _, s := range p.all {
		if !s.dead {
			v.alive[s.pid] = s
			v.children[s.parent] = append(v.children[s.parent], s)
		}
	}
	return v
}

// claim gives a process to a tree, with everybody below it, and in the sessions that
// were made there.
func (v *look) claim(pid int, d *descent) {
	reaper := v.lineage.nets.reaper
	for todo := []int{pid}; len(todo) > 0; {
		pid, todo = todo[len(todo)-1], todo[:len(todo)-1]
		s, ok := v.alive[pid]
		if _, claimed := v.claimed[pid]; !ok || claimed || pid == reaper.self {
			continue
		}
		if _, open := v.lineage.trees[d]; !open {
			continue
		}
		v.claimed[pid] = d
		for _, child := range v.children[pid] {
			if child.start >= s.start { // else the number has changed hands during the look
				todo = append(todo, child.pid)
			}
		}
		if s.session != d.sid && s.session != reaper.session && s.session != 0 {
			for _, other := range v.sessions[s.session] {
				todo = append(todo, other.pid)
			}
		}
	}
}

// place finds the tree of an orphan that was never seen before.
func (l *lineage) place(s stat, v *look) {
	a, ok := l.aside[s.pid]
	ok = ok && a.start == s.start
	if ok && !a.stray {
		return
	}
	// Whoever leads its session may be a child that something else in this program
	// started; then all in it are that one's.
	if leader, there := v.alive[s.session]; !ok && there && l.nets.reaper.child(leader) {
		held := v.held()
		if _, ok := held[leader.pid]; ok || held == nil {
			if held != nil {
				l.aside[s.pid] = aside{Member: s.member()}
			}
			return
		}
	}
	d, sure := l.hinted(s)
	if d == nil && !sure && !ok {
		d = l.only(s)
	}
	if d != nil {
		v.claim(s.pid, d)
		return
	}
	// In the middle of an exec there is nothing to see yet.
	if ok || ticks() <= s.start+youth {
		return
	}
	l.aside[s.pid] = aside{Member: s.member(), stray: true}
	l.nets.host.logger.Warn("an orphan can't be told from which process tree it is", "pid", s.pid)
}

// hinted looks at an orphan for its tree. Sure says that its stamp or its mark told, be
// it of a tree that has ended.
func (l *lineage) hinted(s stat) (d *descent, sure bool) {
	if d, sure := l.stampedLocked(s); sure {
		return d, true
	}
	if mark, ok := markOf(s.pid); ok {
		for d, known := range l.trees {
			if known == mark {
				return d, true
			}
		}
		return nil, true
	}
	fds := "/proc/" + strconv.Itoa(s.pid) + "/fd/"
	for _, fd := range []string{"1", "2"} {
		link, err := os.Readlink(fds + fd)
		for d := range l.trees {
			if err == nil && slices.Contains(d.pipes, link) {
				return d, false
			}
		}
	}
	return nil, false
}

// only gives the one tree that was there when an orphan was born; nil if there were
// several.
func (l *lineage) only(s stat) (only *descent) {
	for d := range l.trees {
		if d.born <= s.start {
			if only != nil {
				return nil
			}
			only = d
		}
	}
	return only
}

// birth is what is known of a leader before it is there.
type birth struct {
	at    uint64
	mark  string
	pipes []string
	stamp uint64
}

// expect notes a birth that is about to be.
func expect(spec *Spec, stamp uint64) birth {
	b := birth{at: ticks(), stamp: stamp}
	for _, entry := range spec.Env {
		if len(entry) > len(markVariable) && entry[:len(markVariable)] == markVariable {
			b.mark = entry[len(markVariable):]
		}
	}
	for _, fd := range spec.Files[min(1, len(spec.Files)):min(3, len(spec.Files))] {
		if pipe := pipeOf(fd); pipe != "" && !slices.Contains(b.pipes, pipe) {
			b.pipes = append(b.pipes, pipe)
		}
	}
	return b
}
