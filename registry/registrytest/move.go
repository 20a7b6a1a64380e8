package registrytest

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"afoot/registry"
)

// Mover is a [Durable] service that can be handed over: what Moved gave behind HandOver is
// what its successor in the same process is made with, as [Options].Adopt.
type Mover interface {
	Durable
	HandOver(ctx context.Context) error
	Moved() (json.RawMessage, error)
	TakeBack()
}

// HandOver is part of [registry.Movable].
func (w *Work) HandOver() (json.RawMessage, error) {
	if w.script.HandOver != nil {
		if err := w.script.HandOver(w); err != nil {
			return nil, err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.done {
		return nil, registry.ErrEnded
	}
	w.moving++
	return json.RawMessage(strconv.Itoa(w.number)), nil
}

// TakeBack is part of [registry.Movable].
func (w *Work) TakeBack() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.moving--
}

// Moving reports whether live work is handed over.
func (w *Work) Moving() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.moving > 0
}

func (w *Work) over() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.done
}

// Adopt is part of [registry.Adopter]: live work goes on with another launch.
func (p *Producer) Adopt(handle json.RawMessage, launch registry.Launch) (registry.Run, error) {
	n, err := strconv.Atoi(string(handle))
	p.mu.Lock()
	n -= len(p.past)
	var w *Work
	if err == nil && n >= 0 && n < len(p.works) {
		w = p.works[n]
	}
	p.mu.Unlock()
	if w == nil || w.ID != launch.ID || w.Owner != launch.Owner || !w.Moving() {
		return nil, fmt.Errorf("no live work has the handle %s", handle)
	}
	w.mu.Lock()
	w.settle, w.moving = launch.Settle, 0
	w.mu.Unlock()
	if w.script.Adopt != nil {
		if err := w.script.Adopt(w); err != nil {
			return nil, err
		}
	}
	return w.run(), nil
}
