package api

import (
	"slices"
	"sync"

	"afoot/registry"
)

// watchers are the open streams of single tasks, each woken when its task changes.
// The zero value has none.
type watchers struct {
	mu   sync.Mutex
	byID map[registry.ID][]chan struct{}
}

// add gives a channel that has something to receive after each change, however many
// there were, until remove is called.
func (w *watchers) add(id registry.ID) (changed <-chan struct{}, remove func()) {
	own := make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byID == nil {
		w.byID = make(map[registry.ID][]chan struct{})
	}
	w.byID[id] = append(w.byID[id], own)
	return own, func() { w.remove(id, own) }
}

func (w *watchers) remove(id registry.ID, own chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	rest := slices.DeleteFunc(w.byID[id], func(c chan struct{}) bool { return c == own })
	if w.byID[id] = rest; len(rest) == 0 {
		delete(w.byID, id)
	}
}

// wake never blocks.
func (w *watchers) wake(id registry.ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.byID[id] {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}
