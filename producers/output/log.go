package output

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// File name suffixes.
const (
	logSuffix   = ".log"
	asideSuffix = ".aside"
)

// Log is one byte stream on disk. All methods are safe for concurrent use, but
// only one [Log.Drain] may run at a time and none after [Log.End].
type Log struct {
	store *Store
	seq   uint64

	// Both only rise; first never passes written. Readers load first before
	// written, so that a pair is always a range that existed.
	first, written atomic.Int64

	// keep is held for reading while bytes are read, and for writing while first
	// moves: what a reader found kept stays on disk until it has read it.
	keep sync.RWMutex

	mu      sync.Mutex
	file    *os.File // nil after the end
	waiters []waiter
	loss    string
	ended   bool
	// shown says that somebody else may hold the file, by a reader or because
	// something lies aside of it: it is not given to another log then.
	shown bool
}

// Create makes a new, empty log. Errors wrap the system's errno (ENOSPC, EROFS,
// EMFILE, ...).
func (s *Store) Create() (*Log, error) {
	got, ready := s.spares.take()
	var err error
	if ready {
		if err = checkSpace(int(s.dir.Fd())); err != nil {
			s.giveBack(got)
			return nil, &fs.PathError{Op: "create", Path: s.name(got.seq, logSuffix), Err: err}
		}
	} else if got, err = s.newSpare(); err != nil {
		return nil, err
	}
	return &Log{store: s, seq: got.seq, file: got.file}, nil
}

// Size counts all bytes so far and those dropped from the head.
func (l *Log) Size() (written, dropped int64) {
	dropped = l.first.Load()
	return l.written.Load(), dropped
}

// Loss gives the reason why output could not be kept; empty if the bound alone
// dropped bytes, or nothing did.
func (l *Log) Loss() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.loss
}

// End says that no more bytes will come: the writing descriptor is closed and
// every waiter released. It is idempotent.
func (l *Log) End() {
	l.mu.Lock()
	got := spare{file: l.file, seq: l.seq}
	l.file, l.ended = nil, true
	l.releaseAllLocked()
	unused := got.file != nil && l.written.Load() == 0 && !l.shown
	if unused {
		l.seq = 0
	}
	l.mu.Unlock()
	switch {
	case unused:
		l.store.giveBack(got)
	case got.file != nil:
		_ = got.file.Close()
	}
}

// Remove deletes the stored bytes. The log must have ended; readers that are open
// keep what they hold.
func (l *Log) Remove() error {
	l.mu.Lock()
	seq, shown := l.seq, l.shown
	l.mu.Unlock()
	if seq == 0 {
		return nil
	}
	err := l.store.remove(l.store.name(seq, logSuffix))
	if shown {
		err = errors.Join(err, l.store.remove(l.store.name(seq, asideSuffix)))
	}
	return err
}

// fileName gives the name of the log's file, and fixes that it keeps it; empty if
// it ended without a byte.
func (l *Log) fileName(suffix string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shown = true
	if l.seq == 0 {
		return ""
	}
	return l.store.name(l.seq, suffix)
}

// WriteAside keeps a small piece of data next to a log that has not ended, once.
// It goes away with [Log.Remove].
func (l *Log) WriteAside(data []byte) error {
	file, err := l.store.open(l.fileName(asideSuffix), unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Close())
}

// ReadAside gives back what [Log.WriteAside] kept.
func (l *Log) ReadAside() ([]byte, error) {
	file, err := l.store.open(l.fileName(asideSuffix), unix.O_RDONLY)
	if err != nil {
		return nil, damaged(err)
	}
	defer func() { _ = file.Close() }()
	return io.ReadAll(file)
}

// hasEnded must be asked before written is loaded: then "ended" means that
// written is final.
func (l *Log) hasEnded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended
}
