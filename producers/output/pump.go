package output

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

const (
	// chunkBytes is the most that one move takes from a pipe.
	chunkBytes = 1 << 20
	// chattyBytes in one move are what a pipe of the usual size holds.
	chattyBytes = 32 << 10
	// chattyMoves of at least chattyBytes prove a pipe worth enlarging.
	chattyMoves = 8
)

// pump moves one pipe into one log. It belongs to one goroutine.
type pump struct {
	log   *Log
	file  *os.File
	eof   bool
	moves int
	wide  bool
	// copies is set where the kernel can't splice.
	copies bool
	// left bounds a sweep; negative when there is no bound.
	left int64
	// given is how far the file's head was given back to the disk.
	given int64
	// keeps is set once the file system refused to take the head back.
	keeps bool
}

// Drain moves what comes out of pipe into the log until the last writer is gone
// (nil) or the pipe's read deadline is over ([os.ErrDeadlineExceeded]). At the
// deadline it still takes what is in the pipe at that moment, and no more. pipe
// must be non-blocking; it stays the caller's to close.
//
// It blocks in the runtime's poller and holds no thread. A log that can't keep
// the bytes never ends it: they are counted as dropped, see [Log.Loss].
func (l *Log) Drain(pipe *os.File) error {
	conn, err := pipe.SyscallConn()
	if err != nil {
		return err
	}
	l.mu.Lock()
	p := &pump{log: l, file: l.file, left: -1}
	l.mu.Unlock()
	if p.file == nil {
		return fs.ErrClosed
	}
	defer p.narrow()
	step := p.step
	for !p.eof && err == nil {
		err = conn.Read(step)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		if sweepErr := conn.Control(p.sweep); sweepErr != nil {
			return errors.Join(err, sweepErr)
		}
		if p.eof {
			return nil
		}
	}
	return err
}

// step makes one move; false means that the pipe is empty and its poller should
// say when it is not. It gives true after each move, so that the deadline is
// looked at even if the pipe never runs empty.
func (p *pump) step(pipe uintptr) bool {
	n, err := p.move(int(pipe), p.room(int(pipe)))
	switch {
	case errors.Is(err, unix.EAGAIN):
		return false
	case errors.Is(err, unix.EINTR):
	case err != nil:
		p.refused(int(pipe), err)
	case n == 0:
		p.eof = true
	default:
		p.moved(int(pipe), n)
	}
	return true
}

// sweep takes what is in the pipe now, but nothing that is written meanwhile.
func (p *pump) sweep(pipe uintptr) {
	for p.left = int64(pending(int(pipe))); p.left > 0 && !p.eof; {
		if !p.step(pipe) {
			return
		}
	}
}

// moved counts n kept bytes.
func (p *pump) moved(pipe int, n int64) {
	p.spent(n)
	p.log.grew(n)
	if over := -p.free(); over > 0 {
		p.drop(over)
	}
	if p.wide || n < chattyBytes {
		return
	}
	if p.moves++; p.moves >= chattyMoves {
		p.wide = true
		widen(p.log.store, pipe)
	}
}

func (p *pump) narrow() {
	if p.wide {
		p.log.store.wide.Add(-1)
	}
}

func (p *pump) spent(n int64) {
	if p.left >= 0 {
		p.left -= n
	}
}

// room says how much the next move may take. A log at its bound makes room
// first, but only if there are bytes to come.
func (p *pump) room(pipe int) int64 {
	limit := int64(chunkBytes)
	if p.left >= 0 {
		limit = min(limit, p.left)
	}
	if free := p.free(); free > 0 {
		return min(limit, free)
	}
	coming := min(int64(pending(pipe)), p.log.store.max)
	if coming == 0 {
		return 1 // to learn of the end, or that there is nothing
	}
	p.drop(coming)
	return max(1, min(limit, p.free()))
}

// free says how far the log is from its bound; negative beyond it.
func (p *pump) free() int64 {
	return p.log.store.max - (p.log.written.Load() - p.log.first.Load())
}

// refused handles a write that failed: room is made at this log's own head, and
// where that does not help the bytes in the pipe are lost, and said to be.
func (p *pump) refused(pipe int, err error) {
	p.log.lost(err)
	if !noSpace(err) || !p.shed() {
		p.discard(pipe)
	}
}

// shed gives half of what is kept back to a full disk, or all if that is little.
// False means that nothing could be given.
func (p *pump) shed() bool {
	first := p.log.first.Load()
	kept := p.log.written.Load() - first
	if kept == 0 || p.keeps {
		return false
	}
	if kept > 4*blockBytes {
		kept /= 2
	}
	p.drop(kept)
	return p.log.first.Load() > first && !p.keeps
}

// discard empties the pipe once into nowhere.
func (p *pump) discard(pipe int) {
	piece := p.log.store.borrow()
	defer p.log.store.pieces.Put(piece)
	n, err := unix.Read(pipe, piece[:p.bounded(len(piece))])
	switch {
	case err == nil && n == 0:
		p.eof = true
	case err == nil:
		p.lose(int64(n))
	}
}

// lose counts n bytes that were taken and not kept. What is kept is one range up
// to the last byte, so everything before them goes too.
func (p *pump) lose(n int64) {
	p.spent(n)
	l := p.log
	// Both move under the lock that readers hold, and the end before the beginning:
	// a look without the lock never sees a log that begins behind its end.
	l.keep.Lock()
	l.first.Store(l.written.Add(n))
	l.keep.Unlock()
	l.wake()
	p.punch()
}

func (p *pump) bounded(n int) int {
	if p.left >= 0 && p.left < int64(n) {
		return int(p.left)
	}
	return n
}

// lost remembers and logs the first reason.
func (l *Log) lost(err error) {
	reason := err.Error()
	if errno, ok := errors.AsType[unix.Errno](err); ok {
		reason = errno.Error()
	}
	l.mu.Lock()
	fresh := l.loss == ""
	if fresh {
		l.loss = reason
	}
	l.mu.Unlock()
	if fresh {
		l.store.logger.Error("output can't be kept", "file", l.store.name(l.seq, logSuffix), "error", reason)
	}
}

func noSpace(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.EFBIG)
}
