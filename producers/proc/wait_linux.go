package proc

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// earlyExit is for systems where waiting and reaping are one.
type earlyExit struct{}

func sysProcAttr(pidfd *int) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, PidFD: pidfd}
}

// pollable hands a pidfd to the runtime's poller; nil if there is none or the
// poller does not take it.
func pollable(pidfd int) *os.File {
	if pidfd < 0 {
		return nil
	}
	if _, err := unix.FcntlInt(uintptr(pidfd), unix.F_SETFL, unix.O_NONBLOCK); err != nil {
		_ = unix.Close(pidfd)
		return nil
	}
	return os.NewFile(uintptr(pidfd), "pidfd")
}

// Wait parks until the leader has exited. It leaves the exit to [Process.Reap].
func (p *Process) Wait() {
	defer close(p.exited)
	if p.pidfd != nil {
		conn, err := p.pidfd.SyscallConn()
		if err == nil && conn.Read(p.peek) == nil {
			return
		}
	}
	// No pidfd, or nothing to poll it with: this costs a thread.
	var info unix.Siginfo
	for {
		err := unix.Waitid(unix.P_PID, p.pid, &info, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// peek reports whether the leader has exited, and leaves it a zombie. An error
// (ECHILD: somebody reaped it) counts as an end, and Reap will tell.
func (p *Process) peek(pidfd uintptr) bool {
	var info unix.Siginfo
	for {
		err := unix.Waitid(unix.P_PIDFD, int(pidfd), &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		return err != nil || info.Signo != 0
	}
}

// Reap takes the exit of the leader and gives its number and descriptor back. It
// is called once, after [Process.Wait].
func (p *Process) Reap() (Exit, error) {
	exit, err := reap(p.pid)
	p.reaped.Store(true)
	if p.pidfd != nil {
		_ = p.pidfd.Close()
	}
	return exit, err
}
