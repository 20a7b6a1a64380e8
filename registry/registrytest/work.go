package registrytest

import (
	"encoding/json"
	"sync"

	"afoot/registry"
)

// Work is one start of a [Producer]: the [registry.Run] that the service holds,
// and the handle by which the case moves it.
type Work struct {
	// ID and Owner are what the launch said; Spec is what was asked for.
	ID    registry.ID
	Owner registry.Owner
	Spec  registry.Spec
	// Output is the stream; work of a Final script has none to show.
	Output *Output
	// Stderr is the second stream of a Split script.
	Stderr *Output

	producer *Producer
	script   Script
	settle   func(registry.Outcome, error) // guarded by mu: it is another one after a hand-over

	number int // among all of the producer and its predecessors

	mu       sync.Mutex
	reasons  []string
	discards int
	// moving counts hand-overs and takes back, as one and minus one.
	moving int
	done   bool
}

// Settle ends the output, then reports the outcome. It may be called again: the
// service must ignore all but the first.
func (w *Work) Settle(outcome registry.Outcome) {
	w.Output.End()
	w.Stderr.End()
	w.report(outcome, nil)
}

// Complete settles with status completed and a detail.
func (w *Work) Complete(detail string) {
	w.Settle(registry.Outcome{Status: registry.StatusCompleted, Detail: detail})
}

// Break settles with a broken promise.
func (w *Work) Break(reason error) {
	w.Output.End()
	w.Stderr.End()
	w.report(registry.Outcome{}, reason)
}

func (w *Work) report(o registry.Outcome, broken error) {
	w.mu.Lock()
	settle := w.settle
	w.done = true
	w.mu.Unlock()
	settle(o, broken)
}

// Cancels gives the reasons of all cancels so far, in order.
func (w *Work) Cancels() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.reasons...)
}

// Discards counts how often the stored output was given back.
func (w *Work) Discards() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.discards
}

// Cancel is part of [registry.Run].
func (w *Work) Cancel(reason string) error {
	w.mu.Lock()
	w.reasons = append(w.reasons, reason)
	w.mu.Unlock()
	if w.producer.isRetired() {
		w.Settle(registry.Outcome{Status: registry.StatusKilled, Detail: "retired"})
		return nil
	}
	if w.script.Cancel == nil {
		return nil
	}
	return w.script.Cancel(w, reason)
}

// Request is part of [registry.Run]: the fields of the spec.
func (w *Work) Request() (json.RawMessage, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.Spec.Fields, nil
}

// Discard is part of [registry.Run].
func (w *Work) Discard() error {
	w.mu.Lock()
	w.discards++
	w.mu.Unlock()
	if w.script.Discard != nil {
		return w.script.Discard(w)
	}
	return nil
}
