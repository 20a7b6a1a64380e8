package bash

import (
	"errors"
	"io/fs"
	"math"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"afoot/producers/output"
	"afoot/producers/proc"
	"afoot/registry"
)

// maxTimerMs is the longest time-out that a timer can count; a longer one, of
// three centuries, never comes.
const maxTimerMs = int64(math.MaxInt64 / time.Millisecond)

// start makes the logs, then the pipes, then the process; each failure takes back
// what was made before it.
func (p *plan) start(launch registry.Launch, env []string) (*run, error) {
	r := &run{producer: p.producer, request: p.described}
	err := p.openLogs(r)
	if err == nil && p.described.size() > maxInlineBytes {
		r.request = description{}
		if err = r.log.WriteAside(p.described.json()); err != nil {
			err = refusal(err, "the request can't be stored")
		}
	}
	if err == nil {
		err = p.launch(r, launch, env)
	}
	if err != nil {
		for _, log := range r.logs() {
			log.End()
			err = errors.Join(err, log.Remove())
		}
		return nil, err
	}
	return r, nil
}

func (p *plan) openLogs(r *run) (err error) {
	if r.log, err = p.producer.store.Create(); err == nil && p.request.split {
		var second *output.Log
		if second, err = p.producer.store.Create(); err == nil {
			r.stderr = &stream{log: second}
		}
	}
	if err != nil {
		return refusal(err, "the output can't be stored")
	}
	return nil
}

// launch forks and hands the run to its goroutine.
func (p *plan) launch(r *run, launch registry.Launch, env []string) error {
	l := &live{
		settle:         launch.Settle,
		timeoutMs:      p.request.timeoutMs,
		memoryMaxBytes: p.request.memoryMaxBytes,
		stops:          p.request.stop,
		done:           make(chan struct{}),
		hold:           make(chan struct{}),
	}
	child, err := p.plumb(r, l)
	if err == nil {
		// The exit may be heard of before the fork is known to have worked.
		l.process, err = p.fork(launch, env, child, func() { r.exited(l) })
	}
	child.close()
	if err != nil {
		l.closePipes()
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.live = l
	if l.timeoutMs > 0 && l.timeoutMs <= maxTimerMs {
		l.deadline = time.Now().Add(time.Duration(l.timeoutMs) * time.Millisecond)
	}
	r.goOnLocked(l)
	return nil
}

// goOnLocked attends to a command from where it is.
func (r *run) goOnLocked(l *live) {
	if !l.deadline.IsZero() && !l.collected {
		l.timer = time.AfterFunc(time.Until(l.deadline), func() { r.timeOut(l) })
	}
	r.producer.begin(r)
	l.work.Add(1)
	go r.attend(l, l.hold)
}

func (p *plan) fork(launch registry.Launch, env []string, child ends, onExit func()) (*proc.Process, error) {
	host := p.producer.host
	// Behind "--" a command may begin with "-" and is still a command.
	spec := proc.Spec{
		Path:           p.producer.shell,
		Args:           []string{filepath.Base(p.producer.shell), "-c", "--", p.request.command},
		Dir:            p.request.workdir,
		Env:            p.producer.environ.with(&p.request, launch, env),
		Files:          child.files(host.Null()),
		OnExit:         onExit,
		Nice:           p.request.nice,
		MemoryMaxBytes: p.request.memoryMaxBytes,
		PidsMax:        p.request.pidsMax,
	}
	if len(p.request.command) > maxStringBytes {
		script, err := newScript(p.request.command)
		if err != nil {
			return nil, refusal(err, "the command can't be started")
		}
		defer func() { _ = script.Close() }()
		spec.Args[3] = loader
		spec.Files = append(spec.Files, script.Fd())
	}
	process, err := host.Start(spec)
	if err != nil {
		return nil, p.blame(err)
	}
	return process, nil
}

// blame finds out what a fork or exec that failed was about: the system says
// ENOENT for a missing directory and a missing program alike.
func (p *plan) blame(err error) error {
	switch {
	case errors.Is(err, unix.E2BIG):
		return invalid("command and environment together are too large for this system")
	case scarce(err):
		return refusal(err, "the command can't be started")
	}
	if dirErr := checkDir(p.request.workdir); dirErr != nil {
		return dirErr
	}
	if user := p.producer.runAs; user != nil && errors.Is(err, unix.EACCES) {
		// The shell was proven at the daemon's start.
		return registry.Wrap(registry.CodeInvalid, err, "workdir %q can't be used by user %d and group %d, as whom tasks run: %s",
			p.request.workdir, user.UID, user.GID, reason(err))
	}
	return registry.Wrap(registry.CodeUnavailable, err, "the shell %s can't be run: %s", p.producer.shell, reason(err))
}

// refusal words a system error for the caller.
func refusal(err error, what string) error {
	switch {
	case scarce(err):
		return registry.Wrap(registry.CodeUnavailable, err, "%s: %s", what, reason(err))
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT), errors.Is(err, unix.EROFS):
		return registry.Wrap(registry.CodeInsufficientStorage, err, "%s: %s", what, reason(err))
	default:
		return registry.Wrap(registry.CodeInternal, err, "%s: %s", what, reason(err))
	}
}

// scarce tells that the machine has run out of something that comes back.
func scarce(err error) bool {
	for _, errno := range []error{unix.EAGAIN, unix.EMFILE, unix.ENFILE, unix.ENOMEM} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// reason is the system's own word for an error, without the path that Go adds.
func reason(err error) string {
	var errno syscall.Errno
	var path *fs.PathError
	switch {
	case errors.As(err, &errno):
		return errno.Error()
	case errors.As(err, &path):
		return path.Err.Error()
	default:
		return err.Error()
	}
}
