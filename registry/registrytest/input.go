package registrytest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"afoot/registry"
)

// inputCases: what is written to a task is the producer's affair; the registry
// finds it, lets it block, and stands in nobody's way meanwhile.
func inputCases() []testCase {
	return []testCase{
		{name: "input is handed to the work with its end", run: inputHandsOn},
		{name: "a task that takes no input is a conflict that names its status", run: inputNone},
		{name: "an ended task is a conflict that names its status", run: inputEnded},
		{name: "a refusal of the work reaches the caller", run: inputRefused},
		{name: "input that blocks holds nothing else up", run: inputBlocks},
		{name: "the end of the context is no error of the registry's", run: inputContext},
		{name: "input that blocks returns when the task ends", run: inputSettles},
		{name: "input against settlement is taken or refused", run: inputRace},
		{name: "input moves nothing and reports nothing", run: inputMovesNothing},
		{name: "work that panics on input is contained", run: inputPanics},
		{name: "unknown and foreign tasks get no input", run: inputFenced},
	}
}

// pipe is the input of scripted work: it takes what there is room for and blocks
// on the rest until the context or the work ends.
type pipe struct {
	room   int
	taken  []string
	closed bool
	ended  chan struct{}
}

func newPipe(room int) *pipe { return &pipe{room: room, ended: make(chan struct{})} }

func (p *pipe) write(ctx context.Context, _ *Work, data []byte, last bool) (registry.InputResult, error) {
	n := min(len(data), p.room)
	p.room -= n
	p.taken = append(p.taken, string(data[:n]))
	if n < len(data) {
		select {
		case <-ctx.Done():
			return registry.InputResult{Written: n}, nil
		case <-p.ended:
			return registry.InputResult{}, registry.Errorf(registry.CodeConflict, "the work has ended")
		}
	}
	p.closed = p.closed || last
	return registry.InputResult{Written: n, Closed: p.closed}, nil
}

func (w *world) writing(work *Work, data string) *call[registry.InputResult] {
	c := begin(w.ctx, func(ctx context.Context) (registry.InputResult, error) {
		return w.Input(ctx, work.caller(), work.ID, []byte(data), false)
	})
	w.settled()
	return c
}

func inputHandsOn(w *world) {
	p := newPipe(100)
	work := w.start(alice(), Script{Input: p.write})
	got, err := w.Input(w.ctx, alice(), work.ID, []byte("one "), false)
	w.is.NoError(err)
	w.is.Equal(registry.InputResult{Written: 4}, got)
	got, err = w.Input(w.ctx, alice(), work.ID, []byte("two"), true)
	w.is.NoError(err)
	w.is.Equal(registry.InputResult{Written: 3, Closed: true}, got)
	w.is.Equal([]string{"one ", "two"}, p.taken)
}

func inputNone(w *world) {
	for _, script := range []Script{{}, {Final: true}} {
		work := w.start(alice(), script)
		_, err := w.Input(w.ctx, alice(), work.ID, []byte("x"), false)
		w.refused(err, registry.CodeConflict)
		w.is.ErrorContains(err, "running")
		w.kill(work, "enough")
		_, err = w.Input(w.ctx, alice(), work.ID, []byte("x"), false)
		w.refused(err, registry.CodeConflict)
		w.is.ErrorContains(err, "stopping")
	}
}

func inputEnded(w *world) {
	p := newPipe(100)
	work := w.start(alice(), Script{Input: p.write})
	work.Complete("")
	_, err := w.Input(w.ctx, alice(), work.ID, []byte("x"), false)
	w.refused(err, registry.CodeConflict)
	w.is.ErrorContains(err, "completed")
	w.is.Empty(p.taken)
}

func inputRefused(w *world) {
	work := w.start(alice(), Script{Input: func(context.Context, *Work, []byte, bool) (registry.InputResult, error) {
		return registry.InputResult{Written: 2}, registry.Errorf(registry.CodeConflict, "input is closed")
	}})
	got, err := w.Input(w.ctx, alice(), work.ID, []byte("x"), false)
	w.refused(err, registry.CodeConflict)
	w.is.ErrorContains(err, "input is closed")
	w.is.Equal(2, got.Written)
}

func inputBlocks(w *world) {
	p := newPipe(3)
	work := w.start(alice(), Script{Input: p.write})
	c := w.writing(work, "abcdef")
	w.is.False(c.returned())
	before := time.Now()
	work.Output.Append("out")
	w.is.Equal("out", w.take(work).Text)
	w.is.Equal(registry.StatusRunning, w.get(work).Status)
	w.start(alice(), Script{})
	w.is.Len(w.ids(alice(), registry.ListOptions{}), 2)
	w.kill(work, "enough")
	work.Complete("")
	w.is.NoError(w.Purge(w.ctx, alice(), work.ID))
	w.is.Zero(time.Since(before))
	w.is.False(c.returned(), "only the work can tell that it has ended")
	close(p.ended)
	_, err := c.result()
	w.refused(err, registry.CodeConflict)
}

func inputContext(w *world) {
	p := newPipe(3)
	work := w.start(alice(), Script{Input: p.write})
	c := w.writing(work, "abcdef")
	c.leave()
	got, err := c.result()
	w.is.NoError(err)
	w.is.Equal(registry.InputResult{Written: 3}, got)
}

