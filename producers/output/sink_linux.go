package output

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// sinkBytes is the most that one pipe loses in one round.
	sinkBytes = 1 << 20
	// sinkPause follows a round with much to take, so that a leftover that prints
	// without end costs it its speed and not a processor.
	sinkPause = 10 * time.Millisecond
	hotBytes  = 32 << 10
)

// Sink empties the pipes of work that has ended but left somebody who holds
// them, each until its last writer ends: a closed pipe would kill them. It is one
// goroutine for all, parked in the runtime's poller.
type Sink struct {
	poll *os.File
	conn syscall.RawConn
	null int
	done chan struct{}
	stop chan struct{}

	mu     sync.Mutex
	pipes  map[int]struct{}
	closed bool
	// parked is closed when the goroutine has stopped for a hand-over; nil if it was
	// not asked to. Resting says that it has, and left everything as it is.
	parked  chan struct{}
	resting bool
}

// NewSink starts the goroutine; [Sink.Close] ends it.
func NewSink() (*Sink, error) {
	null, err := unix.Open(os.DevNull, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", os.DevNull, err)
	}
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		_ = unix.Close(null)
		return nil, fmt.Errorf("epoll: %w", err)
	}
	// Non-blocking is what makes the runtime take it into its own poller.
	if err = unix.SetNonblock(fd, true); err == nil {
		sink := &Sink{
			poll:  os.NewFile(uintptr(fd), "sink"),
			null:  null,
			done:  make(chan struct{}),
			stop:  make(chan struct{}),
			pipes: make(map[int]struct{}),
		}
		if sink.conn, err = sink.poll.SyscallConn(); err == nil {
			go sink.run()
			return sink, nil
		}
	}
	_, _ = unix.Close(fd), unix.Close(null) // best effort
	return nil, fmt.Errorf("epoll: %w", err)
}

// Take empties pipe from now on and closes it when its last writer is gone. The
// pipe is the sink's in any case; when it can't be taken it is closed, which
// whoever writes to it will feel.
func (s *Sink) Take(pipe *os.File) error {
	fd, err := detach(pipe)
	if err != nil {
		return fmt.Errorf("sink: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = unix.Close(fd)
		return os.ErrClosed
	}
	return s.addLocked(fd)
}

func (s *Sink) addLocked(fd int) error {
	event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}
	if err := unix.EpollCtl(int(s.poll.Fd()), unix.EPOLL_CTL_ADD, fd, &event); err != nil {
		_ = unix.Close(fd)
		return fmt.Errorf("sink: %w", err)
	}
	s.pipes[fd] = struct{}{}
	return nil
}

// Len counts the pipes that still have a writer.
func (s *Sink) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.pipes)
}

// Close ends the goroutine, waits for it, and closes all pipes. It is idempotent.
func (s *Sink) Close() error {
	s.mu.Lock()
	first := !s.closed
	resting := s.resting
	s.closed = true
	s.mu.Unlock()
	if first {
		close(s.stop)
		_ = s.poll.SetReadDeadline(time.Unix(1, 0))
	}
	if first && resting {
		s.finish() // else the goroutine does
	}
	<-s.done
	return nil
}

// detach gives the descriptor of pipe, out of the runtime's poller.
func detach(pipe *os.File) (int, error) {
	defer func() { _ = pipe.Close() }()
	conn, err := pipe.SyscallConn()
	if err != nil {
		return 0, err
	}
	fd := -1
	controlErr := conn.Control(func(old uintptr) {
		fd, err = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 0)
	})
	return fd, errors.Join(controlErr, err)
}

func (s *Sink) run() {
	defer s.leave()
	var ready [64]unix.EpollEvent
	n := 0
	wait := func(poll uintptr) bool {
		var err error
		n, err = unix.EpollWait(int(poll), ready[:], 0)
		return err == nil && n > 0
	}
	pause := time.NewTimer(0)
	defer pause.Stop()
	for s.conn.Read(wait) == nil {
		hot := false
		for _, event := range ready[:n] {
			hot = s.empty(int(event.Fd)) || hot
		}
		if !hot {
			continue
		}
		pause.Reset(sinkPause)
		select {
		case <-pause.C:
		case <-s.stop:
			return
		}
	}
}

// empty takes what is in one pipe, and closes it at its end; hot means that there
// was much.
func (s *Sink) empty(fd int) (hot bool) {
	n, err := unix.Splice(fd, nil, s.null, nil, sinkBytes, unix.SPLICE_F_NONBLOCK)
	switch {
	case err == nil && n > 0:
		return n >= hotBytes
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
		return false
	}
	s.drop(fd)
	return false
}

// drop closes a pipe. The poll has to forget it first: a process that is just being born has
// all descriptors until its exec, and as long as it does, the poll would go on telling of
// this number, which may be somebody else's by then.
func (s *Sink) drop(fd int) {
	_ = unix.EpollCtl(int(s.poll.Fd()), unix.EPOLL_CTL_DEL, fd, nil)
	s.mu.Lock()
	delete(s.pipes, fd)
	s.mu.Unlock()
	_ = unix.Close(fd)
}

// leave ends the sink, or leaves it as it is for a hand-over.
func (s *Sink) leave() {
	s.mu.Lock()
	parked := s.parked
	s.resting = parked != nil && !s.closed
	over := !s.resting
	s.mu.Unlock()
	if over {
		s.finish()
	}
	if parked != nil {
		close(parked)
	}
}

func (s *Sink) finish() {
	s.mu.Lock()
	for fd := range s.pipes {
		_ = unix.Close(fd)
	}
	s.pipes, s.closed = nil, true
	s.mu.Unlock()
	_ = s.poll.Close()
	_ = unix.Close(s.null)
	close(s.done)
}
