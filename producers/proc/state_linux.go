package proc

import (
	"errors"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

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
		s.Mark, s.Open = l.trees[net]
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
