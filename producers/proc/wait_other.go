//go:build unix && !linux

package proc

import (
	"os"
	"syscall"
)

// earlyExit is what Wait had to take to learn of the end.
type earlyExit struct {
	exit Exit
	err  error
}

func sysProcAttr(*int) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

func pollable(int) *os.File { return nil }

// Wait blocks until the leader has exited.
func (p *Process) Wait() {
	defer close(p.exited)
	p.early.exit, p.early.err = reap(p.pid)
	p.reaped.Store(true)
}

// Reap gives the exit of the leader. It is called once, after [Process.Wait].
func (p *Process) Reap() (Exit, error) { return p.early.exit, p.early.err }
