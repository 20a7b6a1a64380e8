package main

import (
	"net/http"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"
)

// What makes a lull: from one look to the next no more than so much is allocated, and
// what could be handed back is worth it.
const (
	lullLook    = time.Second
	lullBytes   = 256 << 10
	lullGarbage = 4 << 20
)

// lull hands memory back to the system when the daemon has come to rest behind
// requests. The collector alone would keep as much as the busiest moment needed: it
// has no reason to run while nothing is allocated.
type lull struct {
	// look gives what was allocated so far, and what could be handed back; free does it.
	look func() (allocated, garbage uint64)
	free func()
	// awake says that a look is due.
	awake atomic.Bool

	mu    sync.Mutex
	timer *time.Timer // nil until the first request
	over  bool
	// allocated is that of the look before.
	allocated uint64
}

func newLull() *lull { return &lull{look: heap, free: debug.FreeOSMemory} }

// watch hears of each request, at its begin and its end.
func (l *lull) watch(inner http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.stir()
		inner.ServeHTTP(w, r)
		l.stir()
	})
}

// stir says that something goes on. While that is known it costs one load.
func (l *lull) stir() {
	if l.awake.Load() || !l.awake.CompareAndSwap(false, true) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.over:
	case l.timer == nil:
		l.timer = time.AfterFunc(lullLook, l.settle)
	default:
		l.timer.Reset(lullLook)
	}
}

// settle looks again until nothing goes on any more, and then hands back once.
func (l *lull) settle() {
	l.awake.Store(false) // before the look: who stirs from here on is seen by the next
	allocated, garbage := l.look()
	l.mu.Lock()
	rested := allocated-l.allocated <= lullBytes
	l.allocated = allocated
	l.mu.Unlock()
	switch {
	case !rested:
		l.stir()
	case garbage >= lullGarbage:
		l.free()
	}
}

// close begins no look any more.
func (l *lull) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	if l.timer != nil {
		l.timer.Stop()
	}
}

// heap is what the runtime says of its heap.
func heap() (allocated, garbage uint64) {
	samples := [...]metrics.Sample{
		{Name: "/gc/heap/allocs:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/gc/heap/live:bytes"},
	}
	metrics.Read(samples[:])
	var v [len(samples)]uint64
	for i := range samples {
		if samples[i].Value.Kind() == metrics.KindUint64 { // else this runtime does not know it
			v[i] = samples[i].Value.Uint64()
		}
	}
	allocated, garbage = v[0], v[1]
	if objects, live := v[2], v[3]; objects > live {
		garbage += objects - live
	}
	return allocated, garbage
}
