package bash

import (
	"errors"
	"slices"
	"syscall"

	"afoot/producers/proc"
	"afoot/registry"
)

// sendable are the signals that a caller may send: those that people and programs
// send each other, but not the ones that tell a program of its own faults.
func sendable() []syscall.Signal {
	return []syscall.Signal{
		syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGKILL,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGSTOP, syscall.SIGCONT, syscall.SIGTSTP,
		syscall.SIGABRT, syscall.SIGALRM, syscall.SIGPIPE, syscall.SIGWINCH,
	}
}

// Signal implements [registry.Signaller]. The signal goes to the shell's process
// group, as ^C on a terminal does: work that has left the group does not hear it.
func (r *run) Signal(name string) error {
	signal, known := proc.SignalByName(name)
	if !known || !slices.Contains(sendable(), signal) {
		return invalid("%.*q is no signal that can be sent; INT, TERM, HUP, USR1, STOP, CONT and KILL are some", maxShownBytes, name)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	// Held, so that the group keeps its number: the leader is not reaped meanwhile.
	if l := r.live; l != nil && !l.reaped {
		err := l.process.Signal(signal)
		if err == nil {
			return nil
		}
		if !errors.Is(err, syscall.ESRCH) {
			return registry.Wrap(registry.CodeConflict, err, "the command can't be signalled: %s", reason(err))
		}
	}
	return registry.Errorf(registry.CodeConflict, "the command has ended")
}
