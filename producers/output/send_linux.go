package output

import (
	"errors"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// SendTo moves bytes from offset on into a socket, at most limit, and gives how
// many; it blocks until the socket takes some, or its write deadline is over. The
// errors are those of [Reader.ReadAt], io.EOF too, or the socket's.
//
// The system moves the bytes by reference, of a log that grows as long as they can be
// lent, see lend; else they are copied.
func (r *Reader) SendTo(socket syscall.RawConn, offset, limit int64) (int64, error) {
	file, at, length, err := r.stretch(offset, limit)
	if err != nil {
		return 0, err
	}
	if file == nil {
		return r.copyTo(socket, offset, limit)
	}
	// Without the lock: a socket may take nothing for long, and what lies there stays.
	return sendFile(socket, file, at, length)
}

// stretch gives where bytes from offset on lie, at most limit; no file if others may
// take their place.
func (r *Reader) stretch(offset, limit int64) (file *os.File, at, length int64, err error) {
	ended := r.log.hasEnded()
	r.log.keep.RLock()
	defer r.log.keep.RUnlock()
	first, end, _ := r.log.bounds()
	switch {
	case offset < first:
		return nil, 0, 0, ErrDropped
	case offset >= end:
		return nil, 0, 0, io.EOF
	}
	if file, err = r.currentLocked(); err != nil {
		return nil, 0, 0, err
	}
	at = r.log.place.at(offset)
	length = min(limit, end-offset, r.log.place.ring-at)
	if !ended && !r.log.lend(file, at+length) {
		return nil, 0, 0, nil
	}
	return file, at, length, nil
}

func sendFile(socket syscall.RawConn, file *os.File, at, length int64) (sent int64, err error) {
	waitErr := socket.Write(func(fd uintptr) bool {
		var n int
		n, err = unix.Sendfile(int(fd), int(file.Fd()), &at, int(min(length, 1<<30)))
		sent = int64(max(n, 0))
		return !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR)
	})
	switch {
	case waitErr != nil:
		return sent, waitErr
	case err == nil && sent == 0 && length > 0:
		return 0, damaged(io.EOF)
	}
	return sent, err
}

func (r *Reader) copyTo(socket syscall.RawConn, offset, limit int64) (sent int64, err error) {
	piece := r.log.store.borrow()
	defer r.log.store.pieces.Put(piece)
	n, err := r.ReadAt(piece[:min(limit, int64(len(piece)))], offset)
	if n == 0 {
		return 0, err
	}
	waitErr := socket.Write(func(fd uintptr) bool {
		for sent < int64(n) {
			var wrote int
			wrote, err = unix.Write(int(fd), piece[sent:n])
			switch {
			case err == nil:
				sent += int64(wrote)
			case errors.Is(err, unix.EINTR):
			default:
				return !errors.Is(err, unix.EAGAIN)
			}
		}
		return true
	})
	return sent, errors.Join(waitErr, err)
}
