package auth

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// folder is an open directory that private files are written into. Everything
// goes through its descriptor, so that nobody can swap the directory meanwhile.
type folder struct {
	path string
	dir  *os.File
}

// openFolder opens the directory of a private file, making it 0700 if it is
// missing. It refuses a link, a directory of somebody else, and one that others
// may write to. The caller closes it.
func openFolder(path string) (*folder, error) {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(path, 0o700); err != nil {
			return nil, fmt.Errorf("the directory %s can't be made: %w", path, err)
		}
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOTDIR):
		return nil, fmt.Errorf("%s must be a directory, not a link or a file: name the real directory", path)
	case err != nil:
		return nil, fmt.Errorf("the directory %s can't be opened: %w", path, err)
	}
	f := &folder{path: path, dir: os.NewFile(uintptr(fd), path)}
	if err := f.check(); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

func (f *folder) check() error {
	info, err := f.dir.Stat()
	if err != nil {
		return fmt.Errorf("the directory %s can't be examined: %w", f.path, err)
	}
	if uid, ok := stranger(info); ok {
		return fmt.Errorf("the directory %s belongs to another user (uid %d): use a directory of your own", f.path, uid)
	}
	if perm := info.Mode().Perm(); perm&0o022 != 0 && info.Mode()&fs.ModeSticky == 0 {
		return fmt.Errorf("the directory %s may be written to by others (mode %04o): run chmod 700 %s", f.path, perm, f.path)
	}
	return nil
}

// lock keeps other writers of this directory's secrets out, until close.
func (f *folder) lock() error {
	for {
		err := unix.Flock(int(f.dir.Fd()), unix.LOCK_EX)
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("the directory %s can't be locked: %w", f.path, err)
		}
	}
}

// place writes a 0600 file under its name in one step: whoever looks sees the
// whole file or what was there before. Without replace, an existing name, even a
// dangling link, is fs.ErrExist and stays as it is.
func (f *folder) place(name string, data []byte, replace bool) (err error) {
	fd := int(f.dir.Fd())
	draft := ".draft-" + rand.Text()
	if err := f.draft(draft, data); err != nil {
		return err
	}
	if replace {
		err = unix.Renameat(fd, draft, fd, name)
	} else {
		err = unix.Linkat(fd, draft, fd, name, 0)
	}
	if err != nil || !replace {
		err = errors.Join(err, unix.Unlinkat(fd, draft, 0))
	}
	if err != nil {
		return fmt.Errorf("%s can't be put in place: %w", filepath.Join(f.path, name), err)
	}
	return f.dir.Sync()
}

func (f *folder) draft(name string, data []byte) (err error) {
	const flags = unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat(int(f.dir.Fd()), name, flags, 0o600)
	if err != nil {
		return fmt.Errorf("no file can be made in %s: %w", f.path, err)
	}
	file := os.NewFile(uintptr(fd), name)
	defer func() {
		err = errors.Join(err, file.Close())
		if err != nil {
			err = fmt.Errorf("no file can be written in %s: %w", f.path, errors.Join(err, unix.Unlinkat(int(f.dir.Fd()), name, 0)))
		}
	}()
	if err := file.Chmod(0o600); err != nil { // The umask may have taken our own rights.
		return err
	}
	if _, err := file.Write(data); err != nil {
		return err
	}
	return file.Sync()
}

func (f *folder) remove(name string) error {
	err := unix.Unlinkat(int(f.dir.Fd()), name, 0)
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("%s can't be removed: %w", filepath.Join(f.path, name), err)
	}
	return f.dir.Sync()
}

func (f *folder) close() { _ = f.dir.Close() }

// stranger gives the owner of a file if that is neither us nor root.
func stranger(info os.FileInfo) (uid uint32, is bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || stat.Uid == 0 || int(stat.Uid) == os.Geteuid() {
		return 0, false
	}
	return stat.Uid, true
}
