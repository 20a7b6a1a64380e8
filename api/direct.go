package api

import (
	"errors"
	"net"
	"net/http"
	"strconv"
	"syscall"
)

// Sizes of what goes out past the server.
const (
	// leastDirect is the least that is worth a connection of its own.
	leastDirect = 1 << 20
	// maxChunk bounds one chunk of a body without a length.
	maxChunk = 4 << 20
	// smallChunk is what is rather copied than moved.
	smallChunk = 16 << 10
)

// mover is a log that writes its bytes into a socket by itself, by the system where
// that can be, and never one that was dropped meanwhile. It blocks until some have
// left, no longer than the deadline that is set on the connection.
type mover interface {
	SendTo(socket syscall.RawConn, offset, limit int64) (int64, error)
}

// directSender writes a body straight to its connection: the server would copy one
// without a length, and could not say which bytes were dropped before they left.
type directSender struct {
	piece  *logPiece
	c      *call
	conn   net.Conn
	socket syscall.RawConn
	log    mover
	// chunked frames the body in chunks.
	chunked bool
	begun   bool
	buf     []byte
}

// direct gives a sender, nil if the connection or the log is not of the kind.
func (p *logPiece) direct(c *call, r *http.Request) *directSender {
	log, ok := p.log.(mover)
	if !ok || r.ProtoMajor != 1 || r.ProtoMinor < 1 || r.Method != http.MethodGet {
		return nil
	}
	conn, _ := r.Context().Value(connKey{}).(net.Conn)
	plain, ok := conn.(syscall.Conn)
	if !ok {
		return nil // TLS: what leaves is not what is in the file
	}
	socket, err := plain.SyscallConn()
	if err != nil {
		return nil
	}
	return &directSender{piece: p, c: c, conn: conn, socket: socket, log: log}
}

// announceChunks makes the server take the body for one that ends with its
// connection, which it passes on as it is, while the client is told what it gets:
// chunks, so that a body that was cut off is seen to be. The server knows headers by
// their canonical names alone, and writes others as they stand.
func (d *directSender) announceChunks() {
	h := d.c.Header()
	h.Set("Transfer-Encoding", "identity")
	h["transfer-encoding"] = []string{"chunked"}
}

// sendTo sends the bytes up to end.
func (d *directSender) sendTo(end int64) error {
	if !d.begun {
		d.begun = true
		if err := d.c.FlushError(); err != nil { // the headers; from here on the server has nothing to write
			return http.ErrAbortHandler
		}
	}
	for d.piece.begin < end {
		size := end - d.piece.begin
		if d.chunked {
			size = min(size, maxChunk)
		}
		if err := d.chunk(size); err != nil {
			return err
		}
	}
	return nil
}

// chunk sends so many bytes, which have all arrived.
func (d *directSender) chunk(size int64) error {
	head, tail := "", ""
	if d.chunked {
		head, tail = strconv.FormatInt(size, 16)+"\r\n", "\r\n"
	}
	if size <= smallChunk {
		return d.copyChunk(head, int(size), tail)
	}
	if err := d.write([]byte(head)); err != nil {
		return err
	}
	for end := d.piece.begin + size; d.piece.begin < end; {
		d.c.arm()
		n, err := d.log.SendTo(d.socket, d.piece.begin, end-d.piece.begin)
		if errors.Is(err, errors.ErrUnsupported) {
			n = min(end-d.piece.begin, smallChunk)
			if err := d.copyChunk("", int(n), ""); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return http.ErrAbortHandler
		}
		d.piece.begin += n
		d.c.bytes += n
	}
	return d.write([]byte(tail))
}

// copyChunk sends a small piece with its frame in one write.
func (d *directSender) copyChunk(head string, size int, tail string) error {
	d.buf = append(d.buf[:0], head...)
	d.buf = append(d.buf, make([]byte, size)...)
	if err := d.piece.read(d.buf[len(head):]); err != nil {
		return err
	}
	d.buf = append(d.buf, tail...)
	if err := d.write(d.buf); err != nil {
		return err
	}
	d.piece.begin += int64(size)
	return nil
}

func (d *directSender) write(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	d.c.arm()
	n, err := d.conn.Write(p)
	d.c.bytes += int64(n)
	if err != nil {
		return http.ErrAbortHandler
	}
	return nil
}

// end closes a chunked body.
func (d *directSender) end() error { return d.write([]byte("0\r\n\r\n")) }
