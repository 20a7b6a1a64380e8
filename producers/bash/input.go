package bash

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"afoot/registry"
)

// input is the write end of an open standard input.
type input struct {
	// pipe is in the runtime's poller. Its closing ends a write that waits.
	pipe *os.File
	// turn has room for one: whoever put something in may write, and takes it out
	// again.
	turn chan struct{}
	// why it is closed; empty while it is not, or was closed by the command's end.
	// It belongs to whoever has the turn.
	why string
}

func newInput(pipe *os.File) *input { return &input{pipe: pipe, turn: make(chan struct{}, 1)} }

// Input implements [registry.Input].
func (r *run) Input(ctx context.Context, data []byte, last bool) (registry.InputResult, error) {
	r.mu.Lock()
	l := r.live
	var hold <-chan struct{}
	if l != nil {
		hold = l.hold
	}
	r.mu.Unlock()
	switch {
	case l == nil:
		return closed(0, 0, "")
	case l.stdin == nil:
		return registry.InputResult{}, registry.Errorf(registry.CodeConflict,
			`stdin is null: only a command that was started with stdin "open" takes input`)
	}
	return l.stdin.put(ctx, hold, data, last)
}

// put waits for its turn and writes. It holds no lock of the run. A run that is handed
// over takes no more than it has.
func (in *input) put(ctx context.Context, hold <-chan struct{}, data []byte, last bool) (registry.InputResult, error) {
	select {
	case in.turn <- struct{}{}:
	case <-ctx.Done():
		return registry.InputResult{}, nil
	case <-hold:
		return registry.InputResult{}, nil
	}
	defer func() { <-in.turn }()
	if held(hold) {
		return registry.InputResult{}, nil
	}
	if in.why != "" {
		return closed(0, len(data), in.why)
	}
	written, err := in.write(ctx, data)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return registry.InputResult{Written: written}, nil
	case errors.Is(err, unix.EPIPE):
		in.shut("nobody reads it any more")
		return closed(written, len(data), in.why)
	case err != nil: // closed by the end
		return closed(written, len(data), "")
	case last:
		in.shut("an earlier input was the last")
	}
	return registry.InputResult{Written: written, Closed: last}, nil
}

// write counts what the pipe took until all is taken, ctx ends, or nobody reads.
func (in *input) write(ctx context.Context, data []byte) (written int, err error) {
	conn, err := in.pipe.SyscallConn()
	if err != nil {
		return 0, err
	}
	over := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = in.pipe.SetWriteDeadline(time.Unix(1, 0))
		close(over)
	})
	defer func() {
		if !stop() {
			<-over
			_ = in.pipe.SetWriteDeadline(time.Time{})
		}
	}()
	var failed error
	err = conn.Write(func(pipe uintptr) bool {
		var n int
		n, failed = push(int(pipe), data[written:])
		written += n
		return !errors.Is(failed, unix.EAGAIN)
	})
	return written, errors.Join(err, failed)
}

// push writes what fits. SIGPIPE is nothing to care for: the runtime swallows it
// for descriptors above 2.
func push(pipe int, data []byte) (written int, err error) {
	if len(data) == 0 {
		return 0, read(pipe)
	}
	for written < len(data) {
		n, err := unix.Write(pipe, data[written:])
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return written, err
		default:
			written += n
		}
	}
	return written, nil
}

// read says whether somebody holds the pipe's other end, as a write of no bytes
// would not.
func read(pipe int) error {
	poll := []unix.PollFd{{Fd: int32(pipe), Events: unix.POLLOUT}}
	for {
		_, err := unix.Poll(poll, 0)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err == nil && poll[0].Revents&unix.POLLERR != 0:
			return unix.EPIPE
		}
		return err
	}
}

// pause ends the writing, and lets none begin until resume.
func (in *input) pause() {
	_ = in.pipe.SetWriteDeadline(time.Unix(1, 0))
	in.turn <- struct{}{}
}

func (in *input) resume() {
	_ = in.pipe.SetWriteDeadline(time.Time{})
	<-in.turn
}

func (in *input) shut(why string) {
	in.why = why
	_ = in.pipe.Close()
}

// closed words a refusal. What was taken before the end of its reader is told
// too.
func closed(written, of int, why string) (registry.InputResult, error) {
	if why == "" {
		why = "the command has ended"
	}
	err := registry.Errorf(registry.CodeConflict, "stdin is closed: %s", why)
	if written > 0 {
		err.Message += fmt.Sprintf(" (%d of %d bytes were taken before)", written, of)
	}
	return registry.InputResult{Written: written, Closed: true}, err
}
