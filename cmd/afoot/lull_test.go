package main

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLull(t *testing.T) {
	type world struct {
		*lull
		allocated, garbage atomic.Uint64
		freed              atomic.Int64
	}
	// busy allocates for so long, as a daemon does that has requests.
	busy := func(w *world, seconds int) {
		for range seconds * 10 {
			w.stir()
			w.allocated.Add(lullBytes)
			<-time.After(100 * time.Millisecond)
		}
	}
	for name, c := range map[string]struct {
		garbage uint64
		during  func(w *world)
		freed   int64
	}{
		"once, at rest": {lullGarbage, func(w *world) { busy(w, 5) }, 1},
		"again behind other work": {lullGarbage, func(w *world) {
			busy(w, 5)
			<-time.After(time.Hour)
			busy(w, 1)
		}, 2},
		"not for little":   {lullGarbage - 1, func(w *world) { busy(w, 5) }, 0},
		"not while busy":   {lullGarbage, func(w *world) { busy(w, 3600); w.close() }, 0},
		"not untouched":    {lullGarbage, func(*world) {}, 0},
		"not closed":       {lullGarbage, func(w *world) { busy(w, 1); w.close(); w.stir() }, 0},
		"closed untouched": {lullGarbage, func(w *world) { w.close(); w.stir() }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &world{lull: newLull()}
				w.look = func() (uint64, uint64) { return w.allocated.Load(), w.garbage.Load() }
				w.free = func() { w.freed.Add(1) }
				w.garbage.Store(c.garbage)
				c.during(w)
				<-time.After(3 * lullLook)
				synctest.Wait()
				require.Equal(t, c.freed, w.freed.Load())
				<-time.After(time.Hour)
				require.Equal(t, c.freed, w.freed.Load(), "at rest nothing is looked at")
				w.close()
			})
		})
	}
}

func TestLullHearsOfRequests(t *testing.T) {
	l := newLull()
	l.free = func() {}
	defer l.close()
	begun := false
	h := l.watch(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { begun = l.awake.Swap(false) }))
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody))
	require.True(t, begun, "at its begin")
	require.True(t, l.awake.Load(), "at its end")
}

func TestLullKnowsTheHeap(t *testing.T) {
	const size = 256 << 20
	before, _ := heap()
	waste := make([]byte, size)
	after, _ := heap()
	require.GreaterOrEqual(t, after-before, uint64(len(waste)))
	runtime.GC() // so that it would be free, and the system's no more
	runtime.GC()
	newLull().free()
	_, garbage := heap()
	require.Less(t, garbage, uint64(size))
}
