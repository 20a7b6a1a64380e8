package output

import (
	"errors"
	"io"
	"syscall"

	"golang.org/x/sys/unix"
)

// SendTo moves bytes from offset on into a socket, at most limit, and gives how
// many; it blocks until the socket takes some, or its write deadline is over. The
// errors are those of [Reader.ReadAt], io.EOF too, or the socket's.
//
// The system moves the bytes of a log that has ended by reference. While it grows
// they are copied: the room of those that are dropped is written again, and a
// socket that holds references would send what is new there.
func (r *Reader) SendTo(socket syscall.RawConn, offset, limit int64) (int64, error) {
	if !r.log.hasEnded() {
		return r.copyTo(socket, offset, limit)
	}
	at, length, err := r.stretch(offset, limit)
	if err != nil {
		return 0, err
	}
	// Without the lock: a socket may take nothing for long, and of a log that has ended
	// no byte moves any more.
	return r.sendFile(socket, at, length)
}

// stretch gives where bytes from offset on lie in the file, at most limit.
func (r *Reader) stretch(offset, limit int64) (at, length int64, err error) {
	r.log.keep.RLock()
	defer r.log.keep.RUnlock()
	first, end, _ := r.log.bounds()
	switch {
	case offset < first:
		return 0, 0, ErrDropped
	case offset >= end:
		return 0, 0, io.EOF
	case r.which != r.log.place.file:
		return 0, 0, ErrDamaged
	}
	at = r.log.place.at(offset)
	return at, min(limit, end-offset, r.log.place.ring-at), nil
}

func (r *Reader) sendFile(socket syscall.RawConn, at, length int64) (sent int64, err error) {
	waitErr := socket.Write(func(fd uintptr) bool {
		var n int
		n, err = unix.Sendfile(int(fd), int(r.file.Fd()), &at, int(min(length, 1<<30)))
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
