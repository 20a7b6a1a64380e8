package registrytest

import (
	"encoding/json"
	"fmt"
	"strconv"

	"afoot/registry"
)

// Successor is the producer of the next process: it knows the scripts, and can
// restore the work of this one as far as its output was written.
func (p *Producer) Successor() *Producer {
	p.mu.Lock()
	defer p.mu.Unlock()
	next := &Producer{scripts: p.scripts}
	for _, w := range append(append([]*Work(nil), p.past...), p.works...) {
		next.past = append(next.past, w.ended(next))
	}
	return next
}

// ended is the work as its successor finds it.
func (w *Work) ended(p *Producer) *Work {
	next := &Work{
		ID: w.ID, Owner: w.Owner, Spec: w.Spec, Output: w.Output.frozen(), Stderr: w.Stderr.frozen(),
		producer: p, script: w.script, number: w.number, settle: func(registry.Outcome, error) {},
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	next.discards = w.discards
	return next
}

func (o *Output) frozen() *Output {
	o.mu.Lock()
	defer o.mu.Unlock()
	return &Output{kept: append([]byte(nil), o.kept...), dropped: o.dropped, ended: true, lost: o.lost}
}

// Handle is part of [registry.Kept].
func (w *Work) Handle() (json.RawMessage, error) {
	if w.script.Handle != nil {
		if err := w.script.Handle(w); err != nil {
			return nil, err
		}
	}
	return json.RawMessage(strconv.Itoa(w.number)), nil
}

// Restore is part of [registry.Restorer].
func (p *Producer) Restore(handle json.RawMessage) (registry.Run, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, err := strconv.Atoi(string(handle))
	if err == nil && n >= len(p.past) && n < len(p.past)+len(p.works) && p.works[n-len(p.past)].over() {
		return p.works[n-len(p.past)].run(), nil // of the same process
	}
	if err != nil || n < 0 || n >= len(p.past) {
		return nil, fmt.Errorf("no work has the handle %s", handle)
	}
	w := p.past[n]
	if w.discards > 0 {
		return nil, fmt.Errorf("work %d was discarded", n)
	}
	w.Output.mu.Lock()
	defer w.Output.mu.Unlock()
	if w.Output.lost != nil {
		return nil, w.Output.lost
	}
	p.restored = append(p.restored, w)
	return w.run(), nil
}
