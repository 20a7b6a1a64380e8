package registrytest

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"afoot/registry"
)

// moveCases: another image of the program goes on where this one was.
func moveCases() []durableCase {
	return []durableCase{
		{name: "live work goes on, and settles as ever", run: moveGoesOn},
		{name: "stopping work stays stopping", run: moveStopping},
		{name: "an end between the images is not lost", run: moveEndAtAdoption},
		{name: "an end in the middle of it is not lost", run: moveEndMeanwhile},
		{name: "what can't be adopted has failed", run: moveLost},
		{name: "live work that nobody handed over has failed", run: moveForgotten},
		{name: "live work counts against the bounds", options: Options{MaxTasksPerOwner: 2}, run: moveBounds},
		{name: "blocked calls answer with what is", run: moveReleases},
		{name: "what was on its way is unread", run: moveClaims},
		{name: "what was given out can still be acked", run: moveAcks},
		{name: "what a released call gave out behind it can be acked", run: moveAcksLate},
		{name: "nothing begins meanwhile", run: moveRefuses},
		{name: "it waits for a start under way", run: moveStarting},
		{name: "work that can't be handed over refuses it", run: moveFixed},
		{name: "a refusal of one is taken back by all", run: moveRefused},
		{name: "a journal in trouble refuses it", run: moveTrouble},
		{name: "taken back, all goes on", run: moveTakenBack},
		{name: "no lease ends meanwhile, and all begin anew", run: moveLeases},
		{name: "a disposal under way goes on", run: moveDisposal},
		{name: "again and again", run: moveAgain},
	}
}

func (w *durableWorld) mover() Mover {
	w.t.Helper()
	m, is := w.Service.(Mover)
	w.is.True(is)
	return m
}

// handOver hands everything over. It must be able to do so at once.
func (w *durableWorld) handOver() json.RawMessage {
	w.t.Helper()
	w.is.NoError(w.mover().HandOver(w.ctx))
	w.is.Zero(w.journal.InLine(), "not all is written")
	return w.moved()
}

func (w *durableWorld) moved() json.RawMessage {
	w.t.Helper()
	state, err := w.mover().Moved()
	w.is.NoError(err)
	return state
}

// exec replaces the image; the work goes on.
func (w *durableWorld) exec() *durableWorld {
	w.t.Helper()
	return w.arrive(w.handOver())
}

func (w *durableWorld) arrive(state json.RawMessage) *durableWorld {
	w.t.Helper()
	next := w.journal.Die(0)
	factory := func(t *testing.T, o Options, j registry.Journal) Durable {
		t.Helper()
		o.Adopt = state
		return w.factory(t, o, j)
	}
	d := newDurableWorld(w.t, factory, w.c, next, w.jobs)
	d.factory = w.factory
	return d
}

func moveGoesOn(w *durableWorld) {
	work, end := w.start(alice(), Script{}), w.ends(bob(), Script{})
	work.Output.Append("abc")
	w.take(work)
	w.is.Equal("completed", string(w.get(end).Status))
	was := w.get(work)
	w = w.exec()
	w.is.Equal(was, w.get(work))
	work.Output.Append("def")
	w.is.Equal("def", w.take(work).Text)
	waiting := w.reading(work, registry.ReadOptions{Wait: time.Minute})
	work.Complete("exit code: 3")
	d := w.delivered(waiting)
	w.is.NoError(d.Confirm())
	w.is.Equal("exit code: 3", d.Snapshot.Detail)
	w.is.Equal(registry.StatusCompleted, w.get(end).Status)
	w.told(work, end)
}

func moveStopping(w *durableWorld) {
	work := w.start(alice(), Script{})
	_, _, err := w.Kill(w.ctx, alice(), work.ID, "enough")
	w.is.NoError(err)
	w = w.exec()
	w.is.Equal(registry.StatusStopping, w.get(work).Status)
	w.is.True(w.get(work).Reported)
	work.Settle(registry.Outcome{Status: registry.StatusKilled})
	w.settled()
	w.is.Equal(registry.StatusKilled, w.get(work).Status)
	w.is.Len(work.Cancels(), 1)
}

func moveEndAtAdoption(w *durableWorld) {
	work := w.start(alice(), Script{Adopt: func(work *Work) error {
		work.Complete("at once")
		return nil
	}})
	w = w.exec()
	w.is.Equal("at once", w.get(work).Detail)
	w.is.Equal("at once", w.heard(work, notice).Detail)
	w.told(work)
}

func moveEndMeanwhile(w *durableWorld) {
	work := w.start(alice(), Script{HandOver: func(work *Work) error {
		work.Complete("just now")
		return nil
	}})
	state := w.handOver()
	w.is.Equal("just now", w.get(work).Detail)
	w.is.Equal("just now", w.heard(work, notice).Detail)
	w = w.arrive(state)
	w.is.Equal("just now", w.get(work).Detail)
	w.is.Zero(w.journal.InLine())
}

