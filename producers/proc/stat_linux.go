package proc

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// stat is what one process's /proc/PID/stat says.
type stat struct {
	pid, parent, group, session int
	// start is in clock ticks since the machine began.
	start uint64
	dead  bool
	// exiting says that it is on its way out, and not dead yet.
	exiting bool
}

func (s stat) member() Member {
	return Member{PID: s.pid, start: s.start, group: s.group, exiting: s.exiting}
}

// flagExiting is PF_EXITING, which the kernel shows among a thread's flags.
const flagExiting = 0x4

// Positions in /proc/PID/stat, counted behind the command's bracket.
const (
	statState   = 0
	statParent  = 1
	statGroup   = 2
	statSession = 3
	statFlags   = 6
	statThreads = 17
	statStart   = 19
)

// readStat reads one process; false means that there is none of that number, or that
// it can't be read.
func readStat(proc int, pid string, buf []byte) (stat, bool) {
	s, ok, err := tryStat(proc, pid, buf)
	return s, ok && err == nil
}

// tryStat reads one process. An error means that this program lacks what it takes.
func tryStat(proc int, pid string, buf []byte) (stat, bool, error) {
	n, err := readAt(proc, pid+"/stat", buf)
	if lacking(err) {
		return stat{}, false, err
	}
	s, ok := parseStat(buf[:n]) // of nothing, if it is gone
	return s, ok, nil
}

// readAt reads the beginning of a file.
func readAt(dir int, name string, buf []byte) (int, error) {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, os.NewSyscallError("open", err)
	}
	n, err := unix.Read(fd, buf)
	_ = unix.Close(fd)
	return max(n, 0), os.NewSyscallError("read", err)
}

// lacking tells that an error is no word about what was asked for.
func lacking(err error) bool {
	return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) || errors.Is(err, unix.ENOMEM)
}

func parseStat(line []byte) (stat, bool) {
	pid, _, ok := bytes.Cut(line, []byte(" ("))
	// The command may hold anything, brackets too; nothing behind it does.
	i := bytes.LastIndexByte(line, ')')
	if !ok || i < 0 {
		return stat{}, false
	}
	fields := bytes.Fields(line[i+1:])
	if len(fields) <= statStart || len(fields[statState]) != 1 {
		return stat{}, false
	}
	number := func(field []byte) int {
		n, err := strconv.Atoi(string(field))
		ok = ok && err == nil
		return n
	}
	s := stat{
		pid:     number(pid),
		parent:  number(fields[statParent]),
		group:   number(fields[statGroup]),
		session: number(fields[statSession]),
		start:   uint64(number(fields[statStart])),
	}
	// A leader whose other threads run on looks like a zombie.
	alone := number(fields[statThreads]) <= 1
	switch fields[statState][0] {
	case 'X', 'x':
		s.dead = true
	case 'Z':
		s.dead = alone
	default:
		s.exiting = alone && number(fields[statFlags])&flagExiting != 0
	}
	return s, ok
}

// Name gives the short name of a process; empty once it is gone. Unlike [Member.Command]
// it never waits for a process that hangs in the kernel.
func (m Member) Name() string {
	name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", m.PID))
	return strings.ToValidUTF8(strings.TrimSpace(string(name)), "\uFFFD")
}

// Command gives a process's command line for people, at most limit bytes; empty
// once it is gone.
func (m Member) Command(limit int) string {
	dir := fmt.Sprintf("/proc/%d/", m.PID)
	line, err := os.ReadFile(dir + "cmdline")
	if err != nil || len(line) == 0 {
		line, _ = os.ReadFile(dir + "comm")
	}
	text := strings.TrimSpace(string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
	if len(text) > limit {
		text = text[:limit]
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}
