package bash

import (
	"encoding/json"
	"fmt"

	"afoot/producers/output"
	"afoot/registry"
)

// handle is what gives a run back after the daemon's end.
type handle struct {
	Log json.RawMessage `json:"log"`
	// Stderr is left out when both streams are one.
	Stderr json.RawMessage `json:"stderr,omitempty"`
	// Request is left out when it is kept aside of the log.
	Request json.RawMessage `json:"request,omitempty"`
	// Left names what outlived the command.
	Left string `json:"left,omitempty"`
	// Live is there only across an exec.
	Live *liveState `json:"live,omitempty"`
}

var (
	_ registry.Kept     = (*run)(nil)
	_ registry.Restorer = (*Producer)(nil)
)

// Handle implements [registry.Kept].
func (r *run) Handle() (json.RawMessage, error) {
	h, err := r.handle()
	if err != nil {
		return nil, err
	}
	return h.encode(), nil
}

// encode is what json.Marshal would give of a handle that is not live, without another
// look at its parts. It is asked for twice in each task's life.
func (h *handle) encode() json.RawMessage {
	text := make([]byte, 0, len(h.Log)+len(h.Stderr)+len(h.Request)+64)
	text = append(append(text, `{"log":`...), h.Log...)
	if h.Stderr != nil {
		text = append(append(text, `,"stderr":`...), h.Stderr...)
	}
	if h.Request != nil {
		text = append(append(text, `,"request":`...), h.Request...)
	}
	if h.Left != "" {
		text = append(append(append(text, `,"left":"`...), h.Left...), '"') // letters and digits
	}
	return append(text, '}')
}

func (r *run) handle() (h handle, err error) {
	h.Request = r.request.json()
	r.mu.Lock()
	if r.ghosts != nil {
		h.Left = r.ghosts.name
	}
	r.mu.Unlock()
	h.Log, err = r.log.Handle()
	if err == nil && r.stderr != nil {
		h.Stderr, err = r.stderr.log.Handle()
	}
	return h, err
}

// Restore implements [registry.Restorer]. It opens nothing that stays open.
func (p *Producer) Restore(data json.RawMessage) (registry.Run, error) {
	var h handle
	if err := json.Unmarshal(data, &h); err != nil {
		return nil, fmt.Errorf("restore a command: %w", err)
	}
	r, err := p.restore(&h)
	if err != nil {
		return nil, fmt.Errorf("restore a command: %w", err)
	}
	return r, nil
}

func (p *Producer) restore(h *handle) (*run, error) {
	r := &run{producer: p, request: newDescription(h.Request)}
	var err error
	if r.log, err = p.store.Reopen(h.Log); err != nil {
		return nil, err
	}
	if h.Stderr != nil {
		var second *output.Log
		if second, err = p.store.Reopen(h.Stderr); err != nil {
			return nil, err
		}
		r.stderr = &stream{log: second}
	}
	if h.Left != "" {
		p.reclaim(r, h.Left)
	}
	return r, nil
}
