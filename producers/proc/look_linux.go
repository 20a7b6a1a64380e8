package proc

import (
	"os"
	"slices"
	"strconv"
	"sync"
)

// youth is how many clock ticks an orphan has to show whose it is.
const youth = 10

// see learns from a look at all processes.
func (l *lineage) see(p *pass) {
	l.mu.Lock()
	defer l.mu.Unlock()
	look := &look{pass: p, lineage: l, claimed: make(map[int]*descent), held: sync.OnceValue(pidfds)}
	for d := range l.trees {
		for _, member := range d.own(p.sessions[d.sid]) {
			look.claim(member.PID, d)
		}
	}
	for pid, k := range l.known {
		if s, ok := look.alive(pid); ok && s.start == k.start {
			look.claim(pid, k.tree)
		}
	}
	for _, s := range p.all {
		if _, ok := look.claimed[s.pid]; !ok && !s.dead && l.nets.reaper.orphan(s) {
			l.assignLocked(s, look)
		}
	}
	for pid, a := range l.aside {
		s, ok := look.alive(pid)
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

// look is a pass, and whom it gave to which tree.
type look struct {
	*pass
	lineage *lineage
	claimed map[int]*descent
	held    func() map[int]struct{}
}

// claim, under lineage.mu, gives a process to a tree, with everybody below it, and in the sessions that
// were made there.
func (v *look) claim(pid int, d *descent) {
	reaper := v.lineage.nets.reaper
	for todo := []int{pid}; len(todo) > 0; {
		pid, todo = todo[len(todo)-1], todo[:len(todo)-1]
		s, ok := v.alive(pid)
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

// assignLocked finds the tree of an orphan that was never seen before.
func (l *lineage) assignLocked(s stat, v *look) {
	a, ok := l.aside[s.pid]
	ok = ok && a.start == s.start
	if ok && !a.stray {
		return
	}
	// Whoever leads its session may be a child that something else in this program
	// started; then all in it are that one's.
	if leader, there := v.alive(s.session); !ok && there && l.nets.reaper.child(leader) {
		held := v.held()
		if _, ok := held[leader.pid]; ok || held == nil {
			if held != nil {
				l.aside[s.pid] = aside{Member: s.member()}
			}
			return
		}
	}
	d, sure := l.hintedLocked(s)
	if d == nil && !sure && !ok {
		d = l.onlyLocked(s)
	}
	if d != nil {
		v.claim(s.pid, d)
		return
	}
	if !ok {
		l.strayLocked(s)
	}
}

// strayLocked puts an orphan of nobody aside. In the middle of an exec there is nothing to
// see of it yet, and who is gone by now was perhaps a leader, which looks like an orphan once
// it was reaped.
func (l *lineage) strayLocked(s stat) {
	now, there := statOf(s.pid)
	if !there || now.start != s.start || now.dead || ticks() <= s.start+youth {
		return
	}
	l.aside[s.pid] = aside{Member: s.member(), stray: true}
	l.nets.host.logger.Warn("an orphan can't be told from which process tree it is", "pid", s.pid)
}

// hintedLocked looks at an orphan for its tree. Sure says that its stamp or its mark told, be
// it of a tree that has ended.
func (l *lineage) hintedLocked(s stat) (d *descent, sure bool) {
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

// onlyLocked gives the one tree that was there when an orphan was born; nil if there were
// several.
func (l *lineage) onlyLocked(s stat) (only *descent) {
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