func inputSettles(w *world) {
	p := newPipe(0)
	work := w.start(alice(), Script{Input: p.write})
	c := w.writing(work, "abc")
	close(p.ended)
	work.Complete("")
	_, err := c.result()
	w.refused(err, registry.CodeConflict)
	w.is.Equal(registry.StatusCompleted, w.get(work).Status)
	w.notices(work, 1)
}

func inputRace(w *world) {
	for range 50 {
		work := w.start(alice(), Script{Input: func(_ context.Context, _ *Work, data []byte, _ bool) (registry.InputResult, error) {
			return registry.InputResult{Written: len(data)}, nil
		}})
		c := begin(w.ctx, func(ctx context.Context) (registry.InputResult, error) {
			return w.Input(ctx, alice(), work.ID, []byte("abc"), false)
		})
		go work.Complete("")
		got, err := c.result()
		if err == nil {
			w.is.Equal(3, got.Written)
		} else {
			w.refused(err, registry.CodeConflict)
			w.is.Zero(got)
		}
		w.settled()
		w.is.Equal(registry.StatusCompleted, w.get(work).Status)
		w.notices(work, 1)
	}
}

func inputMovesNothing(w *world) {
	p := newPipe(100)
	work := w.start(alice(), Script{Input: p.write})
	work.Output.Append("abc")
	before := w.get(work)
	_, err := w.Input(w.ctx, alice(), work.ID, []byte("x"), true)
	w.is.NoError(err)
	w.is.Equal(before, w.get(work))
	w.is.Equal("abc", w.take(work).Text)
	w.tale(work, registry.ChangeRegistered)
}

func inputPanics(w *world) {
	work := w.start(alice(), Script{
		Input:  func(context.Context, *Work, []byte, bool) (registry.InputResult, error) { panic("input") },
		Signal: func(*Work, string) error { panic("signal") },
	})
	_, err := w.Input(w.ctx, alice(), work.ID, []byte("x"), false)
	w.refused(err, registry.CodeInternal)
	w.refused(w.Signal(w.ctx, alice(), work.ID, "INT"), registry.CodeInternal)
	w.is.Equal(registry.StatusRunning, w.get(work).Status)
}

func inputFenced(w *world) {
	p := newPipe(100)
	work := w.start(alice(), Script{Input: p.write, Signal: func(*Work, string) error { return errors.New("reached") }})
	for _, c := range []registry.Caller{bob(), nobody()} {
		_, err := w.Input(w.ctx, c, work.ID, []byte("x"), false)
		w.refused(err, registry.CodeForeignTask)
		w.refused(w.Signal(w.ctx, c, work.ID, "INT"), registry.CodeForeignTask)
	}
	_, err := w.Input(w.ctx, alice(), "job-99", []byte("x"), false)
	w.refused(err, registry.CodeUnknownTask)
	w.refused(w.Signal(w.ctx, alice(), "job-99", "INT"), registry.CodeUnknownTask)
	work.Complete("")
	w.is.NoError(w.Purge(w.ctx, alice(), work.ID))
	_, err = w.Input(w.ctx, alice(), work.ID, []byte("x"), false)
	w.refused(err, registry.CodeGone)
	w.refused(w.Signal(w.ctx, alice(), work.ID, "INT"), registry.CodeGone)
	w.is.Empty(strings.Join(p.taken, ""))
}

// signalCases: signals go to the work by name.
func signalCases() []testCase {
	return []testCase{
		{name: "a signal is handed to the work by its name", run: signalHandsOn},
		{name: "a task that takes no signals is a conflict that names its status", run: signalNone},
		{name: "an ended task gets no signal", run: signalEnded},
		{name: "a signal changes nothing by itself", run: signalChangesNothing},
	}
}

// signalled is work that notes its signals.
func (w *world) signalled() (*Work, *[]string) {
	names := &[]string{}
	return w.start(alice(), Script{Signal: func(_ *Work, name string) error {
		if !slices.Contains([]string{"INT", "SIGINT"}, name) {
			return registry.Errorf(registry.CodeInvalid, "there is no signal %s", name)
		}
		*names = append(*names, name)
		return nil
	}}), names
}

func signalHandsOn(w *world) {
	work, names := w.signalled()
	w.is.NoError(w.Signal(w.ctx, alice(), work.ID, "INT"))
	w.is.NoError(w.Signal(w.ctx, alice(), work.ID, "SIGINT"))
	w.refused(w.Signal(w.ctx, alice(), work.ID, "NOPE"), registry.CodeInvalid)
	w.is.Equal([]string{"INT", "SIGINT"}, *names)
}

func signalNone(w *world) {
	work := w.start(alice(), Script{})
	err := w.Signal(w.ctx, alice(), work.ID, "INT")
	w.refused(err, registry.CodeConflict)
	w.is.ErrorContains(err, "running")
}

func signalEnded(w *world) {
	work, names := w.signalled()
	work.Complete("")
	err := w.Signal(w.ctx, alice(), work.ID, "INT")
	w.refused(err, registry.CodeConflict)
	w.is.ErrorContains(err, "completed")
	w.is.Empty(*names)
}

func signalChangesNothing(w *world) {
	work, _ := w.signalled()
	before := w.get(work)
	w.is.NoError(w.Signal(w.ctx, alice(), work.ID, "INT"))
	w.is.Equal(before, w.get(work))
	w.tale(work, registry.ChangeRegistered)
	work.Complete("signalled")
	w.notices(work, 1)
}
