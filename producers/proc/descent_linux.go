package proc

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// descent is the net that knows a tree by who descends from its leader, whatever
// sessions that made. Whose parents die becomes a child of this program, and is still
// known if it was seen before; see [lineage] for those that were not.
type descent struct {
	*group
	lineage *lineage
	// born is when the leader was, in clock ticks, or a little earlier.
	born uint64
	// pipes are the leader's output by device and inode, as /proc/PID/fd shows it.
	pipes []string
	// stamp is what all of them bear, unless they changed it.
	stamp uint64
	// last are the members of the last pass, guarded by lineage.mu.
	last []Member
}

func (d *descent) empty() bool {
	return d.group.empty() && !d.lineage.left(d)
}

func (d *descent) release() {
	d.group.release()
	d.lineage.disown(d)
}

func (d *descent) members() ([]Member, error) {
	if p := d.host.procs.look(); p.err != nil {
		return nil, p.err
	}
	d.lineage.mu.Lock()
	defer d.lineage.mu.Unlock()
	return d.last, nil
}

// signal reaches who forks and exits all the time by its process group: with SIGKILL
// each group of which a member was just proven gets it as a whole.
func (d *descent) signal(sig syscall.Signal, members []Member) {
	d.group.signal(sig, members)
	if sig != syscall.SIGKILL {
		return
	}
	done := map[int]struct{}{d.sid: {}}
	for _, member := range members {
		if _, ok := done[member.group]; ok {
			continue
		}
		// The dead hold their group's number too, until they are reaped.
		if now, ok := statOf(member.PID); ok && now.start == member.start && now.group == member.group {
			done[member.group] = struct{}{}
			_ = syscall.Kill(-member.group, sig)
		}
	}
}

func statOf(pid int) (stat, bool) {
	var buf [1024]byte
	return readStat(unix.AT_FDCWD, "/proc/"+strconv.Itoa(pid), buf[:])
}

// ticks is now, as /proc/PID/stat counts.
func ticks() uint64 {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) != nil {
		return 0
	}
	const perSecond = 100 // what the kernel tells programs, on every architecture that Go knows
	return uint64(time.Duration(now.Nano()) / (time.Second / perSecond))
}

// markVariable is looked for in the environment of orphans: of a program's trees each
// has a value of its own.
const markVariable = "AFOOT_TASK_ID="

// markOf gives the mark in an environment that is separated by NUL; ok says that
// there is one.
func markOf(pid int) (mark string, ok bool) {
	environ, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return "", false
	}
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if value, ok := bytes.CutPrefix(entry, []byte(markVariable)); ok {
			return string(value), true
		}
	}
	return "", false
}

// pipeOf names a pipe as /proc shows it; "" if it is something else.
func pipeOf(fd uintptr) string {
	var stat unix.Stat_t
	if unix.Fstat(int(fd), &stat) != nil || stat.Mode&unix.S_IFMT != unix.S_IFIFO {
		return ""
	}
	return "pipe:[" + strconv.FormatUint(stat.Ino, 10) + "]"
}
