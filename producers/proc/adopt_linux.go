package proc

import (
	"encoding/json"
	"fmt"
	"os"
)

// Adopt goes on with a process that was handed over before an exec. It is called once
// for each of them, before anything is started.
func (h *Host) Adopt(key uint64, onExit func()) (*Process, error) {
	p, err := h.claim(key)
	if err != nil {
		return nil, err
	}
	p.onExit = onExit
	if p.reaped.Load() {
		close(p.exited)
		return p, nil
	}
	p.begin(p.pidfd)
	return p, nil
}

// AdoptTree is to a tree what Adopt is to a process.
func (h *Host) AdoptTree(key uint64) (*Tree, error) {
	p, err := h.claim(key)
	if err != nil {
		return nil, err
	}
	return p.tree, nil
}

func (h *Host) claim(key uint64) (*Process, error) {
	h.moves.mu.Lock()
	defer h.moves.mu.Unlock()
	p := h.moves.in[key]
	if p == nil {
		return nil, fmt.Errorf("no process tree %d was handed over", key)
	}
	delete(h.moves.in, key)
	return p, nil
}

// adopt makes the host what it was before an exec, before any of it moves.
func (h *Host) adopt(data json.RawMessage) error {
	var s hostState
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("adopt a host: %w", err)
	}
	h.forgiveMissing(&s)
	if err := s.inherit(false); err != nil {
		return fmt.Errorf("adopt a host: a descriptor is not there: %w", err)
	}
	var file *os.File
	if s.Roll >= 0 {
		file = os.NewFile(uintptr(s.Roll), "roll")
	}
	if err := h.roll.open(file); err != nil {
		return fmt.Errorf("adopt a host: %w", err)
	}
	h.since, h.mark = s.Since, mark(s.Mark)
	h.trees.Store(s.Trees)
	if err := h.nets.adopt(h, &s); err != nil {
		return fmt.Errorf("adopt a host: %w", err)
	}
	h.moves.in = make(map[uint64]*Process, len(s.Process))
	for i := range s.Process {
		h.moves.in[s.Process[i].Key] = h.processBack(&s.Process[i])
	}
	if h.nets.reaper != nil {
		go h.nets.reaper.run()
	}
	if l := h.nets.lineage; l != nil {
		l.mu.Lock()
		l.tidyLocked()
		l.mu.Unlock()
	}
	return nil
}

// forgiveMissing lets a tree go on without the descriptor of a leader that was reaped, as
// on a kernel where that names no group. That one's loss shall cost no other tree.
func (h *Host) forgiveMissing(s *hostState) {
	for i := range s.Process {
		p := &s.Process[i]
		if !p.Reaped {
			continue
		}
		if err := inherit(p.Handle, false); err != nil {
			h.logger.Warn("the descriptor of a process tree is not there", "pid", p.PID, "error", err.Error())
			p.Handle = -1
		}
	}
}

func (n *nets) adopt(host *Host, s *hostState) error {
	n.host, n.leaders = host, make(map[int]struct{})
	n.name, n.reason = s.Net, s.Reason
	if s.Net == netGroup {
		return nil
	}
	reaper, err := newReaper(n)
	if err != nil {
		return err
	}
	reaper.undo = s.Undo
	if g := s.Groups; g != nil {
		n.cgroups = &cgroups{
			logger: host.logger, home: home{g.Dir, g.Name}, base: g.Base, lock: os.NewFile(uintptr(g.Lock), g.Base),
			stock:  stock{seq: g.Seq, spare: g.Spare, doomed: g.Doomed},
			limits: limits{moved: g.Moved, here: g.Here, below: g.Below},
		}
		n.cgroups.touched.init() // what was made before is not watched: it serves no more
	} else {
		n.lineage = newLineage(n, s.Stamps)
		n.lineage.numbers = s.Numbers
		for _, a := range s.Aside {
			n.lineage.aside[a.PID] = aside{a.member(), a.Stray}
		}
		n.lineage.listed = s.Strays.entries(false)
		host.procs.told = n.lineage.see
	}
	n.reaper = reaper
	return nil
}

// processBack makes a tree and its leader what they were. Nothing watches over it yet.
func (h *Host) processBack(s *treeState) *Process {
	p := &Process{host: h, pid: s.PID, exited: make(chan struct{})}
	p.pidfd = s.Handle
	p.reaped.Store(s.Reaped)
	p.tree = &Tree{logger: h.logger, pid: s.PID, key: s.Key, process: p, hurried: h.hurried}
	g := newGroup(h, s.PID, s.Handle, &p.reaped)
	g.known, g.looked = membersOf(s.Known), s.Looked
	g.released.Store(s.Released)
	g.listed = s.Listed.entries(s.Released)
	if !s.Reaped {
		h.nets.leaders[s.PID] = struct{}{}
	}
	switch {
	case h.nets.cgroups != nil:
		p.tree.net = &cgroup{group: g, groups: h.nets.cgroups, seq: s.Seq, outside: outside{membersOf(s.Outside), len(s.Outside) > 0}}
	case h.nets.lineage != nil:
		p.tree.net = h.nets.lineage.back(g, s)
	default:
		p.tree.net = g
	}
	return p
}

func (l *lineage) back(g *group, s *treeState) *descent {
	d := &descent{group: g, lineage: l, born: s.Born, pipes: s.Pipes, stamp: s.Stamp}
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.Open {
		l.trees[d], l.stamped[d.stamp] = s.Mark, d
	}
	for _, k := range s.Kin {
		l.known[k.PID] = kin{start: k.Start, tree: d}
	}
	return d
}

func (s *entriesState) entries(closed bool) entries {
	e := entries{leader: s.Leader, closed: closed}
	for _, row := range s.Members {
		if e.members == nil {
			e.members = make(map[Member]uint64)
		}
		e.members[row.member()] = row.Row
	}
	return e
}
