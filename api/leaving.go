package api

import (
	"net/http"
	"sync"

	"afoot/registry"
)

// leaving says that the daemon is about to be replaced, until it is not. It is made by
// newLeaving.
type leaving struct {
	mu sync.Mutex
	// begun is closed meanwhile.
	begun chan struct{}
	on    bool
}

func newLeaving() leaving { return leaving{begun: make(chan struct{})} }

// Leave ends what clients can go on with elsewhere: logs that are followed. Waits that
// the service releases say that they may be repeated at once, and so is refused what
// still comes by an open connection. Streams are the hub's.
func (a *API) Leave() {
	a.leaving.mu.Lock()
	defer a.leaving.mu.Unlock()
	if !a.leaving.on {
		a.leaving.on = true
		close(a.leaving.begun)
	}
}

// Stay undoes Leave.
func (a *API) Stay() {
	a.leaving.mu.Lock()
	defer a.leaving.mu.Unlock()
	if a.leaving.on {
		a.leaving.on, a.leaving.begun = false, make(chan struct{})
	}
}

// left gives a channel that is closed when the daemon leaves.
func (a *API) left() <-chan struct{} {
	a.leaving.mu.Lock()
	defer a.leaving.mu.Unlock()
	return a.leaving.begun
}

func (a *API) isLeaving() bool {
	a.leaving.mu.Lock()
	defer a.leaving.mu.Unlock()
	return a.leaving.on
}

// staying refuses what comes while the daemon leaves. What that means for who asks is
// said where all refusals are answered.
func (a *API) staying(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !a.isLeaving() {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Connection", "close")
		callOf(w).fail(r, registry.Errorf(registry.CodeUnavailable, "The daemon leaves."))
	})
}
