package output

import (
	"errors"

	"golang.org/x/sys/unix"
)

const (
	// widePipe is the size of an enlarged pipe.
	widePipe = 1 << 20
	// maxWide bounds how many are enlarged: the kernel allows one user 64 MiB, and
	// what is beyond gets pipes of a page or two.
	maxWide = 24
)

// move takes at most limit bytes from the pipe to the file's end without passing
// through memory of ours; 0 is the end of the pipe.
func (p *pump) move(pipe int, limit int64) (int64, error) {
	if p.copies {
		return p.copyMove(pipe, limit)
	}
	offset := p.next()
	n, err := unix.Splice(pipe, nil, int(p.file.Fd()), &offset, int(limit),
		unix.SPLICE_F_NONBLOCK|unix.SPLICE_F_MOVE)
	switch {
	case err == nil, errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR), noSpace(err):
		return n, err
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM):
		p.copies = true // these two can't be spliced
	}
	// If something is wrong, a plain write will name it.
	return p.copyMove(pipe, limit)
}

// widen enlarges a pipe whose writer is chatty; a refusal costs only speed.
func widen(store *Store, pipe int) {
	if store.wide.Add(1) <= maxWide {
		_, _ = unix.FcntlInt(uintptr(pipe), unix.F_SETPIPE_SZ, widePipe)
	}
}

// pending counts the bytes that are in a pipe.
func pending(pipe int) int {
	n, err := unix.IoctlGetInt(pipe, unix.TIOCINQ)
	if err != nil {
		return 0
	}
	return n
}

func punch(file int, offset, length int64) error {
	for {
		err := unix.Fallocate(file, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, offset, length)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
