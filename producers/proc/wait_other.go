//go:build unix && !linux

package proc

import "syscall"

// platform is what Wait had to take to learn of the end.
type platform struct {
	exit Exit
	err  error
}

// watch is nothing here: each process costs a thread.
type watch struct{}

func (*watch) init() error { return nil }

func (*watch) close() {}

func sysProcAttr(*int, *place) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// begin waits for the leader.
func (p *Process) begin(int) {
	go func() {
		p.exit, p.err = reap(p.pid)
		p.reaped.Store(true)
		p.left()
	}()
}

// Wait blocks until the leader has exited.
func (p *Process) Wait() { <-p.exited }

// WaitUnless is Wait that gives up as soon as hold is closed. It reports whether the
// leader has exited.
func (p *Process) WaitUnless(hold <-chan struct{}) (exited bool) {
	select {
	case <-p.exited:
		return true
	case <-hold:
		return closed(p.exited)
	}
}

// Reap gives the exit of the leader. It is called once, after [Process.Wait].
func (p *Process) Reap() (Exit, error) { return p.exit, p.err }
