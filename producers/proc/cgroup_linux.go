package proc

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// cgroup is the net that knows a tree by its control group, which no process leaves
// by itself. Only a process that may write to another group moves there (one of root,
// or of the daemon's own user where groups were delegated to that); see [outside].
type cgroup struct {
	*group
	groups *cgroups

	mu sync.Mutex
	// seq names the group; 0: it was given back.
	seq uint64
	// seenEmpty says that nobody lived in the group any more at the last look.
	seenEmpty bool
	outside   outside
}

// vacant reads cgroup.events. Nobody there for an empty group is final: processes are
// born beside others only.
func (c *cgroup) vacant() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seq == 0 {
		return true
	}
	fd, err := c.groups.openAt(groupName(c.seq)+"/"+eventsFile, unix.O_RDONLY)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENODEV):
		return true // removed by somebody, and so empty
	case err != nil:
		return c.vanishLocked()
	}
	defer func() { _ = unix.Close(fd) }()
	c.seenEmpty = !populated(fd)
	return c.seenEmpty
}

// eventsFile tells whether somebody lives in a group or below it.
const eventsFile = "cgroup.events"

// populated reads an open cgroup.events; a group that was removed meanwhile is empty.
func populated(events int) bool {
	var buf [128]byte
	n, err := unix.Read(events, buf[:])
	return !errors.Is(err, unix.ENODEV) && !bytes.Contains(buf[:max(n, 0)], []byte("populated 0"))
}

// vanishLocked removes the group if it is empty; that takes no descriptor.
func (c *cgroup) vanishLocked() bool {
	if unix.Rmdir(filepath.Join(c.groups.dir(), groupName(c.seq))) != nil {
		return false
	}
	c.seq = 0
	return true
}

func (c *cgroup) empty() bool {
	return c.vacant() && c.deserted()
}

// inhabited tells for sure that somebody lives in the group, by one look at it.
func (c *cgroup) inhabited() bool { return !c.vacant() }

func (c *cgroup) release() {
	c.group.release()
	c.mu.Lock()
	seq, seenEmpty := c.seq, c.seenEmpty
	c.seq = 0
	c.mu.Unlock()
	if seq != 0 {
		c.groups.giveBack(seq, seenEmpty)
	}
}

func (c *cgroup) current() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seq
}

func (c *cgroup) members() ([]Member, error) {
	var members []Member
	if seq := c.current(); seq != 0 {
		var err error
		if members, err = c.groups.members(groupName(seq)); err != nil {
			return nil, err
		}
	}
	if len(members) == 0 && c.deserted() {
		return nil, nil
	}
	p := c.host.procs.look()
	if p.err != nil {
		return nil, p.err
	}
	others := c.outsiders(p, members)
	c.host.roll.learn(&c.listed, others, c.reaped.Load())
	return append(members, others...), nil
}

// signal reaches the whole group with SIGKILL, also who is being born into it.
func (c *cgroup) signal(sig syscall.Signal, members []Member) {
	if sig == syscall.SIGKILL {
		c.kill()
	}
	c.group.signal(sig, members)
}

// kill kills the whole group. Older kernels have no such file; there each member is
// signalled alone.
func (c *cgroup) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seq == 0 {
		return
	}
	if fd, err := c.groups.openAt(groupName(c.seq)+"/cgroup.kill", unix.O_WRONLY); err == nil {
		_, _ = unix.Write(fd, []byte("1"))
		_ = unix.Close(fd)
	}
}

// members lists who lives in a group and in those below it.
func (c *cgroups) members(name string) (members []Member, err error) {
	procs, err := os.ReadFile(filepath.Join(c.dir(), name, "cgroup.procs"))
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENODEV):
		return nil, nil // removed, and so empty
	case err != nil && !errors.Is(err, unix.EOPNOTSUPP): // of threads: a group above names them
		return nil, err
	}
	for field := range strings.FieldsSeq(string(procs)) {
		pid, err := strconv.Atoi(field)
		if err != nil || pid == 0 { // of a PID namespace that can't be seen from here
			continue
		}
		member, ok, err := c.member(pid, name)
		if err != nil {
			return nil, err
		}
		if ok {
			members = append(members, member)
		}
	}
	entries, err := os.ReadDir(filepath.Join(c.dir(), name))
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return nil, err
	}
	for _, entry := range entries {
		if entry.IsDir() {
			below, err := c.members(filepath.Join(name, entry.Name()))
			if err != nil {
				return nil, err
			}
			members = append(members, below...)
		}
	}
	return members, nil
}

// member proves that a process is in a group, and when it was started. One that is
// gone meanwhile, or another of that number, is no member.
func (c *cgroups) member(pid int, name string) (Member, bool, error) {
	dir, err := unix.Open("/proc/"+strconv.Itoa(pid), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return Member{}, false, nil
	}
	if err != nil {
		return Member{}, false, os.NewSyscallError("open", err)
	}
	defer func() { _ = unix.Close(dir) }()
	var buf [4096]byte
	s, ok, err := tryStat(dir, ".", buf[:])
	if err != nil || !ok || s.dead {
		return Member{}, false, err
	}
	n, err := readAt(dir, "cgroup", buf[:])
	if lacking(err) {
		return Member{}, false, err
	}
	if err != nil {
		return Member{}, false, nil // it is gone
	}
	full := bytes.TrimSuffix([]byte(c.home.name), []byte("/"))
	full = append(append(append(full, '/'), c.base...), '/')
	full = append(full, name...)
	in, ok := unifiedName(string(buf[:n]))
	rest, below := strings.CutPrefix(in, string(full))
	return s.member(), ok && below && (rest == "" || rest[0] == '/'), nil
}
