package registrytest

import (
	"context"
	"time"

	"afoot/registry"
)

// waitCases: rules 9 and 10. Bounds and defaults of the time are the caller's
// affair; the registry keeps to the time that it is given.
func waitCases() []testCase {
	return []testCase{
		{name: "a wait returns in the moment of settlement", run: waitSettles},
		{name: "a wait times out alive", run: waitTimesOut},
		{name: "a wait is not ended by output", run: waitNotByOutput},
		{name: "a wait on a finished task returns at once", run: waitFinished},
		{name: "a wait goes on over a kill until the work has ended", run: waitOverKill},
		{name: "leaving a wait ends that wait alone", run: waitLeaves},
		{name: "no wait leaves a waiter behind", run: waitLeavesNothing},
		{name: "a wait that timed out can be repeated", run: waitRepeated},
		{name: "a wait on one task is not ended by another", run: waitPerTask},
		{name: "a call that was cancelled before it began does not wait", run: waitCancelledBefore},
	}
}

func waitSettles(w *world) {
	work := w.start(alice(), Script{})
	before := time.Now()
	c := w.reading(work, registry.ReadOptions{Wait: time.Minute})
	w.pass(7 * time.Second)
	work.Output.Append("all\n")
	work.Complete("exit code: 3")
	d := w.delivered(c)
	w.is.Equal(7*time.Second, time.Since(before))
	w.is.Equal("all\n", d.Text)
	w.is.True(d.EOF)
	w.is.Equal(registry.StatusCompleted, d.Snapshot.Status)
	w.is.Equal("exit code: 3", d.Snapshot.Detail)
	w.is.True(d.Snapshot.Reported)
	w.is.False(d.Snapshot.FinishedAt.IsZero())
	w.is.NoError(d.Confirm())
}

func waitTimesOut(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("so far")
	before := time.Now()
	d := w.holdWith(work, registry.ReadOptions{Wait: 1234 * time.Millisecond})
	w.is.Equal(1234*time.Millisecond, time.Since(before))
	w.is.Equal("so far", d.Text)
	w.is.False(d.EOF)
	w.is.Equal(registry.StatusRunning, d.Snapshot.Status)
	w.is.True(d.Snapshot.FinishedAt.IsZero())
	w.is.False(d.Snapshot.Reported)
	w.is.NoError(d.Confirm())
	w.is.Empty(w.take(work).Text, "a wait consumes what it returns")
	w.is.Empty(work.Cancels())
	work.Complete("")
	w.notices(work, 1)
}

func waitNotByOutput(w *world) {
	work := w.start(alice(), Script{})
	c := w.reading(work, registry.ReadOptions{Wait: time.Minute})
	work.Output.Append("one")
	w.pass(time.Second)
	work.Output.Append("two")
	work.Output.End()
	w.pass(time.Second)
	w.is.False(c.returned())
	work.Complete("")
	w.is.Equal("onetwo", w.delivered(c).Text)
}

func waitFinished(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("abc")
	work.Complete("")
	before := time.Now()
	for _, want := range []string{"abc", "", ""} {
		d := w.holdWith(work, registry.ReadOptions{Wait: time.Hour})
		w.is.Equal(want, d.Text)
		w.is.True(d.EOF)
		w.is.NoError(d.Confirm())
	}
	w.is.Zero(time.Since(before))
}

func waitOverKill(w *world) {
	work := w.start(alice(), Script{})
	c := w.reading(work, registry.ReadOptions{Wait: time.Minute})
	_, _, err := w.Kill(w.ctx, alice(), work.ID, "")
	w.is.NoError(err)
	w.pass(time.Second)
	w.is.False(c.returned(), "stopping is no end")
	work.Settle(registry.Outcome{Status: registry.StatusKilled})
	w.is.Equal(registry.StatusKilled, w.delivered(c).Snapshot.Status)
	w.notices(work, 0)
}

func waitLeaves(w *world) {
	work := w.start(alice(), Script{})
	leaver := w.reading(work, registry.ReadOptions{Wait: time.Minute})
	stayer := w.reading(work, registry.ReadOptions{Wait: time.Minute})
	leaver.leave()
	w.settled()
	w.is.True(leaver.returned())
	_, err := leaver.result()
	w.is.ErrorIs(err, context.Canceled)
	w.is.False(stayer.returned())
	w.is.Equal(registry.StatusRunning, w.get(work).Status)
	w.is.Empty(work.Cancels())
	work.Output.Append("abc")
	work.Complete("")
	d := w.delivered(stayer)
	w.is.Equal("abc", d.Text)
	w.is.NoError(d.Confirm())
	w.notices(work, 0)
}

func waitLeavesNothing(w *world) {
	work := w.start(alice(), Script{})
	timedOut := w.reading(work, registry.ReadOptions{Wait: time.Second})
	w.pass(2 * time.Second)
	w.delivered(timedOut).Abandon()
	w.is.Zero(w.waiters(work), "after a time-out")
	left := w.reading(work, registry.ReadOptions{Wait: time.Minute})
	left.leave()
	w.is.Zero(w.waiters(work), "after leaving")
	settled := w.reading(work, registry.ReadOptions{Wait: time.Minute})
	w.is.Equal(1, w.waiters(work))
	work.Complete("")
	w.delivered(settled).Abandon()
	w.is.Zero(w.waiters(work), "after settlement")
}

func waitRepeated(w *world) {
	work := w.start(alice(), Script{})
	for range 3 {
		d := w.holdWith(work, registry.ReadOptions{Wait: time.Second})
		w.is.Equal(registry.StatusRunning, d.Snapshot.Status)
		w.is.NoError(d.Confirm())
	}
	c := w.reading(work, registry.ReadOptions{Wait: time.Second})
	work.Complete("")
	w.is.True(w.delivered(c).EOF)
}

func waitPerTask(w *world) {
	work, other := w.start(alice(), Script{}), w.start(alice(), Script{})
	c := w.reading(work, registry.ReadOptions{Wait: time.Minute})
	other.Complete("")
	w.settled()
	w.is.False(c.returned())
	w.notices(other, 1)
	work.Complete("")
	w.is.Equal(work.ID, w.delivered(c).Snapshot.ID)
}

func waitCancelledBefore(w *world) {
	work := w.start(alice(), Script{})
	ctx, cancel := context.WithCancel(w.ctx)
	cancel()
	before := time.Now()
	_, err := w.Read(ctx, alice(), work.ID, registry.ReadOptions{Wait: time.Minute})
	w.is.ErrorIs(err, context.Canceled)
	w.is.Zero(time.Since(before))
	w.is.Zero(w.waiters(work))
}
