package bash

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"afoot/producers/output"
	"afoot/producers/proc"
	"afoot/registry"
)

// Kind is the name of this kind of work.
const Kind registry.Kind = "bash"

// Defaults of [Config].
const (
	DefaultGrace = 3 * time.Second
	DefaultDrain = time.Second
)

// Config is what a [Producer] needs.
type Config struct {
	// Shell is looked up once; empty means "bash".
	Shell string
	// Workdir is where commands run that name no directory, and what relative ones
	// start from; empty means the current directory.
	Workdir string
	// Env is the environment to start from, before it is scrubbed.
	Env []string
	// ContextEnv, unless nil, gives variables (NAME=value) of the command that is being
	// started with ctx. They replace those of Env; the caller's replace them.
	ContextEnv func(ctx context.Context) []string
	// Grace lies between SIGTERM and SIGKILL; zero means [DefaultGrace].
	Grace time.Duration
	// Drain bounds how long output is awaited after the shell's exit; zero means
	// [DefaultDrain].
	Drain time.Duration
	// Net is [proc.Config]'s.
	Net string
	// RunAs is whom commands run as; nil: the daemon's own user.
	RunAs *proc.User
	// Store keeps the output, Sink empties the pipes of what outlives its command.
	// Both stay the caller's to close, after the producer.
	Store  *output.Store
	Sink   *output.Sink
	Logger *slog.Logger
	// Adopt is what [Producer.HandOver] gave before an exec.
	Adopt json.RawMessage
}

// Producer starts commands. It is safe for concurrent use.
type Producer struct {
	host       *proc.Host
	closeHost  func() error // closes it once
	shell      string
	workdir    string
	environ    environ
	contextEnv func(ctx context.Context) []string // never nil
	runAs      *proc.User                         // nil: nobody else
	grace      atomic.Int64                       // a time.Duration
	drain      time.Duration
	store      *output.Store
	sink       *output.Sink
	logger     *slog.Logger
	// well is the outcome of a plain ending. Nobody changes a result.
	well registry.Outcome

	mu     sync.Mutex
	closed bool
	// busy counts runs that live or are stopping leftovers; quiet is closed when none
	// is and somebody waits for that.
	busy  int
	quiet chan struct{}
	// haunted are ended runs that left processes behind.
	haunted map[*run]struct{}
	// visits is the next look at them; nil when none is due.
	visits *time.Timer
	// living are those that have not been reported.
	living map[*run]struct{}
	// hold is closed when the producer is handed over. Taken back it has another one.
	hold  chan struct{}
	held  bool
	stops sync.WaitGroup // those of leftovers
	// adopted are leftovers from before an exec, by name, each in a run of its own
	// until theirs comes for them.
	adopted map[string]*run
}

// New finds the shell and prepares what all commands share.
func New(config Config) (*Producer, error) {
	if config.Store == nil || config.Sink == nil {
		return nil, errors.New("bash needs a store and a sink")
	}
	p := &Producer{
		drain:      config.Drain,
		environ:    scrub(config.Env),
		contextEnv: config.ContextEnv,
		runAs:      config.RunAs,
		store:      config.Store,
		sink:       config.Sink,
		logger:     config.Logger,
		haunted:    make(map[*run]struct{}),
		living:     make(map[*run]struct{}),
		hold:       make(chan struct{}),
		well:       ending{}.outcome(),
	}
	if p.contextEnv == nil {
		p.contextEnv = func(context.Context) []string { return nil }
	}
	p.SetGrace(config.Grace)
	if p.drain == 0 {
		p.drain = DefaultDrain
	}
	if p.logger == nil {
		p.logger = slog.New(slog.DiscardHandler)
	}
	var err error
	if p.shell, err = findShell(config.Shell); err != nil {
		return nil, err
	}
	if p.workdir, err = filepath.Abs(config.Workdir); err != nil {
		return nil, fmt.Errorf("default workdir: %w", err)
	}
	if err := p.openHost(&config); err != nil {
		return nil, err
	}
	if p.runAs != nil {
		p.environ = p.environ.as(p.runAs.UID)
		if err := p.prove(); err != nil {
			return nil, errors.Join(err, p.closeHost())
		}
	}
	return p, nil
}

// Net names how the processes of a command are found, and says why not in a better
// way; "" for the best.
func (p *Producer) Net() (name, reason string) { return p.host.Net(), p.host.NetReason() }

// SetGrace changes what lies between SIGTERM and SIGKILL, for stops that begin later;
// zero means [DefaultGrace].
func (p *Producer) SetGrace(grace time.Duration) {
	p.grace.Store(int64(cmp.Or(grace, DefaultGrace)))
}

func (p *Producer) stopGrace() time.Duration { return time.Duration(p.grace.Load()) }

func findShell(shell string) (string, error) {
	if shell == "" {
		shell = "bash"
	}
	path, err := exec.LookPath(shell)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return "", fmt.Errorf("find the shell: %w", err)
	}
	return path, nil
}

// Close stops what ended commands left behind, and what live ones still leave,
// waits until no run works any more, and refuses new ones from the start. It does
// not cancel live commands: that is the registry's, which may do so meanwhile. With ctx
// it gives up waiting, and the error names the processes that are left; calling it again
// waits again.
func (p *Producer) Close(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	p.stopVisitsLocked()
	p.mu.Unlock()
	for _, r := range p.hauntedRuns() {
		r.exorcise()
	}
	select {
	case <-p.idle():
	case <-ctx.Done():
		return p.unfinished(ctx.Err())
	}
	p.stops.Wait()
	return p.closeHost()
}

// idle gives a channel that is closed when no run works.
func (p *Producer) idle() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy > 0 && p.quiet != nil {
		return p.quiet
	}
	quiet := make(chan struct{})
	if p.busy == 0 {
		close(quiet)
	} else {
		p.quiet = quiet
	}
	return quiet
}

// enter counts a new run, unless the producer is closed.
func (p *Producer) enter() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return registry.Errorf(registry.CodeUnavailable, "the daemon is shutting down")
	case p.held:
		return registry.Errorf(registry.CodeUnavailable, "the daemon is being replaced")
	}
	p.busy++
	return nil
}

// again counts a run that has more to do.
func (p *Producer) again() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy++
}

// begin remembers a run that lives, end forgets it.
func (p *Producer) begin(r *run) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.living[r] = struct{}{}
}

func (p *Producer) end(r *run) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.living, r)
}

func (p *Producer) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy--; p.busy == 0 && p.quiet != nil {
		close(p.quiet)
		p.quiet = nil
	}
}

// haunt remembers a run that left processes behind, so that Close finds it, and
// reports whether Close comes no more.
func (p *Producer) haunt(r *run) (closed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.haunted[r] = struct{}{}
	p.visitLocked()
	return p.closed
}

func (p *Producer) free(r *run) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.haunted, r)
}

// checkDir says why a directory can't be worked in; nil if it can.
func checkDir(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case err == nil && !info.IsDir():
		return invalid("workdir %q is not a directory", dir)
	case err == nil:
		if err = access(dir); err == nil {
			return nil
		}
	}
	return invalid("workdir %.*q can't be used: %s", maxPathBytes, dir, reason(err))
}
