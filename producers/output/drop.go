package output

// blockBytes is the unit in which a disk gives room.
const blockBytes = 4096

// slack is how much more than needed a log at its bound drops at once, so that it
// is seldom done.
func (p *pump) slack() int64 { return min(p.bound()/32, 2<<20) }

// bound is how much the log may keep.
func (p *pump) bound() int64 {
	bound := min(p.log.store.max, p.log.place.ring)
	if p.modest > 0 {
		return min(bound, p.modest)
	}
	return bound
}

// free says how far the log is from its bound.
func (p *pump) free() int64 {
	first, end, _ := p.log.bounds()
	return p.bound() - (end - first)
}

// drop moves the first kept byte over at least need bytes, or over all there
// are. The new first byte begins a unit, so that no reader starts inside a
// character.
func (p *pump) drop(need int64) {
	l := p.log
	first, end, _ := l.bounds()
	to := p.boundary(min(first+need+p.slack(), end), first, end)
	l.keep.Lock()
	l.first.Store(to)
	l.gone.Add(to - first)
	l.keep.Unlock()
	l.note(l.counters(), true)
	l.store.count(first - to)
}

// boundary moves to, which lies between first and end, up to where a unit
// begins; back to the start of one that has not arrived whole.
func (p *pump) boundary(to, first, end int64) int64 {
	back := min(longest-1, to-first)
	if back == 0 {
		return to
	}
	var buf [2*longest - 1]byte
	window, err := p.log.readSpan(p.file, buf[:back+longest], to-back, end)
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

// shed gives room to a full disk: of what is kept the older half, or all if that
// is little. Where the file system takes nothing back, the room that the log has
// serves again. False means that there is none. From then on the log is modest: it
// leaves some room for others.
func (p *pump) shed() bool {
	l := p.log
	first, end, _ := l.bounds()
	kept := end - first
	if kept == 0 {
		return false
	}
	p.modest = max(kept/4*3, 4*blockBytes)
	if kept > 4*blockBytes {
		kept /= 2
	}
	p.drop(kept)
	if l.first.Load() == first {
		return false
	}
	return p.giveBack() || p.shrink()
}

// relax lets a modest log keep twice as much once the disk has as much room as it
// keeps.
func (p *pump) relax() {
	if p.modest == 0 || room(int(p.file.Fd())) < p.modest {
		return
	}
	if p.modest *= 2; p.modest >= p.log.store.max {
		p.modest = 0
	}
}

// giveBack returns the blocks of the file that hold nothing kept.
func (p *pump) giveBack() bool {
	l := p.log
	if l.store.keeps.Load() || l.lent.Load() > 0 {
		return false // the file system may clear what was lent
	}
	first, end, _ := l.bounds()
	for at, length := range l.place.pieces(end, first+l.place.ring-end) {
		from := (at + blockBytes - 1) &^ (blockBytes - 1)
		to := min(at+length, l.place.size) &^ (blockBytes - 1)
		if to <= from {
			continue
		}
		if err := l.store.punch(int(p.file.Fd()), from, to-from); err != nil {
			if !l.store.keeps.Swap(true) {
				l.store.logger.Warn("the disk does not take dropped output back", "error", err.Error())
			}
			return false
		}
	}
	return true
}

// shrink makes the ring end where the file does. All kept bytes are in their
// places then too: a file that has to grow was not written round yet.
func (p *pump) shrink() bool {
	l := p.log
	_, end, _ := l.bounds()
	size := l.place.size
	if size < blockBytes || size >= l.place.ring || l.place.at(end) != size {
		return false
	}
	l.keep.Lock()
	l.place.ring = size
	l.keep.Unlock()
	l.note(l.counters(), true)
	return true
}
