package proc

import (
	"errors"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// group is the net that knows a session by its leader's number, with all process
// groups in it (those of a shell's job control too).
type group struct {
	host *Host
	sid  int
	// reaped says that the leader's number may be reused.
	reaped *atomic.Bool

	mu sync.Mutex
	// handle is the leader's pidfd. It names the leader's group beyond the leader's
	// end and any reuse of its number. -1: there is none, or not any more.
	handle int
	// known are the members of the last look, for systems where the handle does not
	// name a group (Linux before 6.9) and for groups beside the leader's: as long as
	// one of them lives the number was never free, and the session is still ours.
	known  []Member
	looked bool
	// released says that the tree is known to be empty.
	released atomic.Bool
	// warned says that the log was told of who can't be signalled.
	warned atomic.Bool
	// listed are its rows in the host's roll.
	listed entries
}

func newGroup(host *Host, sid, pidfd int, reaped *atomic.Bool) *group {
	return &group{host: host, sid: sid, reaped: reaped, handle: pidfd}
}

func (g *group) release() {
	g.released.Store(true)
	g.host.roll.forget(&g.listed)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.handle >= 0 {
		_ = unix.Close(g.handle)
		g.handle = -1
	}
}

// group signals the leader's group by its handle. Able says that the handle can
// do that, there that the group has a member, be it a dead one.
func (g *group) group(sig syscall.Signal) (there, able bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.handle < 0 {
		return false, false
	}
	err := unix.PidfdSendSignal(g.handle, sig, nil, unix.PIDFD_SIGNAL_PROCESS_GROUP)
	switch {
	case errors.Is(err, unix.ESRCH):
		return false, true
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS):
		return false, false
	case err != nil && sig != 0: // nobody in it can be
		g.warn(g.sid, err)
	}
	return true, true
}

// empty asks the kernel whether the leader's number names anything: as long as a
// session or group has a member, even a dead one, it does. Setting the owner of a
// descriptor is the one call that looks for just that, and it costs less than a
// microsecond. The dead ones that are ours to reap are reaped first. Only a number that
// still names something is looked up.
func (g *group) empty() bool {
	if !g.reaped.Load() {
		return false
	}
	return g.released.Load() || g.nobody() || g.host.nets.sweep() > 0 && g.nobody() || g.renumbered()
}

// renumbered tells that the number of a leader that was reaped went to somebody else:
// it was free in between, and nobody of the old session was left.
func (g *group) renumbered() bool {
	_, ok := statOf(g.sid)
	return ok
}

func (g *group) nobody() bool {
	_, err := unix.FcntlInt(g.host.null.Fd(), unix.F_SETOWN, g.sid)
	return errors.Is(err, unix.ESRCH)
}

func (g *group) members() ([]Member, error) {
	stats, err := g.host.procs.session(g.sid)
	if err != nil {
		return nil, err
	}
	members := g.own(stats)
	g.host.roll.learn(&g.listed, members, g.reaped.Load())
	return members, nil
}

// own gives who is alive of a look at the session, if it is still ours.
func (g *group) own(stats []stat) []Member {
	reaped := g.reaped.Load()
	there, _ := g.group(0)
	members := make([]Member, 0, len(stats))
	for _, s := range stats {
		if reaped && !there && s.pid == g.sid {
			return nil // the number went to somebody else
		}
		if !s.dead {
			members = append(members, s.member())
		}
	}
	if !reaped {
		return members
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if !there && g.looked && !overlap(g.known, members) {
		return nil
	}
	g.known, g.looked = members, true
	return members
}

func overlap(a, b []Member) bool {
	for _, x := range a {
		for _, y := range b {
			if x.PID == y.PID && x.start == y.start {
				return true
			}
		}
	}
	return false
}

// signal reaches the leader's group as a whole, which nobody in it can outrun by
// forking, and everybody else one by one. SIGKILL each gets one by one too: the group
// says nothing of who in it could not be signalled.
func (g *group) signal(sig syscall.Signal, members []Member) {
	_, whole := g.group(sig)
	if whole {
		for _, member := range members {
			if member.group != g.sid || sig == syscall.SIGKILL {
				g.signalEach(member, sig)
			}
		}
		return
	}
	whole = !g.reaped.Load()
	for _, member := range members {
		if member.group == g.sid && whole {
			continue
		}
		g.signalEach(member, sig)
		whole = whole || member.group == g.sid
	}
	if whole {
		_ = syscall.Kill(-g.sid, sig)
	}
}

func (g *group) signalEach(member Member, sig syscall.Signal) {
	if err := member.signal(sig); err != nil {
		g.warn(member.PID, err)
	}
}

// warn tells the log, once for each tree, of a process that can't be signalled: a stop
// goes on trying.
func (g *group) warn(pid int, err error) {
	if !g.warned.Swap(true) {
		g.host.logger.Warn("process can't be signalled", "pid", pid, "error", err.Error())
	}
}

// signal signals exactly that process, if it still lives.
func (m Member) signal(sig syscall.Signal) error {
	pidfd, err := unix.PidfdOpen(m.PID, 0)
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(pidfd) }()
	// The pidfd holds whoever has the number now; only then its start is looked at.
	if s, ok := statOf(m.PID); !ok || s.start != m.start {
		return nil
	}
	if err := unix.PidfdSendSignal(pidfd, sig, nil, 0); !errors.Is(err, unix.ESRCH) {
		return err
	}
	return nil
}
