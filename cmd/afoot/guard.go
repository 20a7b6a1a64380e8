package main

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"
)

// How a watchdog that died is started again: after pauses that double up to the
// longest, and begin anew once one has lived that long.
const (
	firstGuardPause   = 100 * time.Millisecond
	longestGuardPause = time.Minute
)

// farewellPatience is how long a watchdog may take to go.
const farewellPatience = 2 * time.Second

// guard keeps one watchdog running as long as the daemon lives.
type guard struct {
	log  *slog.Logger
	will []byte
	roll *os.File // nil where there is none
	quit chan struct{}
	done chan struct{}

	mu      sync.Mutex
	pipe    *os.File
	process *os.Process
	// leaving says that no other one is to be started.
	leaving bool
}

// startGuard starts the watchdog. What it has to end is known to it even if the daemon
// dies before it runs.
func startGuard(will lastWill, roll *os.File, log *slog.Logger) (*guard, error) {
	text, err := json.Marshal(will)
	if err != nil {
		return nil, fmt.Errorf("watchdog: %w", err)
	}
	g := &guard{log: log, will: append(text, '\n'), roll: roll, quit: make(chan struct{}), done: make(chan struct{})}
	if err := g.spawn(); err != nil {
		return nil, fmt.Errorf("watchdog: %w", err)
	}
	go g.keep()
	return g, nil
}

// spawn starts a watchdog in a session of its own, with an environment of nothing that
// is anybody's.
func (g *guard) spawn() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.leaving {
		return nil
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = null.Close() }()
	roll := null
	if g.roll != nil {
		roll = g.roll
	}
	theirs, ours, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = theirs.Close() }()
	// First: this program may die as soon as the other one runs, and then nobody else ends
	// what there is. It fits into the pipe.
	_, err = ours.Write(g.will)
	var process *os.Process
	if err == nil {
		process, err = os.StartProcess(ownBinary(), []string{"afoot", watchdogName}, &os.ProcAttr{
			Dir:   "/",
			Env:   []string{"GOMAXPROCS=1", "GOGC=10", "GORACE=atexit_sleep_ms=0"},
			Files: []*os.File{null, null, null, theirs, roll},
			Sys:   &syscall.SysProcAttr{Setsid: true},
		})
	}
	if err != nil {
		_ = ours.Close()
		return err
	}
	g.pipe, g.process = ours, process
	return nil
}

// ownBinary is the program that runs, whatever lies at its path by now.
func ownBinary() string {
	const self = "/proc/self/exe"
	if _, err := os.Stat(self); err == nil {
		return self
	}
	path, _ := os.Executable() // else the start says so
	return path
}

// keep waits for the watchdog, and starts another if it ends before it should.
func (g *guard) keep() {
	defer close(g.done)
	pause := firstGuardPause
	for {
		begun := time.Now()
		g.mu.Lock()
		process := g.process
		g.mu.Unlock()
		how := "it could not be started"
		if process != nil {
			state, err := process.Wait()
			how = fmt.Sprint(state)
			if err != nil {
				how = err.Error()
			}
		}
		g.mu.Lock()
		if g.pipe != nil {
			_ = g.pipe.Close()
		}
		g.pipe, g.process = nil, nil
		g.mu.Unlock()
		if time.Since(begun) > longestGuardPause {
			pause = firstGuardPause
		}
		select {
		case <-g.quit:
			return
		default:
		}
		g.log.Error("the watchdog ended, another is started", keyReason, how, "pause", pause)
		select {
		case <-g.quit:
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, longestGuardPause)
		if err := g.spawn(); err != nil {
			g.log.Error("the watchdog can't be started", keyError, err)
		}
	}
}

// hold keeps the watchdog as it is until release, and gives its pipe, nil if there is
// none just now.
func (g *guard) hold() (pipe *os.File, pid int, release func()) {
	g.mu.Lock()
	if g.pipe != nil && g.process != nil {
		pipe, pid = g.pipe, g.process.Pid
	}
	return pipe, pid, g.mu.Unlock
}

// close ends the watchdog: with nothing for it to do if everything has ended in order,
// else by ending what is left.
func (g *guard) close(inOrder bool) {
	close(g.quit)
	g.mu.Lock()
	g.leaving = true
	process := g.process
	if g.pipe != nil {
		if inOrder {
			_, _ = g.pipe.Write([]byte{farewell, '\n'})
		}
		_ = g.pipe.Close()
		g.pipe = nil
	}
	g.mu.Unlock()
	patience := time.NewTimer(farewellPatience)
	defer patience.Stop()
	select {
	case <-g.done:
	case <-patience.C:
		if process != nil && inOrder {
			_ = process.Kill()
			<-g.done
		}
	}
}
