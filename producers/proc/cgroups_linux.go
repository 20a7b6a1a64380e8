package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// basePrefix begins the name of each host's own group.
	basePrefix = "afoot-"
)

// cgroups makes a control group for each tree, all below one group of this host, which
// is locked as long as the host lives.
type cgroups struct {
	logger *slog.Logger
	// home is the program's own group, base the host's below it.
	home home
	base string
	lock *os.File

	stock   stock
	touched touches

	limits limits
}

// openCgroups makes the host's group, and removes what dead hosts left.
func openCgroups(logger *slog.Logger) (*cgroups, error) {
	homes, err := findHomes()
	if err != nil {
		return nil, err
	}
	for _, at := range homes {
		c := &cgroups{logger: logger, home: at}
		c.touched.init()
		if err = c.open(); err == nil {
			c.removeStale()
			return c, nil
		}
		c.touched.close()
	}
	return nil, fmt.Errorf("no control group can be made in %s: %w", homes[len(homes)-1].name, err)
}

func (c *cgroups) open() error {
	kind, err := os.ReadFile(filepath.Join(c.home.dir, "cgroup.type"))
	if err == nil && string(kind) != "domain\n" {
		return fmt.Errorf("it is of the type %s", strings.TrimSpace(string(kind)))
	}
	for n := range 1000 {
		c.base = fmt.Sprintf("%s%d-%d", basePrefix, os.Getpid(), n)
		err := os.Mkdir(c.dir(), 0o750)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return errno(err)
		}
		if c.lock, err = lockGroup(c.dir()); err != nil {
			continue // somebody took it for a dead host's, and removes it
		}
		if err := c.try(); err != nil {
			return errors.Join(err, c.close())
		}
		return nil
	}
	return errors.New("all names are taken")
}

// try has a child born into a group, one that can't find its program.
func (c *cgroups) try() error {
	p, err := c.take(0, 0)
	if err != nil {
		return errno(err)
	}
	pid, err := syscall.ForkExec("", []string{""}, &syscall.ProcAttr{
		Sys: &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: p.dir},
	})
	_ = unix.Close(p.dir)
	c.giveBack(p.seq, false)
	switch {
	case err == nil:
		// Seen where cgroup.kill was once written to this program's own group.
		_, _ = reap(pid)
		return errors.New("the kernel kills processes that are started in it")
	case !errors.Is(err, unix.ENOENT):
		return fmt.Errorf("no process can be started in it: %w", errno(err))
	}
	return nil
}

// close removes all groups that are empty.
func (c *cgroups) close() error {
	c.pause()
	c.removeAll()
	c.limits.undo(c)
	c.touched.close()
	_ = removeGroup(c.dir()) // it stays as long as somebody lives in it
	return c.lock.Close()
}

func (c *cgroups) dir() string { return filepath.Join(c.home.dir, c.base) }

func groupName(seq uint64) string { return "t" + strconv.FormatUint(seq, 10) }

// removeStale removes the groups of hosts that are dead, whose lock is free, and ends
// who is left in them.
func (c *cgroups) removeStale() {
	entries, err := os.ReadDir(c.home.dir)
	if err != nil {
		return
	}
	for _, entry := range entries {
		if !entry.IsDir() || !strings.HasPrefix(entry.Name(), basePrefix) || entry.Name() == c.base {
			continue
		}
		dir := filepath.Join(c.home.dir, entry.Name())
		lock, err := lockGroup(dir)
		if err != nil {
			continue
		}
		if err := removeGroup(dir); err != nil {
			c.endStale(lock, dir)
		}
		_ = lock.Close()
	}
}

// lockGroup locks a group's directory. The lock ends with the process that has it,
// whatever its number and its PID namespace.
func lockGroup(dir string) (*os.File, error) {
	file, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if _, err := os.Stat(dir); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// removeGroup removes a group and those in it; it fails if one has a process.
func removeGroup(dir string) error {
	err := unix.Rmdir(dir)
	if !errors.Is(err, unix.EBUSY) && !errors.Is(err, unix.ENOTEMPTY) {
		if errors.Is(err, unix.ENOENT) {
			return nil
		}
		return err
	}
	entries, readErr := os.ReadDir(dir)
	if readErr != nil {
		return readErr
	}
	for _, entry := range entries {
		if entry.IsDir() {
			_ = removeGroup(filepath.Join(dir, entry.Name()))
		}
	}
	return unix.Rmdir(dir)
}

// openAt opens something below the host's group.
func (c *cgroups) openAt(name string, flags int) (int, error) {
	fd, err := unix.Openat(int(c.lock.Fd()), name, flags|unix.O_CLOEXEC, 0)
	return fd, os.NewSyscallError("open", err)
}

// errno strips the path that Go adds.
func errno(err error) error {
	if number, ok := errors.AsType[syscall.Errno](err); ok {
		return number
	}
	return err
}
