package bash

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ends are the child's ends of its pipes, -1 where there is none.
type ends struct{ in, out, err int }

// files gives the child's descriptors from 0 on.
func (e ends) files(null uintptr) []uintptr {
	files := []uintptr{null, uintptr(e.out), uintptr(e.out)}
	if e.in >= 0 {
		files[0] = uintptr(e.in)
	}
	if e.err >= 0 {
		files[2] = uintptr(e.err)
	}
	return files
}

func (e ends) close() {
	for _, fd := range [...]int{e.in, e.out, e.err} {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
}

// plumb makes the pipes of a command: ours go into l, the child's are given. On
// error both are to be closed all the same.
func (p *plan) plumb(r *run, l *live) (ends, error) {
	child := ends{-1, -1, -1}
	var err error
	l.out.log = r.log
	l.out.pipe, child.out, err = p.producer.newPipe(toRead)
	if err == nil && p.request.split {
		l.stderr = &outlet{log: r.stderr.log}
		l.stderr.pipe, child.err, err = p.producer.newPipe(toRead)
	}
	if err == nil && p.request.open {
		var pipe *os.File
		if pipe, child.in, err = p.producer.newPipe(toWrite); err == nil {
			l.stdin = newInput(pipe)
		}
	}
	if err != nil {
		return child, refusal(err, "the command can't be started")
	}
	return child, nil
}

// closePipes takes back what plumb put into l.
func (l *live) closePipes() {
	_ = l.out.pipe.Close() // also of what was not made
	if l.stderr != nil {
		_ = l.stderr.pipe.Close()
	}
	if l.stdin != nil {
		_ = l.stdin.pipe.Close()
	}
}

// The end of a pipe that is ours.
const (
	toRead  = 0
	toWrite = 1
)

// newPipe makes a pipe: our end for the runtime's poller, the child's blocking, as
// programs expect it. It belongs to the user that commands run as, who may then
// open /dev/stdout by name.
func (p *Producer) newPipe(ours int) (*os.File, int, error) {
	fds, err := pipe()
	if err != nil {
		return nil, -1, err
	}
	end, child := fds[ours], fds[1-ours]
	if err = unix.SetNonblock(end, true); err == nil && p.runAs != nil {
		err = own(end, p.runAs)
	}
	if err != nil {
		_, _ = unix.Close(end), unix.Close(child)
		return nil, -1, err
	}
	file := os.NewFile(uintptr(end), "pipe")
	if err := file.SetDeadline(time.Time{}); err != nil { // not in the poller
		_, _ = file.Close(), unix.Close(child)
		return nil, -1, fmt.Errorf("%w: %w", unix.EAGAIN, err)
	}
	return file, child, nil
}
