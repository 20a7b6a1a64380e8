package proc

import (
	"errors"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// shortWait is how long [Process.Wait] keeps its thread before it parks. A
// process whose output has ended is mostly gone within a twentieth of that, and
// the kernel wakes a thread sooner than the runtime's poller does.
const shortWait = time.Millisecond

// platform is what one system alone needs in a [Process].
type platform struct {
	pidfd int // -1 where the kernel has none
	// threaded says that a thread waits for the exit.
	threaded bool
}

func sysProcAttr(pidfd *int, place *place) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true, PidFD: pidfd}
	if place != nil && place.dir >= 0 {
		attr.UseCgroupFD, attr.CgroupFD = true, place.dir
	}
	return attr
}

// begin watches over the leader. Without a watch it costs a thread.
func (p *Process) begin(pidfd int) {
	p.pidfd = pidfd
	if pidfd >= 0 && p.host.exits.add(p) == nil {
		return
	}
	p.threaded = true
	go func() {
		var info unix.Siginfo
		for {
			err := unix.Waitid(unix.P_PID, p.pid, &info, unix.WEXITED|unix.WNOWAIT, nil)
			if !errors.Is(err, unix.EINTR) {
				break
			}
		}
		p.left()
	}()
}

// Wait parks until the leader has exited. It leaves the exit to [Process.Reap].
func (p *Process) Wait() { p.WaitUnless(nil) }

// WaitUnless is Wait that gives up as soon as hold is closed. It reports whether the
// leader has exited.
func (p *Process) WaitUnless(hold <-chan struct{}) (exited bool) {
	if p.pidfd >= 0 && p.host.exits.remove(p) {
		if p.waitShortly() || p.host.exits.add(p) != nil && p.waitLong(hold) {
			p.left()
			return true
		}
	}
	select {
	case <-p.exited:
		return true
	case <-hold:
		return closed(p.exited)
	}
}

// waitShortly reports whether the leader exits within shortWait.
func (p *Process) waitShortly() bool {
	poll := []unix.PollFd{{Fd: int32(p.pidfd), Events: unix.POLLIN}}
	bound := unix.NsecToTimespec(int64(shortWait))
	n, err := unix.Ppoll(poll, &bound, nil)
	// SIGCHLD interrupts, and may well be about this exit.
	return n > 0 || err != nil && p.peek()
}

// waitLong holds its thread until the leader exits, or hold is closed.
func (p *Process) waitLong(hold <-chan struct{}) bool {
	for !closed(hold) {
		if p.waitShortly() {
			return true
		}
	}
	return false
}

// peek reports whether the leader has exited, and leaves it a zombie. An error
// (ECHILD: somebody reaped it) counts as an end, and Reap will tell.
func (p *Process) peek() bool {
	var info unix.Siginfo
	for {
		err := unix.Waitid(unix.P_PIDFD, p.pidfd, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		return err != nil || info.Signo != 0
	}
}

// Reap takes the exit of the leader and gives its number back. Its descriptor goes
// with the last of its tree. It is called once, after [Process.Wait].
func (p *Process) Reap() (Exit, error) {
	p.taking.Lock()
	exit, err := reap(p.pid)
	p.reaped.Store(true)
	p.taking.Unlock()
	p.host.nets.ended(p.pid)
	if p.tree.net.empty() {
		p.tree.net.release()
	}
	return exit, err
}
