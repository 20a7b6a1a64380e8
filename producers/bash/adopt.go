package bash

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"afoot/producers/output"
	"afoot/producers/proc"
	"afoot/registry"
)

var _ registry.Adopter = (*Producer)(nil)

// Adopt implements [registry.Adopter]. A command that can't be gone on with is ended.
func (p *Producer) Adopt(data json.RawMessage, launch registry.Launch) (registry.Run, error) {
	var h handle
	err := json.Unmarshal(data, &h)
	if err == nil && h.Live == nil {
		err = errors.New("it does not live")
	}
	if err == nil {
		err = p.enter()
	}
	if err != nil {
		return nil, fmt.Errorf("adopt a command: %w", err)
	}
	r := &run{producer: p, request: newDescription(h.Request)}
	if err := r.adopt(&h, launch); err != nil {
		p.abandon(h.Live)
		return nil, fmt.Errorf("adopt a command: %w", err)
	}
	return r, nil
}

func (r *run) adopt(h *handle, launch registry.Launch) (err error) {
	p, s := r.producer, h.Live
	l := &live{
		settle: launch.Settle, timeoutMs: s.TimeoutMs, memoryMaxBytes: s.MemoryMaxBytes, stops: s.Stops,
		collected: s.Collected, exit: s.Exit, overMemory: s.OverMemory,
		escalation: proc.Escalation{Told: s.Told, Since: proc.Moment(s.Since)},
		deadline:   proc.Moment(s.Deadline), bound: proc.Moment(s.Bound),
		cause: s.Cause, stopping: s.Stopping, exited: s.Exited, reaped: s.Collected,
		hold: make(chan struct{}), done: make(chan struct{}), stopped: make(chan struct{}),
	}
	if s.Fault != "" {
		l.exitErr = errors.New(s.Fault)
	}
	if r.log, err = p.store.Adopt(h.Log); err != nil {
		return err
	}
	if l.out, err = adoptOutlet(s.Out, r.log); err != nil {
		return err
	}
	if s.Stderr != nil {
		second, err := p.store.Adopt(h.Stderr)
		if err != nil {
			return err
		}
		r.stderr = &stream{log: second}
		outlet, err := adoptOutlet(*s.Stderr, second)
		if err != nil {
			return err
		}
		l.stderr = &outlet
	}
	if s.Stdin != nil {
		if l.stdin, err = adoptInput(*s.Stdin); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	// The exit may be heard of at once.
	if l.process, err = p.host.Adopt(s.Process, func() { r.exited(l) }); err != nil {
		return err
	}
	r.live = l
	r.resumeLocked(l)
	return nil
}

func adoptOutlet(s outletState, log *output.Log) (outlet, error) {
	pipe, err := adoptPipe(s.Pipe)
	o := outlet{pipe: pipe, log: log, drained: s.Drained}
	if !s.Drained {
		o.err = os.ErrDeadlineExceeded // the last drain was cut short
	}
	return o, err
}

func adoptInput(s inputState) (*input, error) {
	if s.Pipe < 0 {
		in := newInput(nil) // to a nil file nothing happens
		in.why = s.Why
		return in, nil
	}
	pipe, err := adoptPipe(s.Pipe)
	return newInput(pipe), err
}

func adoptPipe(fd int) (*os.File, error) {
	pipe := os.NewFile(uintptr(fd), "pipe")
	if _, err := output.Inherit(pipe, false); err != nil {
		return nil, err
	}
	return pipe, pipe.SetDeadline(time.Time{}) // an error if it is not in the poller
}

// abandon ends a command that can't be gone on with.
func (p *Producer) abandon(s *liveState) {
	process, err := p.host.Adopt(s.Process, nil)
	if err != nil {
		p.leave()
		return
	}
	go func() {
		defer p.leave()
		if !s.Collected {
			process.Stop(p.stopGrace())
			process.Wait()
			_, _ = process.Reap()
		}
		process.Tree().Stop(p.stopGrace())
	}()
}
