package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// basePrefix begins the name of each host's own group.
	basePrefix = "afoot-"
	// idleGroups is how many empty groups wait to be used again. That costs nothing,
	// making and removing one is work for the kernel.
	idleGroups = 256
	// quietGroup is what cgroup.events says of a group that may be used again.
	quietGroup = "populated 0\nfrozen 0\n"
)

// cgroups makes a control group for each tree, all below one group of this host, which
// is locked as long as the host lives.
type cgroups struct {
	logger *slog.Logger
	// home is the program's own group, base the host's below it.
	home home
	base string
	lock *os.File

	work sync.WaitGroup
	mu   sync.Mutex
	seq  uint64
	idle []uint64
	// doomed are to be removed, as soon as they are empty.
	doomed  []uint64
	working bool
	closed  bool

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
		if err = c.open(); err == nil {
			c.removeStale()
			return c, nil
		}
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
	c.giveBack(p.seq, errors.Is(err, unix.ENOENT))
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
	c.mu.Lock()
	c.closed = true
	c.doomed = append(c.doomed, c.idle...)
	c.idle = nil
	c.mu.Unlock()
	c.work.Wait()
	c.removeDoomed()
	c.limits.undo(c)
	_ = removeGroup(c.dir()) // it stays as long as somebody lives in it
	return c.lock.Close()
}

func (c *cgroups) dir() string { return filepath.Join(c.home.dir, c.base) }

func groupName(seq uint64) string { return "t" + strconv.FormatUint(seq, 10) }

// take gives an empty group, open.
func (c *cgroups) take(memoryMax, pidsMax int64) (*place, error) {
	limited := memoryMax > 0 || pidsMax > 0
	for {
		seq, made, err := c.pick(limited)
		if err != nil {
			return nil, os.NewSyscallError("mkdir", err)
		}
		dir, err := c.openAt(groupName(seq), unix.O_DIRECTORY|unix.O_RDONLY)
		if errors.Is(err, unix.ENOENT) && !made {
			continue // somebody removed it
		}
		if err == nil && limited {
			if err = limit(dir, memoryMax, pidsMax); err != nil {
				_ = unix.Close(dir)
			}
		}
		if err != nil {
			c.giveBack(seq, !limited)
			return nil, err
		}
		return &place{seq: seq, dir: dir, limited: limited}, nil
	}
}

// pick gives an idle group, or makes one.
func (c *cgroups) pick(anew bool) (seq uint64, made bool, err error) {
	c.mu.Lock()
	if n := len(c.idle); n > 0 && !anew {
		seq, c.idle = c.idle[n-1], c.idle[:n-1]
		c.mu.Unlock()
		return seq, false, nil
	}
	c.seq++
	seq = c.seq
	c.mu.Unlock()
	err = unix.Mkdirat(int(c.lock.Fd()), groupName(seq), 0o755)
	return seq, true, err
}

// giveBack takes an empty group, to be used again if it is as it was made. It does
// not wait for a removal.
func (c *cgroups) giveBack(seq uint64, again bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if again && len(c.idle) < idleGroups && !c.closed {
		c.idle = append(c.idle, seq)
		return
	}
	c.doomed = append(c.doomed, seq)
	if !c.working && !c.closed {
		c.working = true
		c.work.Go(func() {
			c.removeDoomed()
			c.mu.Lock()
			defer c.mu.Unlock()
			c.working = false
		})
	}
}

// removeDoomed removes what it can. Who can't be removed is tried again when the
// next one is given back.
func (c *cgroups) removeDoomed() {
	c.mu.Lock()
	doomed := c.doomed
	c.doomed = nil
	c.mu.Unlock()
	doomed = slices.DeleteFunc(doomed, func(seq uint64) bool {
		return removeGroup(filepath.Join(c.dir(), groupName(seq))) == nil
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.doomed = append(c.doomed, doomed...)
}

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
