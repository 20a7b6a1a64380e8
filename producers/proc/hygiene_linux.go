package proc

import (
	"bufio"
	"bytes"
	"math"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// hygiene keeps what this program inherited from its own parent (nohup, a
// supervisor, a shell's background job) away from children.
type hygiene struct {
	handled chan os.Signal
	ignored []os.Signal
	// blocked says that this program was started with signals blocked.
	blocked bool
	// protected says that the kernel spares this program when it lacks memory.
	protected bool
}

func (h *hygiene) init() {
	// Older kernels don't know the flag; then inherited descriptors stay open.
	_ = unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC)
	ignored, blocked := signalSets()
	h.blocked = blocked != 0
	for n := 1; n <= 64; n++ {
		if ignored>>(n-1)&1 == 1 {
			h.ignored = append(h.ignored, syscall.Signal(n))
		}
	}
	if len(h.ignored) > 0 {
		// Nobody reads the channel: the signals stay without effect here. But a handled
		// signal is reset by exec, an ignored one is not.
		h.handled = make(chan os.Signal, 1)
		signal.Notify(h.handled, h.ignored...)
	}
	resetReserved()
	score, _ := os.ReadFile("/proc/self/oom_score_adj")
	h.protected = bytes.HasPrefix(score, []byte("-"))
	if os.Geteuid() != 0 {
		_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) // never fails
	}
}

// resetReserved gives the default back to the signals that the C library keeps
// for itself. The runtime leaves them alone, and GNU make's children, say, come
// with them ignored.
func resetReserved() {
	ignored, _ := signalSets()
	var action [32]byte // a sigaction of zeros: the default, on every architecture
	for _, n := range []uintptr{32, 33, 34} {
		if ignored>>(n-1)&1 == 1 {
			_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, n, uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0) //nolint:gosec // the kernel reads it during the call
		}
	}
}

func (h *hygiene) close() {
	if h.handled != nil {
		signal.Stop(h.handled)
	}
}

// fork is syscall.ForkExec with no signal blocked in the child, which is nicer by
// that much from its first instruction on, and no better protected from a lack of
// memory than others are.
func (h *hygiene) fork(path string, args []string, attr *syscall.ProcAttr, nice int) (pid int, err error) {
	if nice == 0 {
		pid, err = h.forkHere(path, args, attr)
	} else {
		onOwnThread(func() {
			// A thread has a nice value of its own, and its child begins with it.
			if err = benice(nice); err == nil {
				pid, err = h.forkHere(path, args, attr)
			}
		})
	}
	if err == nil && h.protected {
		// It has been running for a moment. Who of it was born in that is protected too.
		_ = os.WriteFile("/proc/"+strconv.Itoa(pid)+"/oom_score_adj", []byte("0"), 0)
	}
	return pid, err
}

// onOwnThread runs f on a thread that ends with it: only root could take back what f
// does to it. The main thread never ends, so that it is held until another one is done.
func onOwnThread(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if unix.Gettid() != os.Getpid() {
			f()
			return
		}
		defer runtime.UnlockOSThread()
		onOwnThread(f)
	}()
	<-done
}

// benice makes this thread nicer, as nice(1) does.
func benice(by int) error {
	now, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		return os.NewSyscallError("getpriority", err)
	}
	const highest = 20 // the system call says 20 minus the nice value
	return os.NewSyscallError("setpriority", unix.Setpriority(unix.PRIO_PROCESS, 0, min(highest-now+by, highest-1)))
}

func (h *hygiene) forkHere(path string, args []string, attr *syscall.ProcAttr) (int, error) {
	if !h.blocked {
		return syscall.ForkExec(path, args, attr)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var none, old unix.Sigset_t
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &none, &old); err != nil {
		return 0, err
	}
	defer func() { _ = unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil) }()
	return syscall.ForkExec(path, args, attr)
}

// signalSets gives the signals that this program ignores and blocks, bit n-1 for
// signal n.
func signalSets() (ignored, blocked uint64) {
	status, err := os.ReadFile("/proc/thread-self/status")
	if err != nil {
		return 0, 0
	}
	lines := bufio.NewScanner(bytes.NewReader(status))
	for lines.Scan() {
		name, value, _ := bytes.Cut(lines.Bytes(), []byte(":"))
		set, err := strconv.ParseUint(string(bytes.TrimSpace(value)), 16, 64)
		switch {
		case err != nil:
		case string(name) == "SigIgn":
			ignored = set
		case string(name) == "SigBlk":
			blocked = set
		}
	}
	return ignored, blocked
}
