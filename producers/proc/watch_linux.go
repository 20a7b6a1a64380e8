package proc

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// watch tells of exits. It is one goroutine for all processes, parked in the
// runtime's poller on a poll of its own, which holds the pidfds.
type watch struct {
	poll *os.File
	conn syscall.RawConn
	done chan struct{}

	mu    sync.Mutex
	alive map[int32]*Process // by pidfd
}

func (w *watch) init() error {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return os.NewSyscallError("epoll_create1", err)
	}
	// Non-blocking is what makes the runtime take it into its own poller.
	if err := unix.SetNonblock(fd, true); err != nil {
		return errors.Join(err, unix.Close(fd))
	}
	w.poll = os.NewFile(uintptr(fd), "exits")
	if w.conn, err = w.poll.SyscallConn(); err != nil {
		return errors.Join(err, w.poll.Close())
	}
	w.done, w.alive = make(chan struct{}), make(map[int32]*Process)
	go w.run()
	return nil
}

func (w *watch) close() {
	_ = w.poll.SetReadDeadline(time.Unix(1, 0))
	<-w.done
	_ = w.poll.Close()
}

// add has p told of its exit.
func (w *watch) add(p *Process) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	event := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLONESHOT, Fd: int32(p.pidfd)}
	if err := unix.EpollCtl(int(w.poll.Fd()), unix.EPOLL_CTL_ADD, p.pidfd, &event); err != nil {
		return os.NewSyscallError("epoll_ctl", err)
	}
	w.alive[event.Fd] = p
	return nil
}

// remove reports whether p was still watched: then it will not be told.
func (w *watch) remove(p *Process) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.alive[int32(p.pidfd)] != p {
		return false
	}
	w.forgetLocked(p)
	return true
}

func (w *watch) forgetLocked(p *Process) {
	delete(w.alive, int32(p.pidfd))
	_ = unix.EpollCtl(int(w.poll.Fd()), unix.EPOLL_CTL_DEL, p.pidfd, nil)
}

func (w *watch) run() {
	defer close(w.done)
	var ready [64]unix.EpollEvent
	n := 0
	wait := func(poll uintptr) bool {
		var err error
		n, err = unix.EpollWait(int(poll), ready[:], 0)
		return err == nil && n > 0
	}
	for w.conn.Read(wait) == nil {
		for _, event := range ready[:n] {
			w.tell(event.Fd)
		}
	}
}

// tell tells the process of a pidfd. The event may be meant for an earlier one of
// that number; then this one is still there, and watched on.
func (w *watch) tell(pidfd int32) {
	w.mu.Lock()
	p := w.alive[pidfd]
	if p == nil {
		w.mu.Unlock()
		return
	}
	gone := p.peek()
	if gone {
		w.forgetLocked(p)
	} else {
		event := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLONESHOT, Fd: pidfd}
		_ = unix.EpollCtl(int(w.poll.Fd()), unix.EPOLL_CTL_MOD, int(pidfd), &event)
	}
	w.mu.Unlock()
	if gone {
		p.left()
	}
}
