package output

import (
	"errors"
	"io"
	"syscall"

	"golang.org/x/sys/unix"
)

// sendPiece bounds what one call of the system moves while the log's bytes are held.
const sendPiece = 1 << 20

// SendTo moves kept bytes from offset on, at most limit, into a socket without
// passing them through the process. It waits while the socket is full, no longer
// than the deadline that is set there, and returns as soon as something was moved.
// Bytes are held against being dropped only while the system takes them, never while
// the socket is full. Dropped bytes are [ErrDropped], never zeros; io.EOF is the end of
// what has arrived.
func (r *Reader) SendTo(socket syscall.RawConn, offset, limit int64) (n int64, err error) {
	waited := socket.Write(func(fd uintptr) (done bool) {
		n, err = r.send(int(fd), offset, limit)
		return !errors.Is(err, unix.EAGAIN)
	})
	if waited != nil {
		return 0, waited
	}
	return n, err
}

func (r *Reader) send(socket int, offset, limit int64) (int64, error) {
	r.log.keep.RLock()
	defer r.log.keep.RUnlock()
	first, written := r.log.first.Load(), r.log.written.Load()
	switch {
	case offset < first:
		return 0, ErrDropped
	case offset >= written:
		return 0, io.EOF
	}
	size := int(min(limit, written-offset, sendPiece))
	for {
		n, err := unix.Sendfile(socket, int(r.file.Fd()), &offset, size)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err == nil && n == 0:
			return 0, damaged(io.EOF)
		case err != nil:
			return 0, err
		}
		return int64(n), nil
	}
}
