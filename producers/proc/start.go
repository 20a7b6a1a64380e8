package proc

import (
	"os"
	"sync/atomic"
	"syscall"
)

// Spec says what to run. Files are the child's descriptors from 0 on; they must
// be blocking where the child expects that, and stay the caller's to close.
type Spec struct {
	Path  string
	Args  []string
	Dir   string
	Env   []string
	Files []uintptr
}

// Process is one started tree with its leader. Wait, Reap and Stop may run
// concurrently, Wait and Reap each in one goroutine.
type Process struct {
	host  *Host
	pid   int
	pidfd *os.File // nil where the system has none

	exited chan struct{}
	reaped atomic.Bool
	early  earlyExit
	tree   *Tree
}

// Start forks a leader of a new session without controlling terminal. The error
// is the system's errno, and does not tell whether ENOENT or EACCES means the
// directory or the program.
func (h *Host) Start(spec Spec) (*Process, error) {
	pidfd := -1
	attr := &syscall.ProcAttr{
		Dir:   spec.Dir,
		Env:   spec.Env,
		Files: spec.Files,
		Sys:   sysProcAttr(&pidfd),
	}
	pid, err := h.fork(spec.Path, spec.Args, attr)
	if err != nil {
		return nil, err
	}
	p := &Process{host: h, pid: pid, exited: make(chan struct{})}
	p.pidfd = pollable(pidfd)
	p.tree = &Tree{net: newGroup(h, pid, &p.reaped), logger: h.logger, pid: pid, hurried: h.hurried}
	return p, nil
}

// Pid is the leader's number.
func (p *Process) Pid() int { return p.pid }

// Tree is everybody who belongs to the process. It outlives the process.
func (p *Process) Tree() *Tree { return p.tree }
