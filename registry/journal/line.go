package journal

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
)

// line is what waits to be written.
type line struct {
	// written is the newest mark that is on disk. It is only stored under mu.
	written atomic.Uint64
	// wake says to the writer that there is something.
	wake chan struct{}

	mu sync.Mutex
	// rows are the changes up to last that nobody has taken.
	rows map[key]change
	last uint64
	// taken is the newest mark that the writer has taken.
	taken uint64
	// now and next, when not nil, are awaited: what is being written, and rows.
	now, next *round
	// stuck, when not nil, is why nothing is written now.
	stuck error
	// spare is an empty map, to be used again.
	spare map[key]change
}

// round is a transaction as seen by those who wait for it.
type round struct {
	done chan struct{}
	err  error
}

func (r *round) end(err error) {
	if r != nil {
		r.err = err
		close(r.done)
	}
}

// spareRows is how many rows a map may have had to be used again.
const spareRows = 1024

// addLocked puts a change in line. The caller ends the unit.
func (l *line) addLocked(row any, then func()) {
	k, c := keyOf(row), change{row: row, order: l.last + 1, then: then}
	if older, found := l.rows[k]; found {
		var left bool
		if c, left = merge(older, c); !left {
			delete(l.rows, k)
			return
		}
	}
	l.rows[k] = c
}

// endLocked ends a unit: what was added since the last end stays together.
func (l *line) endLocked() uint64 {
	l.last++
	select {
	case l.wake <- struct{}{}:
	default:
	}
	return l.last
}

// take gives everything in line to the writer.
func (l *line) take() map[key]change {
	l.mu.Lock()
	defer l.mu.Unlock()
	batch := l.rows
	l.rows, l.spare = l.spare, nil
	if l.rows == nil {
		l.rows = make(map[key]change)
	}
	l.taken = l.last
	l.now, l.next = l.next, nil
	return batch
}

// landed says that what was taken is on disk.
func (l *line) landed(batch map[key]change) {
	var thens []change
	for _, c := range batch {
		if c.then != nil {
			thens = append(thens, c)
		}
	}
	rows := len(batch)
	clear(batch)
	l.mu.Lock()
	l.written.Store(l.taken)
	l.stuck = nil
	l.now.end(nil)
	l.now = nil
	if rows <= spareRows {
		l.spare = batch
	}
	l.mu.Unlock()
	slices.SortFunc(thens, func(a, b change) int { return cmp.Compare(a.order, b.order) })
	for _, c := range thens {
		c.then()
	}
}

// back puts what was taken in front of the line again and tells everybody why.
func (l *line) back(batch map[key]change, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for k, c := range batch {
		c.tried = true
		batch[k] = c
	}
	for k, newer := range l.rows {
		if older, found := batch[k]; found {
			var left bool
			if newer, left = merge(older, newer); !left {
				delete(batch, k)
				continue
			}
		}
		batch[k] = newer
	}
	l.rows = batch
	l.taken = l.written.Load()
	l.stickLocked(err)
}

// stick tells everybody why nothing is written.
func (l *line) stick(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stickLocked(err)
}

func (l *line) stickLocked(err error) {
	l.stuck = err
	l.now.end(err)
	l.next.end(err)
	l.now, l.next = nil, nil
}

// await gives the round that brings mark to the disk; nil if it is there, or an
// error if nothing is written.
func (l *line) await(mark uint64) (*round, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	mark = min(mark, l.last)
	if mark <= l.written.Load() {
		return nil, nil //nolint:nilnil // nothing to wait for
	}
	if l.stuck != nil {
		return nil, l.stuck
	}
	r := &l.next
	if mark <= l.taken {
		r = &l.now
	}
	if *r == nil {
		*r = &round{done: make(chan struct{})}
	}
	return *r, nil
}

// length counts the changes in line.
func (l *line) length() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.rows)
}
