package output

// waiter is a channel that closes when the log grows past an offset.
type waiter struct {
	offset int64
	grown  chan struct{}
}

// Grown gives a channel that is closed once more than offset bytes were written
// or the log has ended; already closed if that is so now. Giving up on it needs
// no call.
func (l *Log) Grown(offset int64) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	// The pump moves written before it takes the lock: growth that is not seen
	// here finds the waiter.
	if l.ended || l.written.Load() > offset {
		return l.store.closed
	}
	for _, w := range l.waiters {
		if w.offset == offset {
			return w.grown
		}
	}
	w := waiter{offset: offset, grown: make(chan struct{})}
	l.waiters = append(l.waiters, w)
	return w.grown
}

// grew counts n more bytes and wakes who waits for them.
func (l *Log) grew(n int64) {
	l.written.Add(n)
	l.wake()
}

func (l *Log) wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	written := l.written.Load()
	if len(l.waiters) == 0 {
		return
	}
	rest := l.waiters[:0]
	for _, w := range l.waiters {
		if w.offset < written {
			close(w.grown)
		} else {
			rest = append(rest, w)
		}
	}
	clear(l.waiters[len(rest):])
	l.waiters = rest
}

func (l *Log) releaseAllLocked() {
	for _, w := range l.waiters {
		close(w.grown)
	}
	l.waiters = nil
}
