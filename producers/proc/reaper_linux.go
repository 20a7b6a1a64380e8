package proc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// reaperPause gives those who started a child the time to reap it themselves, and
// makes one sweep of a storm of ends.
const reaperPause = 20 * time.Millisecond

// reaper makes this program the parent of orphans below it, and reaps them. It takes
// no status that somebody waits for. Whoever was forked by this program is in its
// session still, or made one and bears its number; who is in a session of somebody
// else is an orphan. Where orphans look like children, those are left alone for which
// the program holds a pidfd, as os/exec does for each child until it was waited for.
type reaper struct {
	nets          *nets
	self, session int
	// undo says that this host was the first to ask for orphans.
	undo    bool
	signals chan os.Signal
	quit    chan struct{}
	done    chan struct{}

	mu   sync.Mutex
	list *os.File // nil where the kernel has no such file
}

// newReaper takes orphans from now on. They are reaped as soon as run is.
func newReaper(n *nets) (*reaper, error) {
	if err := ownProc(); err != nil {
		return nil, err
	}
	fd, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return nil, fmt.Errorf("this kernel has no pidfds: %w", err)
	}
	_ = unix.Close(fd)
	r := &reaper{
		nets: n, self: os.Getpid(),
		signals: make(chan os.Signal, 1), quit: make(chan struct{}), done: make(chan struct{}),
	}
	if r.session, err = unix.Getsid(0); err != nil {
		return nil, os.NewSyscallError("getsid", err)
	}
	var before int32
	if err := unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&before)), 0, 0, 0); err != nil { //nolint:gosec // the kernel writes it during the call
		return nil, fmt.Errorf("this kernel has no subreapers: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become a subreaper: %w", err)
	}
	r.undo = before == 0
	// Orphans go to the first thread, which a Go program never ends.
	pid := strconv.Itoa(r.self)
	r.list, _ = os.Open("/proc/" + pid + "/task/" + pid + "/children")
	signal.Notify(r.signals, syscall.SIGCHLD)
	return r, nil
}

func (r *reaper) close() {
	close(r.quit)
	<-r.done
	r.sweep()
	r.stop()
}

// stop gives back what newReaper took.
func (r *reaper) stop() {
	signal.Stop(r.signals)
	if r.undo {
		_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
	}
	if r.list != nil {
		_ = r.list.Close()
	}
}

func (r *reaper) run() {
	defer close(r.done)
	for {
		select {
		case <-r.signals:
		case <-r.quit:
			return
		}
		if sleep(reaperPause, r.quit) {
			return
		}
		r.sweep()
	}
}

// sweep reaps all dead orphans, and reports how many there were.
func (r *reaper) sweep() (reaped int) {
	if !someoneDied() {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var held map[int]struct{}
	children, _ := r.childrenLocked() // what can't be read now is read the next time
	for _, s := range children {
		if !s.dead {
			continue
		}
		if (s.session == s.pid || s.session == r.session) && !r.nets.knows(s) {
			if held == nil {
				held = pidfds()
			}
			if _, ok := held[s.pid]; ok || held == nil {
				continue
			}
		}
		// It is a child, dead, and nobody else's: no other process can have its number.
		pid, err := syscall.Wait4(s.pid, nil, syscall.WNOHANG, nil)
		for errors.Is(err, syscall.EINTR) {
			pid, err = syscall.Wait4(s.pid, nil, syscall.WNOHANG, nil)
		}
		if pid == s.pid {
			reaped++
		}
	}
	return reaped
}

// orphans lists children that are no leaders and outside of this program's session,
// dead ones too. It is no snapshot.
func (r *reaper) orphans() ([]stat, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	found, err := r.childrenLocked()
	return slices.DeleteFunc(found, func(s stat) bool { return !r.orphan(s) }), err
}

// orphan tells that a process may be an orphan of a tree.
func (r *reaper) orphan(s stat) bool { return s.session != r.session && r.child(s) }

// child tells that a process is a child of this program, and no leader.
func (r *reaper) child(s stat) bool { return s.parent == r.self && !r.nets.leads(s.pid) }

// childrenLocked lists children that are no leaders, dead ones too.
func (r *reaper) childrenLocked() (found []stat, err error) {
	if r.list == nil {
		p := r.nets.host.procs.look()
		for _, s := range p.all {
			if r.child(s) {
				found = append(found, s)
			}
		}
		return found, p.err
	}
	numbers, err := r.numbersLocked()
	var buf [1024]byte
	for _, pid := range numbers {
		if r.nets.leads(pid) {
			continue
		}
		s, ok, lack := tryStat(unix.AT_FDCWD, "/proc/"+strconv.Itoa(pid), buf[:])
		err = errors.Join(err, lack)
		if ok && r.child(s) {
			found = append(found, s)
		}
	}
	return found, err
}

func (r *reaper) numbersLocked() ([]int, error) {
	// Read by position: it begins anew each time. Its size is not known ahead.
	text, err := io.ReadAll(io.NewSectionReader(r.list, 0, math.MaxInt32))
	var pids []int
	for field := range bytes.FieldsSeq(text) {
		if pid, err := strconv.Atoi(string(field)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, err
}

// someoneDied reports whether any child waits to be reaped, and leaves it so.
func someoneDied() bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return errors.Is(err, unix.EINTR) || err == nil && info.Signo != 0
}

// pidfds lists the processes of which this program holds a descriptor; nil if that
// can't be seen.
func pidfds() map[int]struct{} {
	held := make(map[int]struct{})
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil
	}
	for _, entry := range entries {
		link, err := os.Readlink("/proc/self/fd/" + entry.Name())
		if err != nil || !strings.Contains(link, "pidfd") {
			continue
		}
		info, err := os.ReadFile("/proc/self/fdinfo/" + entry.Name())
		if errors.Is(err, fs.ErrNotExist) {
			continue // closed meanwhile
		}
		if err != nil {
			return nil
		}
		_, rest, _ := bytes.Cut(info, []byte("\nPid:"))
		line, _, _ := bytes.Cut(rest, []byte("\n"))
		if pid, err := strconv.Atoi(string(bytes.TrimSpace(line))); err == nil {
			held[pid] = struct{}{}
		}
	}
	return held
}
