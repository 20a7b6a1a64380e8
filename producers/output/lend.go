package output

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// What sockets were sent by reference may lie in queues, this machine's or the
// client's, for as long as the client likes, and would change there with the page.
// So no lent position is ever written again: a log that would have to writes on in a
// new file.

// lend says whether the bytes of a log that grows may be sent by reference, up to a
// position of the file, and remembers that they were. The caller holds keep for
// reading. Nothing is lent once a byte was dropped: only then are positions written
// again, so that the pump, which drops under keep, has the whole of it. Nor is it
// where the disk could not take the new file.
func (l *Log) lend(file *os.File, to int64) bool {
	if l.first.Load() > 0 || l.place.base != 0 || l.place.file > 0 || room(int(file.Fd())) < l.place.ring {
		return false
	}
	for {
		lent := l.lent.Load()
		if lent >= to || l.lent.CompareAndSwap(lent, to) {
			return true
		}
	}
}

// refile moves what is kept to a new file of the same name, and to the same positions,
// if the next byte would be written where something is lent. On a full disk the
// oldest part stays behind. A crash leaves the one file or the other.
func (p *pump) refile() error {
	l := p.log
	if p.next() >= l.lent.Load() {
		return nil
	}
	name := l.store.name(l.store.seq.Add(1), logSuffix) // that of no log
	file, err := l.store.create(name)
	if err != nil {
		return err
	}
	if err = p.copyKept(file); err == nil && l.sealed {
		err = file.Chmod(sealedMode)
	}
	if err == nil {
		err = l.store.rename(name, l.era.name(l.seq, logSuffix))
	}
	if err != nil {
		_ = file.Close()
		_ = l.store.remove(name)
		return err
	}
	l.keep.Lock()
	p.changeLocked(file)
	l.keep.Unlock()
	return nil
}

// copyKept writes what is kept into an empty file, and drops of it what finds no room.
func (p *pump) copyKept(to *os.File) error {
	for {
		err := p.copyAll(to)
		first, end, _ := p.log.bounds()
		if !noSpace(err) || first == end {
			return err
		}
		p.log.lost(err)
		p.drop(max((end-first)/2, 4*blockBytes))
		if err := to.Truncate(0); err != nil {
			return err
		}
	}
}

func (p *pump) copyAll(to *os.File) error {
	l := p.log
	piece := l.store.borrow()
	defer l.store.pieces.Put(piece)
	first, end, _ := l.bounds()
	for at, length := range l.place.pieces(first, end-first) {
		from := struct{ io.Reader }{io.NewSectionReader(p.file, at, length)}
		if _, err := io.CopyBuffer(io.NewOffsetWriter(to, at), from, piece[:]); err != nil {
			return err
		}
	}
	return to.Truncate(l.place.size)
}

// changeLocked goes on in another file; that which was written before is given up.
func (p *pump) changeLocked(file *os.File) {
	l := p.log
	l.mu.Lock()
	l.file = file
	l.mu.Unlock()
	_ = p.file.Close()
	p.file = file
	l.place.file++
	l.lent.Store(0)
}

func (s *Store) rename(from, to string) error {
	return s.in(func(dir int) error {
		return os.NewSyscallError("rename", unix.Renameat(dir, from, dir, to))
	})
}
