package output

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// HandOver stops emptying, and gives what [AdoptSink] needs to go on in another image of
// this process: the pipes stay open across an exec. None may be taken until
// [Sink.TakeBack].
func (s *Sink) HandOver() (json.RawMessage, error) {
	s.mu.Lock()
	if s.closed || s.parked != nil {
		s.mu.Unlock()
		return nil, os.ErrClosed
	}
	parked := make(chan struct{})
	s.parked = parked
	s.mu.Unlock()
	_ = s.poll.SetReadDeadline(time.Unix(1, 0))
	<-parked
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, os.ErrClosed
	}
	pipes := make([]int, 0, len(s.pipes))
	for fd := range s.pipes {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil {
			return nil, os.NewSyscallError("fcntl", err)
		}
		pipes = append(pipes, fd)
	}
	return json.Marshal(pipes)
}

// TakeBack undoes HandOver, also one that failed.
func (s *Sink) TakeBack() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.parked == nil || s.closed {
		return
	}
	for fd := range s.pipes {
		unix.CloseOnExec(fd)
	}
	s.parked, s.resting = nil, false
	_ = s.poll.SetReadDeadline(time.Time{})
	go s.run()
}

// AdoptSink goes on with the pipes of a sink that was handed over before an exec.
func AdoptSink(data json.RawMessage) (*Sink, error) {
	var pipes []int
	if err := json.Unmarshal(data, &pipes); err != nil {
		return nil, fmt.Errorf("adopt a sink: %w", err)
	}
	s, err := NewSink()
	if err != nil {
		return nil, err
	}
	for _, fd := range pipes {
		unix.CloseOnExec(fd)
		s.mu.Lock()
		err = errors.Join(err, s.addLocked(fd))
		s.mu.Unlock()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("adopt a sink: %w", err), s.Close())
	}
	return s, nil
}
