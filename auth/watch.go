package auth

import (
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// pollEvery is the least time between two looks at the files on the fast path.
const pollEvery = time.Second

// watch calls load when one of its files was replaced, rewritten, made or
// removed, which it tells by stat. There is no goroutine; somebody must ask.
type watch struct {
	source string // for the log
	paths  []string
	stat   func(string) (os.FileInfo, error)
	// load reads everything anew; after an error the old keys stay.
	load func(now time.Time) error
	log  *slog.Logger

	polled atomic.Int64 // Unix nanoseconds

	mu     sync.Mutex
	seen   []os.FileInfo // as of the last load; nil for a file that wasn't there
	failed string        // what the last load failed with; empty after a good one
	closed bool
}

// start loads for the first time.
func (w *watch) start(now time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.polled.Store(now.UnixNano())
	w.seen = w.look()
	return w.load(now)
}

// poll is refresh, at most once every pollEvery. Only here is a failed load tried
// again without a change of the files.
func (w *watch) poll(now time.Time) {
	last, at := w.polled.Load(), now.UnixNano()
	if since := at - last; since >= 0 && since < int64(pollEvery) {
		return
	}
	if w.polled.CompareAndSwap(last, at) {
		w.check(now, true)
	}
}

// refresh loads anew if the files have changed.
func (w *watch) refresh(now time.Time) { w.check(now, false) }

func (w *watch) check(now time.Time, retry bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	found := w.look()
	if same(found, w.seen) && (w.failed == "" || !retry) {
		return
	}
	// Noted before the load: a change during it will differ again at the next look.
	w.seen = found
	err := w.load(now)
	if err == nil {
		w.failed = ""
		w.log.Info("keys loaded again", logSource, w.source)
		return
	}
	if err.Error() != w.failed {
		w.log.Warn("keys changed but can't be loaded; the old ones stay", logSource, w.source, logError, err)
	}
	w.failed = err.Error()
}

// close ends all loading, and waits for a load that is under way.
func (w *watch) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
}

func (w *watch) look() []os.FileInfo {
	infos := make([]os.FileInfo, len(w.paths))
	for i, path := range w.paths {
		if info, err := w.stat(path); err == nil {
			infos[i] = info
		}
	}
	return infos
}

func same(a, b []os.FileInfo) bool {
	for i := range a {
		if a[i] == nil || b[i] == nil {
			if a[i] != b[i] {
				return false
			}
			continue
		}
		if !os.SameFile(a[i], b[i]) || a[i].Size() != b[i].Size() || !a[i].ModTime().Equal(b[i].ModTime()) || a[i].Mode() != b[i].Mode() {
			return false
		}
	}
	return true
}
