package tools

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"afoot/api/render"
	"afoot/registry"
)

const (
	// kindBash is the kind of task that the tool bash starts.
	kindBash registry.Kind = "bash"
	// unbounded is for the wait of a call whose command has a time-out of its own.
	unbounded = 365 * 24 * time.Hour
	// patience bounds each step that is taken whether the caller is there or not.
	patience = 10 * time.Second
)

// bash answers bash.
func (s *Set) bash(ctx context.Context, call Call) (*Answer, error) {
	args, err := s.bashArguments(call.Arguments)
	if err != nil {
		return nil, err
	}
	begun, err := s.begin(ctx, call, args, !args.RunInBackground)
	if err != nil {
		return nil, err
	}
	if args.RunInBackground {
		return begun.answer(), nil
	}
	if begun.Release != nil {
		defer begun.Release()
	}
	f := foreground{
		set: s, call: call, id: begun.Snapshot.ID, wait: unbounded,
		timeoutMs: begun.timeoutMs, clamped: begun.clamped,
	}
	if args.YieldMs > 0 {
		f.wait, f.clamped = within(args.YieldMs, s.cfg.TimeoutMax)
	}
	return f.run(ctx)
}

// begun is a command that runs, with its time-out.
type begun struct {
	registry.Started
	timeoutMs int64
	clamped   time.Duration
}

// answer tells of a background task.
func (b *begun) answer() *Answer {
	id := b.Snapshot.ID
	return &Answer{
		Text: render.Started(b.Snapshot), Value: Bash{Kind: BashBackground, TaskID: id},
		ID: id, Clamped: b.clamped,
	}
}

// begin starts a command.
func (s *Set) begin(ctx context.Context, call Call, args bashArguments, foreground bool) (b begun, err error) {
	b.timeoutMs, b.clamped = s.timeout(args)
	fields, err := json.Marshal(struct {
		Command   string `json:"command"`
		Workdir   string `json:"workdir,omitzero"`
		TimeoutMs int64  `json:"timeoutMs,omitzero"`
	}{args.Command, args.Workdir, b.timeoutMs})
	if err != nil {
		return b, err
	}
	at := time.Now()
	b.Started, err = s.cfg.Service.Start(ctx, call.Caller, registry.StartRequest{
		Spec:       registry.Spec{Kind: kindBash, Label: &args.Description, Fields: fields},
		Foreground: foreground,
		Await:      foreground,
	})
	if err == nil {
		s.cfg.Started(time.Since(at))
	}
	return b, err
}

// bashArguments reads the arguments that are in the schema.
func (s *Set) bashArguments(data []byte) (args bashArguments, err error) {
	if s.cfg.Background {
		err = decode(data, &args, "command", "description")
	} else {
		err = decode(data, &args.foregroundArguments, "command", "description")
	}
	if err != nil {
		return args, err
	}
	return args, args.check()
}

// timeout gives the command's own time-out in milliseconds, 0 for none. Only one whose
// call waits for its end has a default and a maximum.
func (s *Set) timeout(args bashArguments) (ms int64, clamped time.Duration) {
	switch {
	case args.RunInBackground || args.YieldMs > 0:
		return min(int64(args.TimeoutMs), registry.MaxSafeInteger), 0
	case args.TimeoutMs == 0:
		return s.cfg.Timeout.Milliseconds(), 0
	}
	bound, clamped := within(args.TimeoutMs, s.cfg.TimeoutMax)
	return bound.Milliseconds(), clamped
}

// foreground is a call that waits for its command.
type foreground struct {
	set  *Set
	call Call
	id   registry.ID
	// wait is how long; timeoutMs is the command's own time-out.
	wait      time.Duration
	timeoutMs int64
	clamped   time.Duration
}

