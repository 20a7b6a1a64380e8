package bash

import (
	"encoding/json"
	"fmt"
	"os"
	"syscall"
	"time"

	"afoot/producers/output"
	"afoot/producers/proc"
	"afoot/registry"
)

var _ registry.Movable = (*run)(nil)

// liveState is a running command as it passes an exec. Moments are those of
// [proc.Clock], files are descriptors.
type liveState struct {
	Process uint64       `json:"process"`
	Out     outletState  `json:"out"`
	Stderr  *outletState `json:"stderr,omitempty"`
	Stdin   *inputState  `json:"stdin,omitempty"`
	Stops   bool         `json:"stops,omitempty"`

	TimeoutMs      int64 `json:"timeoutMs,omitempty"`
	MemoryMaxBytes int64 `json:"memoryMaxBytes,omitempty"`
	Deadline       int64 `json:"deadline,omitempty"`
	Bound          int64 `json:"bound,omitempty"`

	Cause    cause          `json:"cause,omitempty"`
	Stopping bool           `json:"stopping,omitempty"`
	Told     syscall.Signal `json:"told,omitempty"`
	Since    int64          `json:"since,omitempty"`
	Exited   bool           `json:"exited,omitempty"`

	Collected  bool      `json:"collected,omitempty"`
	Exit       proc.Exit `json:"exit,omitzero"`
	Fault      string    `json:"fault,omitempty"`
	OverMemory bool      `json:"overMemory,omitempty"`
}

type outletState struct {
	Pipe    int  `json:"pipe"`
	Drained bool `json:"drained,omitempty"`
}

type inputState struct {
	// Pipe is -1 when it is closed.
	Pipe int    `json:"pipe"`
	Why  string `json:"why,omitempty"`
}

// HandOver implements [registry.Movable]. It is [registry.ErrEnded] when the command
// has ended meanwhile: that was reported then.
func (r *run) HandOver() (json.RawMessage, error) {
	r.mu.Lock()
	l := r.live
	if l == nil || l.held {
		r.mu.Unlock()
		return nil, registry.ErrEnded
	}
	l.held = true
	close(l.hold)
	l.stopTimerLocked()
	l.applyLocked(time.Unix(1, 0)) // what is in the pipes is taken all the same
	r.mu.Unlock()
	if l.stdin != nil {
		l.stdin.pause()
	}
	l.work.Wait()
	r.mu.Lock()
	over := r.live == nil
	r.mu.Unlock()
	if over {
		if l.stdin != nil {
			l.stdin.resume()
		}
		return nil, registry.ErrEnded
	}
	data, err := r.state(l)
	if err != nil {
		r.TakeBack()
		return nil, fmt.Errorf("hand a command over: %w", err)
	}
	return data, nil
}

// state gives what is known of a run that nobody attends to, and opens what it names
// for an exec.
func (r *run) state(l *live) (json.RawMessage, error) {
	h, err := r.handle()
	if err != nil {
		return nil, err
	}
	if h.Log, err = r.log.HandOver(); err == nil && r.stderr != nil {
		h.Stderr, err = r.stderr.log.HandOver()
	}
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &liveState{
		Process: l.process.HandOver(), Stops: l.stops, TimeoutMs: l.timeoutMs, MemoryMaxBytes: l.memoryMaxBytes,
		Deadline: proc.Clock(l.deadline), Bound: proc.Clock(l.bound),
		Cause: l.cause, Stopping: l.stopping, Told: l.escalation.Told, Since: proc.Clock(l.escalation.Since), Exited: l.exited,
		Collected: l.collected, Exit: l.exit, OverMemory: l.overMemory,
	}
	if l.exitErr != nil {
		s.Fault = l.exitErr.Error()
	}
	h.Live = s
	if s.Out, err = l.out.state(); err != nil {
		return nil, err
	}
	if l.stderr != nil {
		second, err := l.stderr.state()
		if err != nil {
			return nil, err
		}
		s.Stderr = &second
	}
	if in := l.stdin; in != nil {
		s.Stdin = &inputState{Pipe: -1, Why: in.why}
		if in.why == "" {
			if s.Stdin.Pipe, err = output.Inherit(in.pipe, true); err != nil {
				return nil, err
			}
		}
	}
	return json.Marshal(h)
}

func (o *outlet) state() (outletState, error) {
	fd, err := output.Inherit(o.pipe, true)
	return outletState{Pipe: fd, Drained: o.drained}, err
}

// TakeBack implements [registry.Movable].
func (r *run) TakeBack() {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.live
	if l == nil || !l.held {
		return
	}
	l.process.TakeBack()
	for _, log := range r.logs() {
		log.TakeBack()
	}
	for _, pipe := range l.pipes() {
		_, _ = output.Inherit(pipe, false) // may be closed
	}
	if l.stdin != nil {
		l.stdin.resume()
	}
	l.held, l.hold = false, make(chan struct{})
	r.resumeLocked(l)
}

func (l *live) pipes() []*os.File {
	pipes := []*os.File{l.out.pipe}
	if l.stderr != nil {
		pipes = append(pipes, l.stderr.pipe)
	}
	if l.stdin != nil {
		pipes = append(pipes, l.stdin.pipe)
	}
	return pipes
}

// resumeLocked goes on with a run that was handed over.
func (r *run) resumeLocked(l *live) {
	l.applyLocked(l.bound)
	if l.stopping && !l.collected {
		r.goStopLocked(l)
	}
	r.goOnLocked(l)
}
