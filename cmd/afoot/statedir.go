package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// Names inside the state directory.
const (
	lockName   = "lock"
	listenName = "listen"
	outputName = "output"
	// journalName is the journal's, and begins the names of its other files.
	journalName = "journal.db"
	// remainsName is there while a daemon runs, or after it died.
	remainsName = "remains"
)

// openStateDir makes the state directory with mode 0700 whatever the umask, or
// takes the one that is there, and gives it as an open descriptor. A symbolic
// link, a directory of another user and a directory that others may enter are
// refused; only an empty one, or one that Afoot has used before, is closed to
// others instead.
func openStateDir(path string) (*os.File, error) {
	path = filepath.Clean(path)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOTDIR):
		return nil, fmt.Errorf("state directory %s is a symbolic link or a file: it must be a directory of its own", path)
	case err != nil:
		return nil, fmt.Errorf("state directory %s: %w", path, err)
	}
	dir := os.NewFile(uintptr(fd), path)
	if err := closeToOthers(dir); err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return dir, nil
}

// closeToOthers checks the owner, and takes the rights of everybody else away.
func closeToOthers(dir *os.File) error {
	info, err := dir.Stat()
	if err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("state directory %s belongs to user %d, and Afoot runs as user %d", dir.Name(), st.Uid, os.Geteuid())
	}
	mode := info.Mode().Perm()
	if mode == 0o700 {
		return nil
	}
	if mode&0o077 != 0 && !ours(dir) {
		return fmt.Errorf("state directory %s holds other things and is open to other users (mode %04o): name an own directory, or `chmod 700` this one", dir.Name(), mode)
	}
	if err := dir.Chmod(0o700); err != nil {
		return fmt.Errorf("state directory %s: %w", dir.Name(), err)
	}
	return nil
}

// ours reports whether the directory is empty or was used by Afoot before.
func ours(dir *os.File) bool {
	if _, err := os.Lstat(filepath.Join(dir.Name(), lockName)); err == nil {
		return true
	}
	_, err := dir.Readdirnames(1)
	return errors.Is(err, io.EOF)
}