func moveLost(w *durableWorld) {
	work := w.start(alice(), Script{Adopt: func(*Work) error { return errBoom }})
	w = w.exec()
	w.is.Equal(registry.StatusFailed, w.get(work).Status)
	w.is.Equal(registry.DetailLost, w.get(work).Detail)
	w.is.Equal(registry.DetailLost, w.heard(work, notice).Detail)
}

func moveForgotten(w *durableWorld) {
	work := w.start(alice(), Script{})
	w.handOver()
	w = w.arrive(json.RawMessage(`{}`))
	w.is.Equal(registry.DetailLost, w.get(work).Detail)
}

func moveBounds(w *durableWorld) {
	work := w.start(alice(), Script{})
	w.start(alice(), Script{})
	w = w.exec()
	w.refused(w.tryStart(alice()), registry.CodeLimitReached)
	work.Complete("")
	w.settled()
	w.is.NoError(w.tryStart(alice()))
}

func moveReleases(w *durableWorld) {
	work := w.start(alice(), Script{})
	waiting := w.reading(work, registry.ReadOptions{Wait: time.Hour})
	looking := begin(w.ctx, func(ctx context.Context) (registry.Read, error) {
		return w.Look(ctx, alice(), work.ID, 0, registry.LookOptions{Wait: time.Hour})
	})
	w.settled()
	w.handOver()
	d := w.delivered(waiting)
	w.is.Equal(registry.StatusRunning, d.Snapshot.Status)
	w.is.NoError(d.Confirm())
	w.settled()
	w.is.True(looking.returned())
	later := w.reading(work, registry.ReadOptions{Wait: time.Hour})
	w.is.Equal(registry.StatusRunning, w.delivered(later).Snapshot.Status)
}

func moveClaims(w *durableWorld) {
	work, end := w.start(alice(), Script{}), w.ends(alice(), Script{})
	work.Output.Append("abc")
	w.hold(work)
	w.hold(end)
	state := w.handOver()
	w = w.arrive(state)
	w.is.Equal("abc", w.take(work).Text)
	w.is.False(w.get(end).Reported)
}

func moveAcks(w *durableWorld) {
	work, end, lost := w.start(alice(), Script{}), w.ends(alice(), Script{}), w.ends(alice(), Script{})
	work.Output.Append("abc")
	explicit := registry.ReadOptions{Explicit: true}
	w.is.NoError(w.holdWith(work, explicit).Confirm())
	d := w.holdWith(end, explicit)
	w.is.NoError(d.Confirm())
	w.holdWith(lost, explicit).Abandon()
	w = w.exec()
	w.is.NoError(w.Ack(w.ctx, alice(), work.ID, 3))
	w.is.Empty(w.take(work).Text)
	w.is.NoError(w.Ack(w.ctx, alice(), end.ID, d.NextOffset))
	w.is.True(w.get(end).Reported)
	_ = w.Ack(w.ctx, alice(), lost.ID, d.NextOffset)
	w.is.False(w.get(lost).Reported, "nobody has read it")
}

func moveAcksLate(w *durableWorld) {
	work := w.start(alice(), Script{})
	work.Output.Append("abc")
	waiting := w.reading(work, registry.ReadOptions{Explicit: true, Wait: time.Hour})
	w.settled()
	g := w.gate()
	work.Output.OnPage(g.pass)
	w.handOver()
	work.Output.OnPage(nil)
	g.open()
	w.is.NoError(w.delivered(waiting).Confirm())
	w = w.arrive(w.moved())
	w.is.NoError(w.Ack(w.ctx, alice(), work.ID, 3))
	w.is.Empty(w.take(work).Text)
}

func moveRefuses(w *durableWorld) {
	work := w.start(alice(), Script{})
	agent := w.open(alice(), 0)
	w.handOver()
	err := w.tryStart(alice())
	w.refused(err, registry.CodeUnavailable)
	var known *registry.Error
	w.is.ErrorAs(err, &known)
	w.is.NotZero(known.RetryAfter)
	_, err = w.OpenAgent(w.ctx, alice(), registry.AgentOptions{})
	w.refused(err, registry.CodeUnavailable)
	w.refused(w.DisposeAgent(w.ctx, alice(), agent.Agent), registry.CodeUnavailable)
	_, _, err = w.Kill(w.ctx, alice(), work.ID, "")
	w.refused(err, registry.CodeUnavailable)
	w.is.Empty(work.Cancels())
	w.refused(w.mover().HandOver(w.ctx), registry.CodeUnavailable)
	w.is.True(work.Moving(), "the second one changed nothing")
}

