package output

import (
	"io"
	"os"
)

// Reader gives a log's raw bytes by offset. It is safe for concurrent use; the
// caller closes it.
type Reader struct {
	log  *Log
	file *os.File
}

// Open opens the raw bytes for reading.
func (l *Log) Open() (*Reader, error) {
	file, err := l.reopen()
	if err != nil {
		return nil, err
	}
	return &Reader{log: l, file: file}, nil
}

// Bounds gives the first kept offset, the offset behind the last byte, and
// whether the log has ended.
func (r *Reader) Bounds() (first, next int64, ended bool) {
	ended = r.log.hasEnded()
	first = r.log.first.Load()
	return first, r.log.written.Load(), ended
}

// Grown is [Log.Grown].
func (r *Reader) Grown(offset int64) <-chan struct{} { return r.log.Grown(offset) }

// ReadAt reads what has arrived, as [io.ReaderAt]: io.EOF at the end of that.
// Dropped bytes are [ErrDropped], never zeros.
func (r *Reader) ReadAt(p []byte, offset int64) (int, error) {
	r.log.keep.RLock()
	defer r.log.keep.RUnlock()
	first, written := r.log.first.Load(), r.log.written.Load()
	if offset < first {
		return 0, ErrDropped
	}
	if offset >= written {
		return 0, io.EOF
	}
	short := int64(len(p)) > written-offset
	if short {
		p = p[:written-offset]
	}
	n, err := r.file.ReadAt(p, offset)
	switch {
	case err != nil && n < len(p):
		return n, damaged(err)
	case short:
		return n, io.EOF
	default:
		return n, nil
	}
}

// File gives the file itself, whose offsets are the log's, for sendfile. Bytes
// below the first kept one read as zeros there: whoever uses it must ask
// [Reader.Bounds] again after the transfer and treat what fell below as lost. It
// stays open until Close.
func (r *Reader) File() *os.File { return r.file }

// Close releases the file.
func (r *Reader) Close() error { return r.file.Close() }
