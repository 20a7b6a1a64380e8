package output

import (
	"errors"
	"io"
	"os"
	"sync"
)

// Reader gives a log's raw bytes by offset. It is safe for concurrent use; the
// caller closes it.
type Reader struct {
	log *Log
	mu  sync.Mutex
	// file is the log's which-th; those before it may still be sent from.
	file   *os.File
	which  int
	former []*os.File
}

// Open opens the raw bytes for reading.
func (l *Log) Open() (*Reader, error) {
	l.check()
	l.keep.RLock()
	defer l.keep.RUnlock()
	file, err := l.reopen()
	if err != nil && l.hasEnded() && !l.isRemoved() {
		if first, end, _ := l.bounds(); first == end {
			file, err = os.Open(os.DevNull) // nothing is left to read
		}
	}
	if err != nil {
		return nil, err
	}
	return &Reader{log: l, file: file, which: l.place.file}, nil
}

// Bounds gives the first kept offset, the offset behind the last kept byte, and
// whether the log has ended. What a fault lost at the end is not in it; once the
// disk takes bytes again, the first kept one comes behind it.
func (r *Reader) Bounds() (first, next int64, ended bool) {
	ended = r.log.hasEnded()
	r.log.keep.RLock()
	defer r.log.keep.RUnlock()
	first, next, _ = r.log.bounds()
	return first, next, ended
}

// Grown is [Log.Grown] for bytes that are kept.
func (r *Reader) Grown(offset int64) <-chan struct{} { return r.log.grownKept(offset) }

// ReadAt reads what has arrived, as [io.ReaderAt]: io.EOF at the end of that.
// Dropped bytes are [ErrDropped], never zeros or others.
func (r *Reader) ReadAt(p []byte, offset int64) (int, error) {
	r.log.keep.RLock()
	defer r.log.keep.RUnlock()
	first, end, _ := r.log.bounds()
	if offset < first {
		return 0, ErrDropped
	}
	if offset >= end {
		return 0, io.EOF
	}
	file, err := r.currentLocked()
	if err != nil {
		return 0, err
	}
	short := int64(len(p)) > end-offset
	if short {
		p = p[:end-offset]
	}
	n, err := r.log.place.readAt(file, p, offset)
	switch {
	case err != nil && n < len(p):
		return n, damaged(err)
	case short:
		return n, io.EOF
	default:
		return n, nil
	}
}

// File gives the file of a log that has ended, for sendfile, if its offsets are the
// log's: nil if they are not, because newer bytes took the place of older ones, or
// if the log has not ended and may yet do that. It stays open until Close.
func (r *Reader) File() *os.File {
	if !r.log.hasEnded() {
		return nil
	}
	r.log.keep.RLock()
	defer r.log.keep.RUnlock()
	if _, end, _ := r.log.bounds(); !r.log.place.straight(end) {
		return nil
	}
	file, err := r.currentLocked()
	if err != nil {
		return nil // reading will tell
	}
	return file
}

// currentLocked gives the file in which the log is now: another one may have taken
// the place of that which was opened. The caller holds keep.
func (r *Reader) currentLocked() (*os.File, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.which == r.log.place.file {
		return r.file, nil
	}
	file, err := r.log.reopen()
	if err != nil {
		return nil, err
	}
	r.former = append(r.former, r.file)
	r.file, r.which = file, r.log.place.file
	return file, nil
}

// Close releases the file.
func (r *Reader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.file.Close()
	for _, file := range r.former {
		err = errors.Join(err, file.Close())
	}
	return err
}
