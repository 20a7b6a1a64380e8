package proc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// endGroup kills everybody in a dead host's control group and in all below it, and
// removes them. That the host is dead is proven by its lock, which is free then: it is
// taken here. A group of that name with another inode is somebody else's.
func endGroup(ctx context.Context, dir string, inode uint64) (ended int, err error) {
	lock, err := lockDead(ctx, dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
			return 0, nil // it was empty, and is removed
		}
		return 0, err
	}
	defer func() { _ = lock.Close() }()
	var now unix.Stat_t
	if err := unix.Fstat(int(lock.Fd()), &now); err != nil {
		return 0, os.NewSyscallError("fstat", err)
	}
	if inode != 0 && now.Ino != inode {
		return 0, nil
	}
	return endLocked(ctx, lock, dir)
}

// lockDead takes the lock of a group. The host's end frees it a moment after it closed
// its other descriptors.
func lockDead(ctx context.Context, dir string) (*os.File, error) {
	for {
		lock, err := lockGroup(dir)
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return lock, err
		}
		if sleep(shortestPause, ctx.Done()) {
			return nil, fmt.Errorf("the control group %s is held by a live program", dir)
		}
	}
}

// endLocked ends a group whose lock is held here, by its open directory.
func endLocked(ctx context.Context, lock *os.File, dir string) (ended int, err error) {
	open := fmt.Sprintf("/proc/self/fd/%d", lock.Fd())
	met := make(map[string]struct{})
	for pause := shortestPause; ; pause = min(2*pause, longestPause) {
		left := killGroup(open, true, met)
		if left == 0 {
			_ = removeGroup(dir)
			return len(met), nil
		}
		if sleep(pause, ctx.Done()) {
			return len(met), fmt.Errorf("%d processes in the control group %s don't end", left, dir)
		}
	}
}

// killGroup kills who is in a group, and counts who is there; the dead that nobody has
// reaped yet are not. The group of the host itself is not killed as a whole: this
// program may be in it.
func killGroup(dir string, top bool, met map[string]struct{}) (left int) {
	self := strconv.Itoa(os.Getpid())
	procs, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs")) // one of threads has none: the group above names them
	mine := false
	for pid := range strings.FieldsSeq(string(procs)) {
		if pid == self {
			mine = true
			continue
		}
		met[pid] = struct{}{}
		left++
	}
	whole := !top && !mine && os.WriteFile(filepath.Join(dir, "cgroup.kill"), []byte("1"), 0) == nil
	if !whole {
		for pid := range strings.FieldsSeq(string(procs)) {
			if number, err := strconv.Atoi(pid); err == nil && number > 0 && pid != self {
				killIn(number, dir)
			}
		}
	}
	entries, _ := os.ReadDir(dir)
	for _, entry := range entries {
		if entry.IsDir() {
			left += killGroup(filepath.Join(dir, entry.Name()), false, met)
		}
	}
	return left
}

// killIn kills one process, if it is in the group: the kernel has no cgroup.kill before
// Linux 5.14.
func killIn(pid int, dir string) {
	pidfd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer func() { _ = unix.Close(pidfd) }()
	// The pidfd holds whoever has the number now; only then the group is asked.
	procs, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return
	}
	for field := range strings.FieldsSeq(string(procs)) {
		if field == strconv.Itoa(pid) {
			_ = unix.PidfdSendSignal(pidfd, unix.SIGKILL, nil, 0)
		}
	}
}

// staleGrace bounds the end of what earlier hosts left in their groups.
const staleGrace = 2 * time.Second

// endStale ends who is left in the group of an earlier host.
func (c *cgroups) endStale(lock *os.File, dir string) {
	ctx, cancel := context.WithTimeout(context.Background(), staleGrace)
	defer cancel()
	ended, err := endLocked(ctx, lock, dir)
	if err != nil {
		c.logger.Error("an earlier daemon's processes are left", "file", dir, "error", err.Error())
		return
	}
	c.logger.Warn("processes of an earlier daemon were ended", "count", ended, "file", dir)
}
