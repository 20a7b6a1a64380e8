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
	era   *era
	seq   uint64
	// use counts the logs without a byte that the file had served before.
	use uint32
	// slot is where the log notes what its file does not show; 0: nowhere yet. Bent says
	// that there is something that it does not, sealed that it could not be noted. They
	// are the pump's.
	slot         int32
	bent, sealed bool
	// waiting says that there are waiters. It changes under mu.
	waiting atomic.Bool

	// written counts all bytes so far, gone those of them that can't be read any
	// more: those before first, and those behind the kept ones that a fault lost.
	// All only rise, and gone never passes written if it is loaded before it. Only
	// the pump changes them.
	written, gone, first atomic.Int64
	// lent is up to where sockets may refer to the file, see lend.
	lent atomic.Int64

	// keep is held for reading while bytes are read, and for writing while any of
	// them become unreadable: what a reader found kept stays in its place until it
	// has read it. It guards place too.
	keep  sync.RWMutex
	place place

	mu      sync.Mutex
	file    *os.File // nil after the end
	waiters *waiter
	// loss is why output could not be kept; nil if it could.
	loss    *string
	removed bool
	ended   bool
	// shown says that somebody else may hold the file, by a reader or because
	// something lies aside of it: it is not given to another log then.
	shown bool
	// aside says that something lies aside of it, named that a handle has its name.
	aside, named bool
}

// Create makes a new, empty log. Errors wrap the system's errno (ENOSPC, EROFS,
// EMFILE, ...).
func (s *Store) Create() (*Log, error) {
	got, ready := s.spares.take()
	for ready && (vanished(got.file) || !s.fresh(&got)) {
		s.drop(got)
		got, ready = s.spares.take()
	}
	var err error
	if ready {
		if err = s.in(checkSpace); err != nil {
			s.giveBack(got)
			return nil, &fs.PathError{Op: "create", Path: s.name(got.seq, logSuffix), Err: err}
		}
	} else if got, err = s.newSpare(); err != nil {
		return nil, err
	}
	return &Log{
		store: s, era: s.era, seq: got.seq, use: got.use, slot: got.slot, file: got.file, place: place{ring: s.ring()},
	}, nil
}

// Size counts all bytes so far and those that are gone: dropped from the head or,
// because of a fault, lost at the end.
func (l *Log) Size() (written, dropped int64) {
	dropped = l.gone.Load()
	return l.written.Load(), dropped
}

// bounds gives the kept range, and how many bytes there were: those from end on
// are lost. The caller holds keep.
func (l *Log) bounds() (first, end, written int64) {
	first, gone := l.first.Load(), l.gone.Load()
	written = l.written.Load()
	return first, written - (gone - first), written
}

// Loss gives the reason why output could not be kept; empty if the bound alone
// dropped bytes, or nothing did.
func (l *Log) Loss() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lossLocked()
}

func (l *Log) lossLocked() string {
	if l.loss == nil {
		return ""
	}
	return *l.loss
}

// End says that no more bytes will come: the writing descriptor is closed and
// every waiter released. It is idempotent.
func (l *Log) End() {
	l.mu.Lock()
	got := spare{file: l.file, seq: l.seq, slot: l.slot, use: l.use, named: l.named}
	doomed := l.removed && !l.ended
	l.file, l.ended = nil, true
	l.releaseAllLocked()
	unused := got.file != nil && l.written.Load() == 0 && !l.shown && l.era == l.store.era
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
	if doomed {
		_ = l.delete(true) // what stays is swept at the next start
	}
}

// Remove deletes the stored bytes, of a log that has not ended as soon as it has.
// Readers that are open keep what they hold.
func (l *Log) Remove() error {
	l.mu.Lock()
	again, ended := l.removed, l.ended
	l.removed = true
	l.mu.Unlock()
	if !ended {
		return nil
	}
	return l.delete(!again)
}

// delete removes the files of a log that has ended; first says that this was not tried
// before.
func (l *Log) delete(first bool) error {
	l.mu.Lock()
	seq, shown := l.seq, l.shown
	l.mu.Unlock()
	if seq == 0 {
		return nil
	}
	if first {
		l.keep.RLock() // see check
		written, gone := l.Size()
		l.keep.RUnlock()
		l.store.count(gone - written)
	}
	err := l.store.remove(l.era.name(seq, logSuffix))
	if shown {
		err = errors.Join(err, l.store.remove(l.era.name(seq, asideSuffix)))
	}
	if first && err == nil {
		l.era.slots.giveBack(l.slot)
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
	return l.era.name(l.seq, suffix)
}

// WriteAside keeps a small piece of data next to a log that has not ended, once.
// It goes away with [Log.Remove].
func (l *Log) WriteAside(data []byte) error {
	file, err := l.store.open(l.fileName(asideSuffix), unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL)
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.aside = true
	l.mu.Unlock()
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

func (l *Log) isRemoved() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.removed
}
