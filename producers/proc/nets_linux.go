package proc

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// nets is the net that a host casts over each tree, and what that takes.
type nets struct {
	name, reason string
	host         *Host
	// reaper is nil in the group net, cgroups and lineage in all but their own.
	reaper  *reaper
	cgroups *cgroups
	lineage *lineage

	mu sync.Mutex
	// leaders are those that were started and not reaped yet.
	leaders map[int]struct{}
}

// init takes the best net that works, or the one that is named.
func (n *nets) init(host *Host, name string) error {
	n.host, n.leaders = host, make(map[int]struct{})
	var err error
	switch name {
	case "", netAuto:
		if err = n.open(netCgroup); err == nil {
			return nil
		}
		n.reason = err.Error()
		if err = n.open(netSubreaper); err == nil {
			return nil
		}
		n.reason += "; " + err.Error()
		return n.open(netGroup)
	case netCgroup, netSubreaper, netGroup:
		err = n.open(name)
	default:
		return fmt.Errorf("there is no net %q, only auto, cgroup, subreaper and group", name)
	}
	if err != nil {
		return fmt.Errorf("the net %q does not work here: %w", name, err)
	}
	if name != netCgroup {
		n.reason = "it was asked for"
	}
	return nil
}

func (n *nets) open(name string) error {
	n.name = name
	if name == netGroup {
		return nil
	}
	reaper, err := newReaper(n)
	if err != nil {
		return err
	}
	if name == netCgroup {
		if n.cgroups, err = openCgroups(n.host.logger); err != nil {
			reaper.stop()
			return err
		}
	} else {
		n.lineage = newLineage(n, 0)
		n.host.procs.told = n.lineage.see
	}
	n.reaper = reaper
	go reaper.run()
	return nil
}

func (n *nets) close() (err error) {
	if n.lineage != nil {
		n.lineage.close()
	}
	if n.reaper != nil {
		n.reaper.close()
	}
	if n.cgroups != nil {
		err = n.cgroups.close()
	}
	return err
}

// place is what a tree is born into.
type place struct {
	// seq and dir are a control group's; dir is -1 where there is none.
	seq   uint64
	dir   int
	birth birth
}

// place readies what a tree is born into; nil if the net needs nothing of that.
func (n *nets) place(spec *Spec) (*place, error) {
	if err := n.canLimit(spec.MemoryMaxBytes > 0, spec.PidsMax > 0); err != nil {
		return nil, err
	}
	switch {
	case n.cgroups != nil:
		return n.cgroups.take(spec.MemoryMaxBytes, spec.PidsMax)
	case n.lineage != nil:
		return &place{dir: -1, birth: expect(spec, n.lineage.expect())}, nil
	}
	return nil, nil //nolint:nilnil // there is none, and that is right
}

// abandon takes back a place that nobody was born into.
func (n *nets) abandon(p *place) {
	switch {
	case p == nil:
	case p.dir >= 0:
		_ = unix.Close(p.dir)
		n.cgroups.giveBack(p.seq, false)
	default:
		n.lineage.unexpect(p.birth.stamp)
	}
}

// fork has a leader born.
func (n *nets) fork(p *place, fork func() (int, error)) (int, error) {
	if p == nil || n.lineage == nil {
		return fork()
	}
	return n.lineage.stamps.fork(p.birth.stamp, fork)
}

// netsFault tells that a fork failed because somebody tampered with its place.
func netsFault(err error) bool {
	return errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EBUSY) || errors.Is(err, unix.ENODEV)
}

// cast gives the net of a tree that was just born.
func (n *nets) cast(p *place, g *group) net {
	n.mu.Lock()
	n.leaders[g.sid] = struct{}{}
	n.mu.Unlock()
	switch {
	case p == nil:
	case p.dir >= 0:
		_ = unix.Close(p.dir)
		return &cgroup{group: g, groups: n.cgroups, seq: p.seq}
	default:
		return n.lineage.adopt(g, p.birth)
	}
	return g
}

// ended hears that a leader was reaped.
func (n *nets) ended(pid int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.leaders, pid)
}

func (n *nets) leads(pid int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, ok := n.leaders[pid]
	return ok
}

// knows tells that a process was seen below one of the trees.
func (n *nets) knows(s stat) bool { return n.lineage != nil && n.lineage.knows(s) }

// empty asks for many trees at once, where that is cheaper.
func (n *nets) empty(trees []*Tree) []bool {
	if n.lineage == nil {
		return each(trees)
	}
	return n.lineage.empty(trees)
}

// sweep reaps what died after it was left to this program.
func (n *nets) sweep() (reaped int) {
	if n.reaper == nil {
		return 0
	}
	return n.reaper.sweep()
}

// CanLimit says, in words for whoever asked for them, why memory or a number of
// processes can't be limited here; nil if they can. For that the program may have to
// move itself into a control group below its own.
func (h *Host) CanLimit(memory, pids bool) error { return h.nets.canLimit(memory, pids) }

func (n *nets) canLimit(memory, pids bool) error {
	if !memory && !pids {
		return nil
	}
	if n.cgroups == nil {
		return fmt.Errorf("limits need a control group for each task, and there is none: %s", n.reason)
	}
	return n.cgroups.enable(memory, pids)
}

// ownProc reports whether /proc shows the processes that this program sees.
func ownProc() error {
	var buf [1024]byte
	s, ok := readStat(unix.AT_FDCWD, "/proc/self", buf[:])
	if !ok {
		return errors.New("/proc can't be read")
	}
	if s.pid != os.Getpid() {
		return errors.New("/proc belongs to another PID namespace: it calls this program " + strconv.Itoa(s.pid))
	}
	return nil
}
