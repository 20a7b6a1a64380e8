package proc

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// limits is what was changed for trees to be limited.
type limits struct {
	mu sync.Mutex
	// moved says that this program went into a group of its own.
	moved bool
	// here and below are the controllers that were enabled in the program's former
	// group and in the host's.
	here, below []string
}

// leaf is the group that this program moves into. A group that hands controllers down
// may hold no process itself, unless it is the root.
const leaf = "daemon"

// enable has the controllers handed down to the groups of trees. The error says in
// words why that can't be.
func (c *cgroups) enable(memory, pids bool) error {
	for _, want := range []struct {
		wanted bool
		name   string
	}{{memory, "memory"}, {pids, "pids"}} {
		if want.wanted {
			if err := c.enableOne(want.name); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *cgroups) enableOne(name string) error {
	l := &c.limits
	l.mu.Lock()
	defer l.mu.Unlock()
	if slices.Contains(l.below, name) {
		return nil
	}
	if !listed(c.home.dir, "cgroup.controllers", name) {
		return fmt.Errorf("the %s controller is not available in this daemon's control group (version 2)", name)
	}
	if !listed(c.home.dir, "cgroup.subtree_control", name) {
		if err := c.handDown(c.home.dir, name); err != nil {
			return err
		}
		l.here = append(l.here, name)
	}
	if err := control(c.dir(), "+"+name); err != nil {
		return fmt.Errorf("the %s controller can't be handed down: %w", name, errno(err))
	}
	l.below = append(l.below, name)
	return nil
}

// handDown enables a controller in the program's own group. If the program is alone
// in it, it goes into one of its own below.
func (c *cgroups) handDown(dir, name string) error {
	err := control(dir, "+"+name)
	if err == nil {
		return nil
	}
	if !errors.Is(err, unix.EBUSY) || c.limits.moved {
		return fmt.Errorf("the %s controller is not delegated to this daemon: %w", name, errno(err))
	}
	procs, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return fmt.Errorf("the daemon's control group can't be read: %w", errno(err))
	}
	others := slices.DeleteFunc(strings.Fields(string(procs)), ownHelper)
	if others = slices.DeleteFunc(others, func(pid string) bool { return pid == strconv.Itoa(os.Getpid()) }); len(others) > 0 {
		return fmt.Errorf("the daemon shares its control group with %d other processes, so the %s controller can't be handed down", len(others), name)
	}
	below := filepath.Join(c.dir(), leaf)
	if err := os.Mkdir(below, 0o750); err != nil {
		return fmt.Errorf("no control group can be made: %w", errno(err))
	}
	if err := move(dir, below); err != nil {
		return fmt.Errorf("the daemon can't change its control group: %w", errors.Join(errno(err), move(below, dir), removeGroup(below)))
	}
	if err := control(dir, "+"+name); err != nil {
		return fmt.Errorf("the %s controller is not delegated to this daemon: %w", name, errors.Join(errno(err), move(below, dir), removeGroup(below)))
	}
	c.limits.moved = true
	return nil
}

// undo goes back, best effort.
func (l *limits) undo(c *cgroups) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range l.below {
		_ = control(c.dir(), "-"+name)
	}
	for _, name := range l.here {
		_ = control(c.home.dir, "-"+name)
	}
	if l.moved {
		_ = move(filepath.Join(c.dir(), leaf), c.home.dir)
	}
	l.moved, l.here, l.below = false, nil, nil
}

// limit sets the limits of an open, empty group.
func limit(dir int, memoryMax, pidsMax int64) error {
	for _, set := range []struct {
		file  string
		value int64
	}{{"memory.max", memoryMax}, {"pids.max", pidsMax}} {
		if set.value <= 0 {
			continue
		}
		if err := writeAt(dir, set.file, strconv.FormatInt(set.value, 10)); err != nil {
			return err
		}
	}
	if memoryMax > 0 {
		// A task that lacks memory ends as a whole; older kernels don't know that.
		_ = writeAt(dir, "memory.oom.group", "1")
	}
	return nil
}

func writeAt(dir int, name, value string) error {
	fd, err := unix.Openat(dir, name, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("open", err)
	}
	defer func() { _ = unix.Close(fd) }()
	_, err = unix.Write(fd, []byte(value))
	return os.NewSyscallError("write", err)
}

func listed(dir, file, name string) bool {
	data, err := os.ReadFile(filepath.Join(dir, file))
	return err == nil && slices.Contains(strings.Fields(string(data)), name)
}

func control(dir, change string) error {
	return os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte(change), 0)
}

// ownHelper tells that a process is a child of this program: in its own group, where no
// tree is, that is one that it runs for itself, such as a watchdog.
func ownHelper(pid string) bool {
	number, err := strconv.Atoi(pid)
	if err != nil {
		return false
	}
	s, ok := statOf(number)
	return ok && s.parent == os.Getpid()
}

// move moves everybody from a group into another: this program, with its helpers.
func move(from, to string) error {
	procs, err := os.ReadFile(filepath.Join(from, "cgroup.procs"))
	if err != nil {
		return err
	}
	for pid := range strings.FieldsSeq(string(procs)) {
		err := os.WriteFile(filepath.Join(to, "cgroup.procs"), []byte(pid), 0)
		if err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	return nil
}
