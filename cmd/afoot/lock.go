package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// lockStateDir takes the directory for this daemon until the file is closed or
// the process ends, however it ends. The file stays: removing it would let two
// daemons hold locks on two files of one name.
func lockStateDir(dir *os.File) (*os.File, error) {
	name := dir.Name() + "/" + lockName
	fd, err := unix.Openat(int(dir.Fd()), lockName, unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock file %s: %w", name, err)
	}
	lock := os.NewFile(uintptr(fd), name)
	if err := takeLock(lock, dir.Name()); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

func takeLock(lock *os.File, dir string) error {
	if info, err := lock.Stat(); err != nil {
		return fmt.Errorf("lock file: %w", err)
	} else if !info.Mode().IsRegular() {
		return fmt.Errorf("lock file %s is not a plain file", lock.Name())
	}
	err := flock(lock)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return fmt.Errorf("another daemon (%s) holds the state directory %s: stop it, or give this one another AFOOT_STATE_DIR", holder(lock), dir)
	}
	if err != nil {
		return fmt.Errorf("lock file %s: %w", lock.Name(), err)
	}
	if err := lock.Chmod(0o600); err != nil {
		return fmt.Errorf("lock file: %w", err)
	}
	pid := strconv.Itoa(os.Getpid()) + "\n"
	_, err = lock.WriteAt([]byte(pid), 0)
	if noRoom(err) {
		return nil // it is locked, and only its holder's name is missing
	}
	if err = errors.Join(err, lock.Truncate(int64(len(pid)))); err != nil {
		return fmt.Errorf("lock file: %w", err)
	}
	return nil
}

// lockPatience is how long a lock may outlive the daemon that held it: a process that is
// about to run a command has, until it does, all that its daemon had.
const lockPatience = time.Second

// flock takes the lock, or gives EWOULDBLOCK if it stays with somebody else.
func flock(lock *os.File) error {
	deadline := time.Now().Add(lockPatience)
	for {
		err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) || time.Now().After(deadline) {
			return err
		}
		<-time.After(10 * time.Millisecond) // nobody tells of its end
	}
}

// holder names the process that wrote the lock file.
func holder(lock *os.File) string {
	text, err := io.ReadAll(io.LimitReader(lock, 32))
	pid := strings.TrimSpace(string(text))
	if _, numErr := strconv.Atoi(pid); err != nil || numErr != nil {
		return "its process id is not known yet"
	}
	return "process " + pid
}
