package auth

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// key is one verification key. Everything that a key proved holds a pointer to
// it, so that ending the key ends all of that at once.
type key struct {
	// material is a []byte for HS256, else a public key.
	material any

	// until is the key's end in Unix nanoseconds; noEnd while it has none.
	until atomic.Int64

	// mu guards the vigils, which hear of a new end, and their timers.
	mu     sync.Mutex
	vigils map[*vigil]struct{}
}

const noEnd = math.MaxInt64

func newKey(material any) *key {
	k := &key{material: material}
	k.until.Store(noEnd)
	return k
}

// end gives the moment from which the key proves nothing any more, if it has one.
func (k *key) end() (time.Time, bool) {
	until := k.until.Load()
	if until == noEnd {
		return time.Time{}, false
	}
	return time.Unix(0, until), true
}

func (k *key) endAt(t time.Time) { k.set(t.UnixNano()) }

func (k *key) endless() { k.set(noEnd) }

func (k *key) live(now time.Time) bool { return now.UnixNano() < k.until.Load() }

func (k *key) set(until int64) {
	if k.until.Swap(until) == until {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for v := range k.vigils {
		v.timer.Reset(0) // it looks again
	}
}
