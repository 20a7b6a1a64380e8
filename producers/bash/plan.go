package bash

import (
	"context"

	"afoot/registry"
)

// maxInlineBytes is the longest request description that an ended run keeps in
// memory.
const maxInlineBytes = 1 << 10

// plan is a checked request that has not begun.
type plan struct {
	producer  *Producer
	request   request
	described description
}

// Prepare implements [registry.Producer]. It looks at the file system for the
// directory alone.
func (p *Producer) Prepare(_ context.Context, spec registry.Spec) (registry.Plan, error) {
	r, err := parse(spec.Fields)
	if err != nil {
		return nil, err
	}
	if err := r.resolve(p.workdir); err != nil {
		return nil, err
	}
	if err := p.canLimit(&r); err != nil {
		return nil, err
	}
	described, err := r.describe()
	if err != nil {
		return nil, registry.Wrap(registry.CodeInvalid, err, "the request can't be described")
	}
	return &plan{producer: p, request: r, described: described}, nil
}

// canLimit refuses limits that can't be had here.
func (p *Producer) canLimit(r *request) error {
	if r.nice < 0 && p.runAs != nil && p.runAs.UID != 0 {
		return invalid("nice %d can't be had here: user %d, as whom tasks run, has no right to", r.nice, p.runAs.UID)
	}
	if r.nice < 0 && !mayNice(r.nice) {
		return invalid("nice %d can't be had here: the daemon has no right to", r.nice)
	}
	memory, pids := r.memoryMaxBytes > 0, r.pidsMax > 0
	if !memory && !pids {
		return nil
	}
	err := p.host.CanLimit(memory, pids)
	if err == nil {
		return nil
	}
	field := "memoryMaxBytes"
	switch {
	case memory && pids:
		field = "memoryMaxBytes and pidsMax"
	case pids:
		field = "pidsMax"
	}
	return registry.Wrap(registry.CodeInvalid, err, "%s can't be had here: %s", field, err)
}

// Label implements [registry.Plan].
func (p *plan) Label() string { return label(p.request.command) }

// Start implements [registry.Plan].
func (p *plan) Start(ctx context.Context, launch registry.Launch) (registry.Run, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := p.producer.enter(); err != nil {
		return nil, err
	}
	r, err := p.start(launch, p.producer.contextEnv(ctx))
	if err != nil {
		p.producer.leave()
		return nil, err
	}
	return r, nil
}
