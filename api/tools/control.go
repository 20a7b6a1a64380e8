package tools

import (
	"context"
	"errors"
	"time"

	"afoot/api/render"
	"afoot/registry"
)

// list answers task_list. What a foreground call was answered is no task any more.
func (s *Set) list(ctx context.Context, call Call) (*Answer, error) {
	if err := decode(call.Arguments, &listArguments{}); err != nil {
		return nil, err
	}
	all, err := s.cfg.Service.List(ctx, call.Caller, registry.ListOptions{})
	if err != nil {
		return nil, err
	}
	var shown []registry.Snapshot
	value := List{Tasks: []Task{}}
	for _, t := range all.Tasks {
		if t.Foreground && t.Status.Terminal() {
			continue
		}
		shown = append(shown, t)
		value.Tasks = append(value.Tasks, taskOf(t))
	}
	return &Answer{Text: render.List(shown), Value: value}, nil
}

// kill answers task_kill, which consumes no output.
func (s *Set) kill(ctx context.Context, call Call) (*Answer, error) {
	var args killArguments
	if err := decode(call.Arguments, &args, "task_id"); err != nil {
		return nil, err
	}
	if err := args.check(); err != nil {
		return nil, err
	}
	outcome, snapshot, err := s.cfg.Service.Kill(ctx, call.Caller, args.TaskID, args.Reason)
	if err != nil {
		return nil, err
	}
	return &Answer{Text: render.Kill(outcome, snapshot), Value: Kill{Outcome: outcome, Task: taskOf(snapshot)}, ID: snapshot.ID}, nil
}

// output answers task_output.
func (s *Set) output(ctx context.Context, call Call) (*Answer, error) {
	var args outputArguments
	if err := decode(call.Arguments, &args, "task_id"); err != nil {
		return nil, err
	}
	opts := registry.ReadOptions{Tail: s.cfg.ResultBytes, Explicit: call.Explicit}
	var clamped time.Duration
	if args.Wait {
		opts.Wait = s.cfg.WaitDefault
		if args.TimeoutMs > 0 {
			opts.Wait, clamped = within(args.TimeoutMs, s.cfg.WaitMax)
		}
		// The wait stays positive, so that it stays one.
		if !call.Until.IsZero() {
			opts.Wait = max(min(opts.Wait, time.Until(call.Until)), 1)
		}
		s.cfg.Waiting(1)
		defer s.cfg.Waiting(-1)
	}
	delivery, err := s.cfg.Service.Read(ctx, call.Caller, args.TaskID, opts)
	if err != nil {
		return nil, err
	}
	if args.Wait && !delivery.Snapshot.Status.Terminal() && call.expired() {
		delivery.Abandon()
		return nil, ErrExpired
	}
	if delivery.Snapshot.Status.Terminal() && !delivery.EOF {
		// The time was over while another read was being answered: there is more to come.
		delivery.Abandon()
		return nil, registry.Errorf(registry.CodeConflict, "Another read of task %s is on its way to its caller; read again in a moment.", args.TaskID)
	}
	read := delivery.Read
	read.Snapshot.OutputLimitBytes = s.limit(read.Snapshot.OutputLimitBytes)
	return &Answer{
		Text: render.Read(read), Value: valueOf(delivery.Read, clamped),
		ID: delivery.Snapshot.ID, Clamped: clamped, Delivery: delivery,
	}, nil
}

// within gives a bound that was asked for, cut to most, and the same as clamped if it
// was cut.
func within(asked millis, most time.Duration) (bound, clamped time.Duration) {
	if int64(asked) > most.Milliseconds() {
		bound = most.Truncate(time.Millisecond)
		return bound, bound
	}
	return time.Duration(asked) * time.Millisecond, 0
}

// limit is the least of a task's limit, 0 for none, and that of results.
func (s *Set) limit(task int64) int64 {
	if task > 0 {
		return min(task, s.cfg.ResultBytes)
	}
	return s.cfg.ResultBytes
}

// expired reports whether the right to the call has ended.
func (c Call) expired() bool { return !c.Until.IsZero() && !time.Now().Before(c.Until) }

// limitAbout is the limit of texts about the task that a call names: one that the caller
// may see. Looking it up consumes nothing.
func (s *Set) limitAbout(ctx context.Context, call Call) int64 {
	id := about(call.Arguments)
	if id == "" {
		return s.limit(0)
	}
	// A call that was cancelled is told so in as few bytes as any other.
	ctx, cancel := regardless(ctx)
	defer cancel()
	snapshot, err := s.cfg.Service.Get(ctx, call.Caller, id)
	if err != nil {
		return s.limit(0)
	}
	return s.limit(snapshot.OutputLimitBytes)
}

// trouble tells what the model is to know of an error from what its transport answers.
func trouble(err error) (sentence string, tell bool) {
	known, ok := errors.AsType[*registry.Error](err)
	if !ok {
		return "", false
	}
	switch known.Code {
	case registry.CodeInternal, registry.CodeForbidden, registry.CodeUnknownAgent, registry.CodeForeignAgent:
		return "", false
	default:
		return known.Message, true
	}
}
