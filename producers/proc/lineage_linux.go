package proc

import (
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// youth is how many clock ticks an orphan has to show whose it is.
const youth = 10

// strayGrace is what orphans get that are nobody's, when the host closes.
const strayGrace = time.Second

// lineage keeps, over all trees of a host, who belongs to which. It learns from each
// look at all processes: whoever has a known parent, or is in a session with somebody
// known, is known from then on, also when its parents are gone.
//
// Between two looks somebody may fork, have its child make a session, and exit. Then
// the child is an orphan of ours whose descent can't be seen any more. Hints say whose
// it is: the mark in its environment, the pipe it still writes to, or that only one
// tree was there when it was born. One that no hint is good for is a stray: it is told
// of in the log, and ended when the host closes.
type lineage struct {
	nets *nets

	mu    sync.Mutex
	trees map[*descent]string // with their marks
	known map[int]kin
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

func newLineage(n *nets) *lineage {
	return &lineage{nets: n, trees: make(map[*descent]string), known: make(map[int]kin), aside: make(map[int]aside)}
}

// adopt casts the net over a tree that was just born.
func (l *lineage) adopt(g *group, birth birth) *descent {
	d := &descent{group: g, lineage: l, born: birth.at, pipes: birth.pipes}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trees[d] = birth.mark
	return d
}

// disown forgets a tree. Nobody is left of it.
func (l *lineage) disown(d *descent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.trees, d)
	d.last = nil
	for pid, k := range l.known {
		if k.tree == d {
			delete(l.known, pid)
		}
	}
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
		k, known := l.known[s.pid]
		a, seen := l.aside[s.pid]
		_, open := l.trees[d]
		l.mu.Unlock()
		if open && (known && k.start == s.start && k.tree == d ||
			(!known || k.start != s.start) && (!seen || a.start != s.start)) {
			return true
		}
	}
	return false
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
}

func (l *lineage) sort(p *pass) *look {
	v := &look{
		lineage: l, sessions: p.sessions,
		alive: make(map[int]stat, len(p.all)), children: make(map[int][]stat), claimed: make(map[int]*descent),
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
		held := pidfds()
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

// hinted looks at an orphan for its tree. Sure says that its mark told, be it of a tree
// that has ended.
func (l *lineage) hinted(s stat) (d *descent, sure bool) {
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

// endStrays ends those of whom nobody can tell whose they are: but they are ours. Who
// can't be ended is left after a while.
func (l *lineage) endStrays() {
	g := &group{host: l.nets.host, handle: -1}
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		for begun := time.Now(); time.Since(begun) < strayGrace; sleep(longestPause, nil, nil) {
			strays := l.strays()
			if len(strays) == 0 {
				return
			}
			for _, member := range strays {
				g.signalEach(member, sig)
			}
			l.nets.host.procs.look()
		}
	}
}

func (l *lineage) strays() []Member {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.straysLocked()
}

func (l *lineage) straysLocked() (members []Member) {
	for _, a := range l.aside {
		if a.stray {
			members = append(members, a.Member)
		}
	}
	return members
}

// birth is what is known of a leader before it is there.
type birth struct {
	at    uint64
	mark  string
	pipes []string
}

// expect notes a birth that is about to be.
func expect(spec *Spec) birth {
	b := birth{at: ticks()}
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
