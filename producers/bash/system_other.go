//go:build unix && !linux

package bash

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"afoot/producers/proc"
)

func pipe() (fds [2]int, err error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err = unix.Pipe(fds[:]); err == nil {
		unix.CloseOnExec(fds[0])
		unix.CloseOnExec(fds[1])
	}
	return fds, err
}

// own does nothing: elsewhere a pipe's owner does not decide who may open it by
// name.
func own(int, *proc.User) error { return nil }

// mayNice says whether this program may make its children less nice than itself.
func mayNice(int) bool { return os.Geteuid() == 0 }

// nameless makes a temporary file and unlinks it.
func nameless() (*os.File, error) {
	file, err := os.CreateTemp("", "command")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// access says whether a directory may be entered.
func access(dir string) error { return unix.Access(dir, unix.X_OK) }
