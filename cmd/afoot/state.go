package main

import (
	"errors"
	"fmt"
	"os"
)

// state is the directory that a running daemon has for itself.
type state struct {
	dir string
	// lock is what says so; nil in memory.
	lock *os.File
	// close gives it back.
	close func() error
}

// openState takes the state directory, or a private one for a daemon that keeps nothing:
// scratch, or one that it makes. An earlier image of this process hands the first over.
func openState(cfg *Config, scratch string, from *luggage) (*state, error) {
	if cfg.inMemory() {
		if scratch != "" {
			return goingState(scratch), nil
		}
		return scratchState()
	}
	dir, err := openStateDir(cfg.StateDir)
	if err != nil {
		return nil, err
	}
	lock, err := from.stateLock(dir)
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return &state{dir: cfg.StateDir, lock: lock, close: func() error { return errors.Join(lock.Close(), dir.Close()) }}, nil
}

// scratchPrefix begins the name of a private directory.
const scratchPrefix = "afoot-"

// goingState is a directory that goes with the daemon.
func goingState(dir string) *state {
	s := &state{dir: dir}
	s.close = s.clear
	return s
}

// clear removes the directory if it goes with the daemon.
func (s *state) clear() error {
	if s.lock != nil {
		return nil
	}
	return os.RemoveAll(s.dir)
}

// scratchState makes a directory that goes with the daemon, in memory if the system has
// a place for that.
func scratchState() (*state, error) {
	var errs []error
	for _, parent := range []string{os.TempDir(), "/dev/shm"} {
		dir, err := os.MkdirTemp(parent, scratchPrefix)
		if err == nil {
			return goingState(dir), nil
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("no place for captured output: %w; set TMPDIR to a directory that can be written to", errors.Join(errs...))
}
