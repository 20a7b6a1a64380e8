package registrytest

import (
	"context"

	"afoot/registry"
)

// run gives work the optional interfaces that its script asks for: none, one of
// them, or else all.
func (w *Work) run() registry.Run {
	stream := streamRun{w, w.Output}
	var chosen []registry.Run
	if w.script.Leftovers != nil {
		chosen = append(chosen, leftoverRun{stream})
	}
	if w.script.Input != nil {
		chosen = append(chosen, inputRun{stream})
	}
	if w.script.Signal != nil {
		chosen = append(chosen, signalRun{stream})
	}
	if w.script.Split {
		chosen = append(chosen, splitRun{stream})
	}
	switch {
	case w.script.Fixed:
		return fixedRun{w}
	case w.script.Final:
		return w
	case len(chosen) == 0:
		return stream
	case len(chosen) == 1:
		return chosen[0]
	}
	return wholeRun{streamRun: stream}
}

// fixedRun is work that can't be handed over.
type fixedRun struct{ registry.Run }

// streamRun is work whose output arrives while it lives.
type streamRun struct {
	*Work
	*Output
}

// leftoverRun is work that outlives its end.
type leftoverRun struct{ streamRun }

func (r leftoverRun) StopLeftovers(reason string) <-chan struct{} { return r.stopLeftovers(reason) }
func (r leftoverRun) Left() bool                                  { return r.left() }

// inputRun is work that can be written to.
type inputRun struct{ streamRun }

func (r inputRun) Input(ctx context.Context, data []byte, last bool) (registry.InputResult, error) {
	return r.input(ctx, data, last)
}

// signalRun is work that takes signals.
type signalRun struct{ streamRun }

func (r signalRun) Signal(name string) error { return r.signal(name) }

// splitRun is work with two streams.
type splitRun struct{ streamRun }

func (r splitRun) Stderr() registry.Stream { return r.stderr() }

// wholeRun can do everything, and says of what its script leaves out that there is
// none.
type wholeRun struct{ streamRun }

func (r wholeRun) StopLeftovers(reason string) <-chan struct{} { return r.stopLeftovers(reason) }
func (r wholeRun) Left() bool                                  { return r.left() }
func (r wholeRun) Signal(name string) error                    { return r.signal(name) }
func (r wholeRun) Stderr() registry.Stream                     { return r.stderr() }

func (r wholeRun) Input(ctx context.Context, data []byte, last bool) (registry.InputResult, error) {
	return r.input(ctx, data, last)
}

func (w *Work) stopLeftovers(reason string) <-chan struct{} {
	if w.script.Leftovers == nil {
		return nil
	}
	return w.script.Leftovers(reason)
}

func (w *Work) left() bool { return w.script.Left != nil && w.script.Left() }

func (w *Work) input(ctx context.Context, data []byte, last bool) (registry.InputResult, error) {
	if w.script.Input == nil {
		return registry.InputResult{}, registry.Errorf(registry.CodeConflict, "task %s takes no input", w.ID)
	}
	return w.script.Input(ctx, w, data, last)
}

func (w *Work) signal(name string) error {
	if w.script.Signal == nil {
		return registry.Errorf(registry.CodeConflict, "task %s takes no signals", w.ID)
	}
	return w.script.Signal(w, name)
}

func (w *Work) stderr() registry.Stream {
	if !w.script.Split {
		return nil
	}
	return w.Stderr
}
