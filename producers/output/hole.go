package output

// blockBytes is the unit in which a file's head is given back.
const blockBytes = 4096

// step is how much more than needed a log over its bound gives back at once, so
// that it is seldom done.
func (s *Store) step() int64 { return min(s.max/32, 2<<20) }

// drop moves the first kept byte over at least need bytes, or over all there
// are, and gives their room back. The new first byte begins a unit, so that no
// reader starts inside a character.
func (p *pump) drop(need int64) {
	l := p.log
	first, written := l.first.Load(), l.written.Load()
	to := p.boundary(min(first+need+l.store.step(), written), first, written)
	l.keep.Lock()
	l.first.Store(to)
	l.keep.Unlock()
	p.punch()
}

// boundary moves to, which lies between first and written, up to where a unit
// begins; back to the start of one that has not arrived whole.
func (p *pump) boundary(to, first, written int64) int64 {
	back := min(longest-1, to-first)
	if back == 0 {
		return to
	}
	var buf [2*longest - 1]byte
	window, err := readSpan(p.file, buf[:back+longest], to-back, written)
	if err != nil {
		return to
	}
	behind := inside(window, int(back), false)
	if behind == 0 {
		return to
	}
	to -= int64(behind)
	if size, cut := unit(window[int(back)-behind:]); !cut {
		to += int64(size)
	}
	return to
}

// punch gives the blocks below the first kept byte back to the disk.
func (p *pump) punch() {
	to := p.log.first.Load() &^ (blockBytes - 1)
	if p.keeps || to <= p.given {
		return
	}
	if err := punch(int(p.file.Fd()), p.given, to-p.given); err != nil {
		p.keeps = true
		p.log.store.logger.Warn("the disk does not take dropped output back", "error", err.Error())
		return
	}
	p.given = to
}
