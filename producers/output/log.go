package output

import (
	"errors"
	"io"
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
}

// Create makes a new, empty log. Errors wrap the system's errno (ENOSPC, EROFS,
// EMFILE, ...).
func (s *Store) Create() (*Log, error) {
	log := &Log{store: s, seq: s.seq.Add(1)}
	file, err := s.open(s.name(log.seq, logSuffix), unix.O_RDWR|unix.O_CREAT|unix.O_EXCL)
	if err != nil {
		return nil, err
	}
	log.file = file
	return log, nil
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
	file := l.file
	l.file, l.ended = nil, true
	l.releaseAllLocked()
	l.mu.Unlock()
	if file != nil {
		_ = file.Close()
	}
}

// Remove deletes the stored bytes. The log must have ended; readers that are open
// keep what they hold.
func (l *Log) Remove() error {
	return errors.Join(
		l.store.remove(l.store.name(l.seq, logSuffix)),
		l.store.remove(l.store.name(l.seq, asideSuffix)),
	)
}

// WriteAside keeps a small piece of data next to the log, once. It goes away
// with [Log.Remove].
func (l *Log) WriteAside(data []byte) error {
	file, err := l.store.open(l.store.name(l.seq, asideSuffix), unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Close())
}

// ReadAside gives back what [Log.WriteAside] kept.
func (l *Log) ReadAside() ([]byte, error) {
	file, err := l.store.open(l.store.name(l.seq, asideSuffix), unix.O_RDONLY)
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
