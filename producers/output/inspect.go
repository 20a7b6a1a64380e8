package output

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// What somebody else did to a log's file.
var (
	errVanished = errors.New("the file was removed")
	errCut      = errors.New("the file was cut short")
)

// next is the position in the file where the next byte belongs.
func (p *pump) next() int64 {
	_, end, _ := p.log.bounds()
	return p.log.place.at(end)
}

// inspect looks, before bytes are written, whether the file is still what was
// written before. Bytes behind one that was cut short would make zeros of what is
// missing, and bytes in one that has no name are seen by nobody once the log has
// ended.
func (p *pump) inspect() {
	var stat unix.Stat_t
	if unix.Fstat(int(p.file.Fd()), &stat) != nil {
		return // writing will tell
	}
	switch {
	case stat.Nlink == 0:
		p.replace()
	case stat.Size < p.log.place.size:
		p.log.lost(errCut)
		p.anew(p.file)
	}
}

// replace makes a file of the same name for the one that vanished. Where none can
// be made, the old one still holds the bytes until the log ends.
func (p *pump) replace() {
	l := p.log
	l.lost(errVanished)
	file, err := l.store.create(l.era.name(l.seq, logSuffix))
	if err != nil {
		return
	}
	p.anew(file)
}

// anew begins an empty file with the next byte: all before are gone.
func (p *pump) anew(file *os.File) {
	l := p.log
	first, end, written := l.bounds()
	l.keep.Lock()
	if file != p.file {
		p.changeLocked(file)
	}
	l.place.base, l.place.ring, l.place.size = written, l.store.ring(), 0
	l.first.Store(written)
	l.gone.Store(written)
	l.keep.Unlock()
	l.note(l.counters(), true)
	l.store.count(first - end)
	l.releaseAll()
}

// vanished says that a file has no name any more.
func vanished(file *os.File) bool {
	var stat unix.Stat_t
	return unix.Fstat(int(file.Fd()), &stat) == nil && stat.Nlink == 0
}