func moveStarting(w *durableWorld) {
	g := w.gate()
	begun := begin(w.ctx, func(ctx context.Context) (registry.Started, error) {
		return w.Start(ctx, alice(), w.request(Script{Start: func(context.Context, *Work) error {
			g.pass()
			return nil
		}}))
	})
	w.settled()
	moving := begin(w.ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, w.mover().HandOver(ctx) })
	w.settled()
	w.is.False(moving.returned())
	g.open()
	w.settled()
	_, err := moving.result()
	w.is.NoError(err)
	started, err := begun.result()
	w.is.NoError(err)
	w = w.arrive(w.moved())
	w.is.Equal(registry.StatusRunning, w.get(w.jobs.Work(started.Snapshot.ID)).Status)
}

func moveFixed(w *durableWorld) {
	work := w.start(alice(), Script{})
	fixed := w.start(alice(), Script{Fixed: true})
	w.is.ErrorContains(w.mover().HandOver(w.ctx), string(fixed.ID))
	w.is.False(work.Moving())
	w.is.NoError(w.tryStart(alice()))
	fixed.Complete("")
	w.settled()
	w.exec()
}

func moveRefused(w *durableWorld) {
	var works []*Work
	for range 5 {
		works = append(works, w.start(alice(), Script{}))
	}
	w.start(alice(), Script{HandOver: func(*Work) error { return errBoom }})
	w.is.ErrorIs(w.mover().HandOver(w.ctx), errBoom)
	for _, work := range works {
		w.is.False(work.Moving())
	}
	w.is.NoError(w.tryStart(alice()))
}

func moveTrouble(w *durableWorld) {
	work := w.start(alice(), Script{})
	work.Output.Append("abc")
	w.journal.Fail(errors.New("no space"))
	w.take(work)
	w.refused(w.mover().HandOver(w.ctx), registry.CodeInsufficientStorage)
	w.is.False(work.Moving())
	w.journal.Fail(nil)
	w = w.exec()
	w.is.Empty(w.take(work).Text)
}

func moveTakenBack(w *durableWorld) {
	work := w.start(alice(), Script{})
	for range 3 {
		w.handOver()
		w.mover().TakeBack()
		w.mover().TakeBack()
		w.is.False(work.Moving())
		w.is.NoError(w.tryStart(alice()))
	}
	_, _, err := w.Kill(w.ctx, alice(), work.ID, "")
	w.is.NoError(err)
	waiting := w.reading(work, registry.ReadOptions{Wait: time.Minute})
	w.is.False(waiting.returned())
	work.Settle(registry.Outcome{Status: registry.StatusKilled})
	w.is.NoError(w.delivered(waiting).Confirm())
}

func moveLeases(w *durableWorld) {
	agent := w.open(alice(), time.Minute)
	work := w.start(agent, Script{})
	w.pass(50 * time.Second)
	state := w.handOver()
	w.pass(time.Hour)
	w.is.Empty(work.Cancels())
	w = w.arrive(state)
	w.pass(50 * time.Second)
	w.is.Empty(work.Cancels())
	w.handOver()
	w.pass(time.Hour)
	w.mover().TakeBack()
	w.pass(50 * time.Second)
	w.is.Empty(work.Cancels())
	w.pass(11 * time.Second)
	w.is.Len(work.Cancels(), 1)
}

func moveDisposal(w *durableWorld) {
	agent := w.open(alice(), 0)
	work := w.start(agent, Script{})
	disposing := w.disposing(alice(), agent.Agent)
	w.is.Len(work.Cancels(), 1)
	state := w.handOver()
	w.settled()
	_, err := disposing.result()
	w.refused(err, registry.CodeUnavailable)
	w.pass(time.Minute)
	w.is.Equal(registry.StatusStopping, w.get(work).Status, "what is in other hands is not failed by force")
	w = w.arrive(state)
	again := w.disposing(alice(), agent.Agent)
	w.is.False(again.returned())
	work.Settle(registry.Outcome{Status: registry.StatusKilled})
	w.settled()
	_, err = again.result()
	w.is.NoError(err)
	w.codes(registry.CodeGone, work.ID)
}

func moveAgain(w *durableWorld) {
	work := w.start(alice(), Script{Split: true})
	for range 20 {
		work.Output.Append("abc")
		work.Stderr.Append("de")
		w = w.exec()
		w.pieces(w.take(work), "abc", "de")
	}
	other := w.start(alice(), Script{})
	w = w.exec()
	work.Complete("")
	w.settled()
	w.is.Equal(registry.StatusCompleted, w.get(work).Status)
	w.is.Equal(registry.StatusRunning, w.get(other).Status)
}
