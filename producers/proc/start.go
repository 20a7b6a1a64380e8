package proc

import (
	"sync"
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
	// OnExit is called once when the leader has exited, from any goroutine, maybe
	// before Start returns. It must not block.
	OnExit func()
	// Nice is added to this program's own nice value.
	Nice int
	// MemoryMaxBytes and PidsMax limit the whole tree; 0: no limit. See
	// [Host.CanLimit].
	MemoryMaxBytes, PidsMax int64
}

// Process is one started tree with its leader. Wait, Reap and Stop may run
// concurrently, Wait and Reap each in one goroutine.
type Process struct {
	platform
	host   *Host
	pid    int
	onExit func()
	// exited is closed when the leader has.
	exited chan struct{}
	leave  sync.Once
	// reaped is set under taking, so that a signal to the leader's group can hold the
	// number back.
	reaped atomic.Bool
	taking sync.Mutex
	tree   *Tree
}

// Start forks a leader of a new session without controlling terminal. The error
// is the system's errno, and does not tell whether ENOENT or EACCES means the
// directory or the program.
func (h *Host) Start(spec Spec) (*Process, error) {
	for again := false; ; again = true {
		p, err := h.start(&spec)
		if err == nil || again || !netsFault(err) {
			return p, err
		}
	}
}

func (h *Host) start(spec *Spec) (*Process, error) {
	place, err := h.nets.place(spec)
	if err != nil {
		return nil, err
	}
	pidfd := -1
	attr := &syscall.ProcAttr{
		Dir:   spec.Dir,
		Env:   h.mark.in(spec.Env),
		Files: spec.Files,
		Sys:   sysProcAttr(&pidfd, place),
	}
	if h.runAs != nil {
		attr.Sys.Credential = &syscall.Credential{Uid: h.runAs.UID, Gid: h.runAs.GID}
	}
	since := ticks()
	pid, err := h.nets.fork(place, func() (int, error) {
		return h.clean.fork(spec.Path, spec.Args, attr, spec.Nice)
	})
	if err != nil {
		h.nets.abandon(place)
		return nil, err
	}
	p := &Process{host: h, pid: pid, onExit: spec.OnExit, exited: make(chan struct{})}
	p.tree = &Tree{logger: h.logger, pid: pid, key: h.trees.Add(1), process: p, hurried: h.hurried}
	group := newGroup(h, pid, pidfd, &p.reaped)
	h.roll.lead(&group.listed, pid, since, ticks())
	p.tree.net = h.nets.cast(place, group)
	p.begin(pidfd)
	return p, nil
}

// left says that the leader has exited, the first time that it is called.
func (p *Process) left() {
	p.leave.Do(func() {
		if p.onExit != nil {
			p.onExit()
		}
		close(p.exited)
	})
}

// Pid is the leader's number.
func (p *Process) Pid() int { return p.pid }

// Signal signals the leader's process group, as ^C on a terminal does. It is an error
// once the leader was reaped.
func (p *Process) Signal(sig syscall.Signal) error {
	p.taking.Lock()
	defer p.taking.Unlock()
	if p.reaped.Load() {
		return syscall.ESRCH
	}
	return syscall.Kill(-p.pid, sig)
}

// Tree is everybody who belongs to the process. It outlives the process.
func (p *Process) Tree() *Tree { return p.tree }
