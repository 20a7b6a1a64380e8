package output

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"
)

// check looks whether the file of a log that has ended is what was written, and
// counts what is missing as gone; where nothing is, or the log lives, it does
// nothing. It reports whether it counted anything.
func (l *Log) check() bool {
	l.keep.Lock()
	defer l.keep.Unlock()
	l.mu.Lock()
	able := l.ended && !l.removed && l.seq != 0
	l.mu.Unlock()
	if !able {
		return false
	}
	first, end, _ := l.bounds()
	if first == end {
		return false
	}
	size, reason := l.measure()
	if size >= l.place.size {
		return false
	}
	intact := first
	if end-l.place.base <= l.place.ring { // written straight on, so its head is what was first
		intact = max(first, min(end, l.place.base+size))
	}
	if intact == first {
		l.first.Store(l.written.Load())
	}
	l.gone.Add(end - intact)
	l.store.count(intact - end)
	l.lost(reason)
	return true
}

// measure gives how long the log's file is; 0 if it is none any more.
func (l *Log) measure() (size int64, reason error) {
	file, err := l.store.open(l.fileName(logSuffix), unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ELOOP) {
			return 0, errVanished
		}
		return l.place.size, err // who reads will hear of it
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	switch {
	case err != nil:
		return l.place.size, err
	case !info.Mode().IsRegular():
		return 0, errVanished
	default:
		return info.Size(), errCut
	}
}