// run waits for the end of the command, or until it goes on by itself.
func (f *foreground) run(ctx context.Context) (*Answer, error) {
	f.set.cfg.Waiting(1)
	defer f.set.cfg.Waiting(-1)
	replaced := f.set.cfg.Leaving()
	begun := time.Now()
	delivery, err := f.read(ctx)
	if err != nil {
		f.stop(ctx)
		switch {
		case ctx.Err() != nil:
			answer := failure("The call was cancelled; task " + string(f.id) + ", which ran its command, is stopped.")
			answer.ID = f.id
			return answer, nil
		case f.call.expired() && errors.Is(err, context.DeadlineExceeded):
			return nil, ErrExpired
		}
		return nil, err
	}
	// The state in the read decides whether the task was let go of.
	if delivery.Snapshot.Status.Terminal() {
		f.complete(ctx, delivery)
		return f.ended(delivery), nil
	}
	if time.Since(begun) >= f.wait || closed(replaced) {
		return f.promoted(delivery), nil
	}
	// Nobody else releases a read before its time: the service ends, and with it the
	// task, whose owner is told after the next start.
	delivery.Abandon()
	answer := failure("The daemon is shutting down; task " + string(f.id) + " is stopped with it.")
	answer.ID = f.id
	return answer, nil
}

// read waits and reads. It ends with the right to the call.
func (f *foreground) read(ctx context.Context) (*registry.Delivery, error) {
	if !f.call.Until.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, f.call.Until)
		defer cancel()
	}
	return f.set.cfg.Service.Read(ctx, f.call.Caller, f.id, registry.ReadOptions{
		Wait: f.wait, Tail: f.set.cfg.ResultBytes, Promote: true, Explicit: f.call.Explicit,
	})
}

// stop ends the command of a call that has ended without an answer. One that can't be
// stopped is let go of, so that its owner is told of its end.
func (f *foreground) stop(ctx context.Context) {
	stop, cancel := regardless(ctx)
	defer cancel()
	service := f.set.cfg.Service
	if _, _, err := service.Kill(stop, f.call.Caller, f.id, "the call was cancelled"); err == nil {
		return
	}
	letGo, cancel := regardless(ctx) // the stop may have taken all its time
	defer cancel()
	if delivery, err := service.Read(letGo, f.call.Caller, f.id, registry.ReadOptions{Promote: true}); err == nil {
		delivery.Abandon()
	}
}

// regardless gives a context for one step that is taken also if ctx has ended.
func regardless(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), patience)
}

// facts are what the producer says of an end.
type facts struct {
	ExitCode int    `json:"exitCode"`
	Signal   string `json:"signal"`
	TimedOut bool   `json:"timedOut"`
}

// ended answers the end of the command. An exit code is a result like any other; work
// that could not be done is none.
func (f *foreground) ended(d *registry.Delivery) *Answer {
	answer := &Answer{ID: f.id, Clamped: f.clamped, Delivery: d}
	if d.Snapshot.Status == registry.StatusFailed {
		read := d.Read
		read.Snapshot.OutputLimitBytes = f.set.limit(0)
		answer.Text, answer.IsError = render.Read(read), true
		return answer
	}
	var how facts
	_ = json.Unmarshal(d.Snapshot.Result, &how) // a producer that says nothing of it has no more lines
	command := f.command(d)
	command.Signal, command.ExitCode = how.Signal, how.ExitCode
	if how.TimedOut {
		command.TimedOutMs = f.timeoutMs
	}
	answer.Text = render.Bash(command, f.set.limit(0))
	answer.Value = f.value(BashForeground, d)
	return answer
}

// promoted answers a command that goes on as a background task.
func (f *foreground) promoted(d *registry.Delivery) *Answer {
	command := f.command(d)
	command.Running = f.id
	value := f.value(BashBackground, d)
	value.TaskID = f.id
	return &Answer{
		Text: render.Bash(command, f.set.limit(0)), Value: value,
		ID: f.id, Clamped: f.clamped, Delivery: d,
	}
}

func (f *foreground) command(d *registry.Delivery) render.Command {
	log := "/tasks/" + string(f.id) + "/log"
	if f.call.LogAddress != nil {
		log = f.call.LogAddress(f.id)
	}
	return render.Command{Output: d.Text, Skipped: lacking(d.Read), Log: log}
}

func (f *foreground) value(kind BashKind, d *registry.Delivery) Bash {
	v := valueOf(d.Read, f.clamped)
	return Bash{
		Kind: kind, Task: &v.Task, Text: &v.Text, Offset: &v.Offset, NextOffset: &v.NextOffset,
		EOF: &v.EOF, DroppedBytes: &v.DroppedBytes, TimeoutMs: v.TimeoutMs,
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
