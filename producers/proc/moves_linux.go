package proc

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// moves are what goes on, or went on, under another image of this process.
type moves struct {
	mu sync.Mutex
	// out are handed over, by key; in were, and nobody has asked for them yet.
	out, in map[uint64]*Process
}

// hostState is a host as it passes an exec.
type hostState struct {
	Net, Reason string
	Since       uint64
	Mark        string
	// Roll is a descriptor, -1 for none.
	Roll    int
	Trees   uint64
	Undo    bool
	Groups  *groupsState `json:",omitempty"`
	Stamps  uint64       `json:",omitempty"`
	Numbers uint64       `json:",omitempty"`
	Aside   []asideState `json:",omitempty"`
	Strays  entriesState
	Process []treeState `json:",omitempty"`
}

type groupsState struct {
	Dir, Name, Base string
	Lock            int
	Seq             uint64
	Spare, Doomed   []uint64 `json:",omitempty"`
	Moved           bool     `json:",omitempty"`
	Here, Below     []string `json:",omitempty"`
}

type memberState struct {
	PID   int
	Start uint64
	Group int
}

type asideState struct {
	memberState
	Stray bool
}

type entriesState struct {
	Leader  uint64
	Members []rowState `json:",omitempty"`
}

type rowState struct {
	memberState
	Row uint64
}

// treeState is one tree.
type treeState struct {
	Key    uint64
	PID    int
	Reaped bool
	// Handle is a descriptor, -1 for none.
	Handle   int
	Known    []memberState `json:",omitempty"`
	Looked   bool
	Released bool
	Listed   entriesState
	// Of a control group:
	Seq     uint64
	Outside []memberState `json:",omitempty"`
	// Of a descent:
	Born  uint64
	Mark  string
	Stamp uint64        `json:",omitempty"`
	Pipes []string      `json:",omitempty"`
	Kin   []memberState `json:",omitempty"`
	Open  bool
}

// HandOver stops watching over a process, until [Process.TakeBack] or, after an exec
// in a host with the state of this one, [Host.Adopt] with the key. Nobody may be in one
// of its methods. A leader that exits meanwhile stays a zombie, and its status is there
// for who reaps it.
func (p *Process) HandOver() (key uint64) {
	p.host.exits.remove(p)
	m := &p.host.moves
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.out == nil {
		m.out = make(map[uint64]*Process)
	}
	m.out[p.tree.key] = p
	return p.tree.key
}

// TakeBack undoes HandOver.
func (p *Process) TakeBack() {
	m := &p.host.moves
	m.mu.Lock()
	delete(m.out, p.tree.key)
	m.mu.Unlock()
	if !p.reaped.Load() && !closed(p.exited) && !p.threaded {
		p.begin(p.pidfd)
	}
}

// HandOver is to a tree what [Process.HandOver] is to its process.
func (t *Tree) HandOver() (key uint64) { return t.process.HandOver() }

// TakeBack undoes HandOver.
func (t *Tree) TakeBack() { t.process.TakeBack() }

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

// HandOver gives what [Config.Adopt] needs to go on with this host and with all that
// was handed over before, in another image of this process. The descriptors that it
// names stay open across an exec. Nothing may be started until [Host.TakeBack].
func (h *Host) HandOver() (json.RawMessage, error) {
	h.moves.mu.Lock()
	defer h.moves.mu.Unlock()
	s := hostState{Net: h.nets.name, Reason: h.nets.reason, Since: h.since, Mark: string(h.mark), Roll: -1, Trees: h.trees.Load()}
	if h.roll.file != nil {
		s.Roll = int(h.roll.file.Fd())
	}
	if h.nets.reaper != nil {
		s.Undo = h.nets.reaper.undo
	}
	if c := h.nets.cgroups; c != nil {
		s.Groups = c.state()
	}
	if l := h.nets.lineage; l != nil {
		l.mu.Lock()
		s.Stamps, s.Numbers = l.stamps.host, l.numbers
		for _, a := range l.aside {
			s.Aside = append(s.Aside, asideState{stateOf(a.Member), a.stray})
		}
		l.mu.Unlock()
		s.Strays = h.roll.state(&l.listed)
	}
	for _, p := range h.moves.out {
		s.Process = append(s.Process, p.state())
	}
	data, err := json.Marshal(s)
	if err == nil {
		err = s.inherit(true)
	}
	if err != nil {
		return nil, errors.Join(err, s.inherit(false))
	}
	h.clean.handOver()
	return data, nil
}

