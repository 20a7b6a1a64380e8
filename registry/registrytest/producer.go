package registrytest

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"sync"

	"afoot/registry"
)

// Script says what one start of a [Producer] does. The zero Script makes stream
// work that runs until the case settles it and takes note of cancels. Hooks run
// on the goroutine of whoever calls the producer, with no lock of it held.
type Script struct {
	// Label is the plan's default label; empty means "scripted work".
	Label string
	// Final makes work without a stream: its output is its outcome's.
	Final bool
	// Prepare can refuse the request, or hold it up.
	Prepare func(ctx context.Context) error
	// Start can fail the starter, block it, or use the work before it is published.
	Start func(ctx context.Context, w *Work) error
	// Cancel can refuse, or settle the work at once. Without it a cancel is only
	// noted, and settling is left to the case.
	Cancel func(w *Work, reason string) error
	// Discard can fail giving the output back, or block it.
	Discard func(w *Work) error
	// Leftovers makes stream work that outlives its end, and is asked to end what is
	// left: see [registry.Leftovers].
	Leftovers func(reason string) (gone <-chan struct{})
	// Input makes stream work that can be written to, and Signal work that takes
	// signals: see [registry.Input] and [registry.Signaller].
	Input  func(ctx context.Context, w *Work, data []byte, last bool) (registry.InputResult, error)
	Signal func(w *Work, name string) error
	// Split makes stream work with a second stream: see [Work.Stderr].
	Split bool
	// Left says whether work with Leftovers has left something that lives; nil
	// means no.
	Left func() bool
	// Handle can fail the question for what [Producer.Restore] needs, or note it.
	Handle func(w *Work) error
	// HandOver can fail or hold up the hand-over of live work, Adopt going on with it.
	// Fixed work can't be handed over.
	HandOver, Adopt func(w *Work) error
	Fixed           bool
}

// Producer is a [registry.Producer] under full control of its case. The fields
// of a spec choose the [Script]; empty fields choose the zero Script.
type Producer struct {
	mu      sync.Mutex
	scripts []Script
	works   []*Work
	retired bool
	// past is the work of the process before, restored what of it was given back.
	past, restored []*Work
}

// NewProducer makes a producer that knows no script yet.
func NewProducer() *Producer { return &Producer{} }

// fields is the wire form of a reference to a script.
type fields struct {
	Script int `json:"script"`
}

// Fields registers a script and gives the [registry.Spec] fields that choose it.
func (p *Producer) Fields(s Script) json.RawMessage {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.scripts = append(p.scripts, s)
	return json.RawMessage(`{"script":` + strconv.Itoa(len(p.scripts)) + `}`)
}

// Starts counts how often a starter ran, whatever came of it.
func (p *Producer) Starts() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.works)
}

// Work gives the latest work that was started under an id, nil if none was.
func (p *Producer) Work(id registry.ID) *Work {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range slices.Backward(slices.Concat(p.restored, p.works)) {
		if w.ID == id {
			return w
		}
	}
	return nil
}

// Retire settles all work as killed, and from now on each cancel settles what it
// asks to end: a service can always be closed after it.
func (p *Producer) Retire() {
	p.mu.Lock()
	p.retired = true
	works := append([]*Work(nil), p.works...)
	p.mu.Unlock()
	for _, w := range works {
		w.Settle(registry.Outcome{Status: registry.StatusKilled, Detail: "retired"})
	}
}

func (p *Producer) isRetired() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.retired
}

// Prepare is part of [registry.Producer].
func (p *Producer) Prepare(ctx context.Context, spec registry.Spec) (registry.Plan, error) {
	var chosen fields
	if len(spec.Fields) > 0 {
		if err := json.Unmarshal(spec.Fields, &chosen); err != nil {
			return nil, registry.Wrap(registry.CodeInvalid, err, "fields are no script")
		}
	}
	var script Script
	if chosen.Script > 0 {
		p.mu.Lock()
		script = p.scripts[chosen.Script-1]
		p.mu.Unlock()
	}
	if script.Label == "" {
		script.Label = "scripted work"
	}
	if script.Prepare != nil {
		if err := script.Prepare(ctx); err != nil {
			return nil, err
		}
	}
	return &plan{producer: p, script: script, spec: spec}, nil
}

type plan struct {
	producer *Producer
	script   Script
	spec     registry.Spec
}

func (p *plan) Label() string { return p.script.Label }

func (p *plan) Start(ctx context.Context, launch registry.Launch) (registry.Run, error) {
	w := &Work{
		ID: launch.ID, Owner: launch.Owner, Spec: p.spec, Output: NewOutput(), Stderr: NewOutput(),
		producer: p.producer, script: p.script, settle: launch.Settle,
	}
	p.producer.mu.Lock()
	w.number = len(p.producer.past) + len(p.producer.works)
	p.producer.works = append(p.producer.works, w)
	p.producer.mu.Unlock()
	if p.script.Start != nil {
		if err := p.script.Start(ctx, w); err != nil {
			return nil, err
		}
	}
	return w.run(), nil
}
