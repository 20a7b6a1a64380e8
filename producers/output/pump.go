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
	// modest is what a log keeps at most that has met a full disk; 0 for any other.
	modest int64
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
	p.inspect()
	n, err := p.take(int(pipe))
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

// moved counts n bytes that were written where the next ones belong.
func (p *pump) moved(pipe int, n int64) {
	p.spent(n)
	l := p.log
	first, end, written := l.bounds()
	at := l.place.at(end)
	healed := end < written
	if healed {
		p.healed(first, end, written)
	}
	if size := at + n; size > l.place.size {
		l.keep.Lock()
		l.place.size = size
		l.keep.Unlock()
	}
	if l.bent || healed {
		now := l.counters()
		now.written += n
		l.note(now, healed)
	}
	l.grew(n)
	if p.wide || n < chattyBytes {
		return
	}
	if p.moves++; p.moves >= chattyMoves {
		p.wide = true
		widen(l.store, pipe)
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

// take makes the next move. A log at its bound makes room first, but only if there
// are bytes to come: where there seems to be none, it takes a byte at most, through
// memory, to learn of the end.
func (p *pump) take(pipe int) (int64, error) {
	limit := int64(chunkBytes)
	if p.left >= 0 {
		limit = min(limit, p.left)
	}
	if p.free() <= 0 {
		if limit = min(limit, int64(pending(pipe))); limit == 0 {
			return p.copyMove(pipe, 1)
		}
	}
	limit, err := p.room(limit)
	if err != nil {
		return 0, err
	}
	return p.move(pipe, limit)
}

// room says how many of the wanted bytes can be written in one piece, at least one.
// A log at its bound drops as many first. An error is that of a new file.
func (p *pump) room(want int64) (int64, error) {
	if p.free() <= 0 {
		p.relax()
	}
	if p.free() <= 0 {
		p.drop(want)
		if p.modest > 0 {
			p.giveBack()
		}
	}
	_, end, _ := p.log.bounds()
	place := &p.log.place
	size := max(1, min(want, p.free(), place.ring-place.at(end)))
	return size, p.refile()
}

// refused handles a write that failed: a full disk gets room from this log's own
// head, and where that does not help the bytes in the pipe are lost, and said to
// be. The pipe is emptied in any case.
func (p *pump) refused(pipe int, err error) {
	p.log.lost(err)
	if !noSpace(err) || !p.shed() {
		p.discard(pipe)
	}
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

func (p *pump) bounded(n int) int {
	if p.left >= 0 && p.left < int64(n) {
		return int(p.left)
	}
	return n
}

// lose counts n bytes that were taken and not kept. What was kept before stays
// readable; those who come to its end are told that all behind it is gone.
func (p *pump) lose(n int64) {
	p.spent(n)
	l := p.log
	first, end, written := l.bounds()
	l.keep.Lock()
	l.written.Add(n) // before gone: see Log
	if first == end {
		l.place.base += written + n - end // nothing is kept: it begins behind the lost bytes
		l.first.Store(written + n)
	}
	l.gone.Add(n)
	l.keep.Unlock()
	l.note(l.counters(), false)
	l.wake()
}

// healed begins anew behind lost bytes: what is kept is one range, and the newest
// bytes are what it is for. Those that come were written behind the old ones.
func (p *pump) healed(first, end, written int64) {
	l := p.log
	l.keep.Lock()
	l.place.base = written - l.place.at(end)
	l.first.Store(written)
	l.gone.Store(written)
	l.keep.Unlock()
	l.store.count(first - end)
	l.releaseAll()
}

// lost remembers and logs the first reason.
func (l *Log) lost(err error) {
	reason := err.Error()
	if errno, ok := errors.AsType[unix.Errno](err); ok {
		reason = errno.Error()
	}
	l.mu.Lock()
	fresh := l.loss == nil
	if fresh {
		l.loss = &reason
	}
	l.mu.Unlock()
	if fresh {
		l.store.logger.Error("output can't be kept", "file", l.era.name(l.seq, logSuffix), "error", reason)
	}
}

func noSpace(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.EFBIG)
}
