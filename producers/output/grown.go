package output

import "math"

// waiter is a channel that closes when the log grows past an offset.
type waiter struct {
	offset int64
	grown  chan struct{}
	next   *waiter
}

// Grown gives a channel that is closed once more than offset bytes were written
// or the log has ended; already closed if that is so now. Giving up on it needs
// no call.
func (l *Log) Grown(offset int64) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.grownLocked(offset)
}

// grownKept is Grown for bytes that are kept: behind them it waits until the
// disk takes bytes again.
func (l *Log) grownKept(offset int64) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	// The pump may move both meanwhile, first before gone, so that this never finds
	// too much lost. When the disk is healed it wakes everybody, behind this lock.
	gone := l.gone.Load()
	if lost := gone - l.first.Load(); lost > 0 && offset >= l.written.Load()-lost {
		offset = math.MaxInt64
	}
	return l.grownLocked(offset)
}

func (l *Log) grownLocked(offset int64) <-chan struct{} {
	// The pump moves written before it looks for waiters: growth that is not seen
	// here finds the waiter.
	if l.ended {
		return l.store.closed
	}
	for w := l.waiters; w != nil; w = w.next {
		if w.offset == offset {
			return w.grown
		}
	}
	w := &waiter{offset: offset, grown: make(chan struct{}), next: l.waiters}
	l.waiters = w
	l.waiting.Store(true)
	if l.written.Load() > offset {
		l.wakeLocked()
	}
	return w.grown
}

// grew counts n more bytes and wakes who waits for them.
func (l *Log) grew(n int64) {
	l.written.Add(n)
	l.store.count(n)
	l.wake()
}

// wake costs nothing while everybody is busy with what they have.
func (l *Log) wake() {
	if !l.waiting.Load() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wakeLocked()
}

func (l *Log) wakeLocked() {
	written := l.written.Load()
	var rest *waiter
	for w := l.waiters; w != nil; {
		next := w.next
		if w.offset < written {
			close(w.grown)
		} else {
			w.next, rest = rest, w
		}
		w = next
	}
	l.waiters = rest
	l.waiting.Store(rest != nil)
}

func (l *Log) releaseAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.releaseAllLocked()
}

func (l *Log) releaseAllLocked() {
	for w := l.waiters; w != nil; w = w.next {
		close(w.grown)
	}
	l.waiters = nil
	l.waiting.Store(false)
}