// TakeBack undoes HandOver, but for the processes.
func (h *Host) TakeBack() {
	h.moves.mu.Lock()
	defer h.moves.mu.Unlock()
	h.clean.takeBack()
	for _, p := range h.moves.out {
		s := p.state()
		_ = inherit(s.Handle, false)
	}
	if h.roll.file != nil {
		_ = inherit(int(h.roll.file.Fd()), false)
	}
	if c := h.nets.cgroups; c != nil {
		_ = inherit(int(c.lock.Fd()), false)
		c.resume()
	}
}

// inherit says of each descriptor whether it stays open across an exec.
func (s *hostState) inherit(on bool) error {
	err := inherit(s.Roll, on)
	if s.Groups != nil {
		err = errors.Join(err, inherit(s.Groups.Lock, on))
	}
	for i := range s.Process {
		err = errors.Join(err, inherit(s.Process[i].Handle, on))
	}
	return err
}

func inherit(fd int, on bool) error {
	if fd < 0 {
		return nil
	}
	flags := unix.FD_CLOEXEC
	if on {
		flags = 0
	}
	_, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, flags)
	return os.NewSyscallError("fcntl", err)
}

func stateOf(m Member) memberState { return memberState{m.PID, m.start, m.group} }

func (m memberState) member() Member { return Member{PID: m.PID, start: m.Start, group: m.Group} }

func statesOf(members []Member) (states []memberState) {
	for _, m := range members {
		states = append(states, stateOf(m))
	}
	return states
}

func membersOf(states []memberState) (members []Member) {
	for _, s := range states {
		members = append(members, s.member())
	}
	return members
}

func (c *cgroups) state() *groupsState {
	c.pause()
	c.stock.mu.Lock()
	s := &groupsState{
		Dir: c.home.dir, Name: c.home.name, Base: c.base, Lock: int(c.lock.Fd()),
		Seq: c.stock.seq, Spare: slices.Clone(c.stock.spare), Doomed: slices.Concat(c.stock.doomed, c.stock.stuck),
	}
	c.stock.mu.Unlock()
	c.limits.mu.Lock()
	defer c.limits.mu.Unlock()
	s.Moved, s.Here, s.Below = c.limits.moved, c.limits.here, c.limits.below
	return s
}

func (p *Process) state() treeState {
	s := treeState{Key: p.tree.key, PID: p.pid, Reaped: p.reaped.Load()}
	var g *group
	switch net := p.tree.net.(type) {
	case *group:
		g = net
	case *cgroup:
		g = net.group
		net.mu.Lock()
		s.Seq, s.Outside = net.seq, statesOf(net.outside.known)
		net.mu.Unlock()
	case *descent:
		g = net.group
		s.Born, s.Pipes, s.Stamp = net.born, net.pipes, net.stamp
		l := net.lineage
		l.mu.Lock()
		s.Mark, s.Open = l.trees[net], false
		_, s.Open = l.trees[net]
		for pid, k := range l.known {
			if k.tree == net {
				s.Kin = append(s.Kin, memberState{PID: pid, Start: k.start})
			}
		}
		l.mu.Unlock()
	}
	g.mu.Lock()
	s.Handle, s.Known, s.Looked, s.Released = g.handle, statesOf(g.known), g.looked, g.released.Load()
	g.mu.Unlock()
	s.Listed = p.host.roll.state(&g.listed)
	return s
}

func (r *roll) state(e *entries) entriesState {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := entriesState{Leader: e.leader}
	for m, row := range e.members {
		s.Members = append(s.Members, rowState{stateOf(m), row})
	}
	return s
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

// adopt makes the host what it was before an exec, before any of it moves.
func (h *Host) adopt(data json.RawMessage) error {
	var s hostState
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("adopt a host: %w", err)
	}
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

// handOver leaves the signals that this program had inherited as ignored as it found
// them: exec gives the default to those that are handled.
func (h *hygiene) handOver() {
	if len(h.ignored) > 0 {
		signal.Ignore(h.ignored...)
	}
}

func (h *hygiene) takeBack() {
	if len(h.ignored) > 0 {
		signal.Notify(h.handled, h.ignored...)
	}
}
