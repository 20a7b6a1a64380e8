package registrytest

import (
	"context"
	"runtime"
	"time"

	"afoot/registry"
)

// turnCases: rule 16. Consuming reads of one task are answered one after another.
func turnCases() []testCase {
	return []testCase{
		{name: "the second read gets what the first one left", run: turnAfterConfirm},
		{name: "the second read gets the same when the first is abandoned", run: turnAfterAbandon},
		{name: "a read looks at the output when its turn comes", run: turnLooksLate},
		{name: "a read that waits takes no turn yet", run: waitTakesNoTurn},
		{name: "a read that leaves the line lets the next one through", run: turnLeaves},
		{name: "no turn is lost to reads that leave in the instant they get it", run: turnLeavesAtOnce},
		{name: "reads of other tasks do not wait", run: turnPerTask},
		{name: "a refused read takes no turn", run: turnRefused},
		{name: "two waits share the output between them", run: turnTwoWaits},
		{name: "an end that is promised to two waits is held until both are over", run: turnTwoPromises},
		{name: "an end that is promised to two waits is reported by the second", run: turnSecondReports},
		{name: "a wait that leaves the line gives its promise back", run: turnPromiseLeaves},
		{name: "a wait in line is over with its bound, and consumes nothing", run: turnBound},
		{name: "reads in line behind a removed task are let go", run: turnRemoved},
		{name: "a read whose end came while it was in line reports it", run: turnEndInLine},
	}
}

func turnAfterConfirm(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("abc")
	first := w.hold(work)
	second := w.reading(work, registry.ReadOptions{})
	w.pass(time.Hour)
	w.is.False(second.returned(), "two answers were on their way at once")
	w.is.NoError(first.Confirm())
	d := w.delivered(second)
	w.is.Empty(d.Text)
	w.is.EqualValues(3, d.Offset)
	w.is.NoError(d.Confirm())
}

func turnAfterAbandon(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("abc")
	first := w.hold(work)
	second := w.reading(work, registry.ReadOptions{})
	w.is.False(second.returned())
	first.Abandon()
	d := w.delivered(second)
	w.is.Equal("abc", d.Text)
	w.is.NoError(d.Confirm())
	w.is.Empty(w.take(work).Text)
}

func turnLooksLate(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("abc")
	first := w.hold(work)
	second := w.reading(work, registry.ReadOptions{})
	work.Output.Append("def")
	w.is.NoError(first.Confirm())
	w.is.Equal("def", w.delivered(second).Text)
}

func waitTakesNoTurn(w *world) {
	work := w.start(alice(), Script{})
	waiting := w.reading(work, registry.ReadOptions{Wait: time.Hour})
	work.Output.Append("abc")
	w.is.Equal("abc", w.take(work).Text, "a plain read is answered at once")
	w.is.False(waiting.returned())
	work.Output.Append("def")
	work.Complete("")
	w.is.Equal("def", w.delivered(waiting).Text)
}

func turnLeaves(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("abc")
	first := w.hold(work)
	leaver := w.reading(work, registry.ReadOptions{})
	third := w.reading(work, registry.ReadOptions{})
	leaver.leave()
	w.settled()
	w.is.True(leaver.returned())
	_, err := leaver.result()
	w.is.ErrorIs(err, context.Canceled)
	w.is.False(third.returned())
	first.Abandon()
	d := w.delivered(third)
	w.is.Equal("abc", d.Text)
	w.is.NoError(d.Confirm())
	w.is.Empty(w.take(work).Text, "the turn was lost")
}

// turnLeavesAtOnce: the first in line has left, but with one processor it has not
// run when the turn comes to it.
func turnLeavesAtOnce(w *world) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for range 10 {
		work := w.start(alice(), Script{})
		work.Output.Append("abc")
		first := w.hold(work)
		leavers := []*call[*registry.Delivery]{
			w.reading(work, registry.ReadOptions{}), w.reading(work, registry.ReadOptions{}),
		}
		last := w.reading(work, registry.ReadOptions{})
		for _, c := range leavers {
			c.leave()
		}
		first.Abandon()
		w.answers(leavers, func(_ int, d *registry.Delivery) { d.Abandon() })
		d := w.delivered(last)
		w.is.Equal("abc", d.Text)
		d.Abandon()
		work.Complete("")
	}
}

func turnPerTask(w *world) {
	one, other := w.start(alice(), Script{}), w.start(alice(), Script{})
	held := w.hold(one)
	other.Output.Append("abc")
	w.is.Equal("abc", w.take(other).Text)
	held.Abandon()
}

func turnRefused(w *world) {
	work := w.start(alice(), Script{})
	for range 3 {
		_, err := w.Read(w.ctx, bob(), work.ID, registry.ReadOptions{})
		w.refused(err, registry.CodeForeignTask)
	}
	ctx, cancel := context.WithCancel(w.ctx)
	cancel()
	for range 3 {
		if d, err := w.Read(ctx, alice(), work.ID, registry.ReadOptions{Wait: time.Hour}); err == nil {
			d.Abandon()
		}
	}
	work.Output.Append("abc")
	w.is.Equal("abc", w.take(work).Text)
}

func turnTwoWaits(w *world) {
	work := w.start(alice(), Script{})
	one := w.reading(work, registry.ReadOptions{Wait: time.Hour})
	two := w.reading(work, registry.ReadOptions{Wait: time.Hour})
	work.Output.Append("abc")
	work.Complete("")
	first, second := w.eitherFirst(one, two)
	w.is.Equal("abc", first.Text)
	w.is.True(first.EOF)
	w.is.NoError(first.Confirm())
	d := w.delivered(second)
	w.is.Empty(d.Text)
	w.is.True(d.EOF)
	w.is.True(d.Snapshot.Reported)
	w.is.NoError(d.Confirm())
	w.tale(work, registry.ChangeRegistered, registry.ChangeSettled, registry.ChangeReported)
}

// eitherFirst gives the answer of the read that had its turn, and the other read.
func (w *world) eitherFirst(a, b *call[*registry.Delivery]) (*registry.Delivery, *call[*registry.Delivery]) {
	w.t.Helper()
	w.settled()
	w.is.NotEqual(a.returned(), b.returned(), "exactly one read must have its turn")
	if b.returned() {
		a, b = b, a
	}
	return w.delivered(a), b
}

func turnTwoPromises(w *world) {
	work := w.start(alice(), Script{})
	one := w.reading(work, registry.ReadOptions{Wait: time.Hour})
	two := w.reading(work, registry.ReadOptions{Wait: time.Hour})
	work.Complete("")
	first, second := w.eitherFirst(one, two)
	first.Abandon()
	d := w.delivered(second)
	w.notices(work, 0)
	d.Abandon()
	w.tale(work, registry.ChangeRegistered, registry.ChangeSettled, notice)
}

func turnSecondReports(w *world) {
	work := w.start(alice(), Script{})
	one := w.reading(work, registry.ReadOptions{Wait: time.Hour})
	two := w.reading(work, registry.ReadOptions{Wait: time.Hour})
	work.Output.Append("abc")
	work.Complete("")
	first, second := w.eitherFirst(one, two)
	first.Abandon()
	d := w.delivered(second)
	w.is.Equal("abc", d.Text)
	w.is.NoError(d.Confirm())
	w.pass(time.Hour)
	w.tale(work, registry.ChangeRegistered, registry.ChangeSettled, registry.ChangeReported)
}

func turnPromiseLeaves(w *world) {
	work := w.start(alice(), Script{})
	one := w.reading(work, registry.ReadOptions{Wait: time.Hour})
	two := w.reading(work, registry.ReadOptions{Wait: time.Hour})
	work.Complete("")
	first, second := w.eitherFirst(one, two)
	second.leave()
	w.settled()
	first.Abandon()
	if d, err := second.result(); err == nil {
		// The terminal snapshot won over the leaving: it still holds the notice.
		w.notices(work, 0)
		d.Abandon()
	}
	w.tale(work, registry.ChangeRegistered, registry.ChangeSettled, notice)
}

func turnEndInLine(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("abc")
	first := w.hold(work)
	second := w.reading(work, registry.ReadOptions{})
	work.Output.Append("def")
	work.Complete("")
	w.settled()
	w.is.NoError(first.Confirm())
	d := w.delivered(second)
	w.is.Equal("def", d.Text)
	w.is.True(d.EOF)
	w.is.True(d.Snapshot.Reported)
	w.is.NoError(d.Confirm())
	w.settled()
	w.is.True(w.get(work).Reported)
	w.is.LessOrEqual(w.log.count(work.ID, notice), 1)
	w.is.Equal(1, w.log.count(work.ID, registry.ChangeReported))
}

// turnBound: a reader that takes its time holds up no bounded wait, and neither
// text nor end is lost to the wait that gave up.
func turnBound(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("abc")
	first := w.hold(work)
	waiting := w.reading(work, registry.ReadOptions{Wait: time.Second})
	work.Complete("")
	w.settled()
	w.is.False(waiting.returned())
	w.pass(time.Second)
	d := w.delivered(waiting)
	w.is.Empty(d.Text)
	w.is.False(d.EOF)
	w.is.False(d.Snapshot.Reported)
	w.is.NoError(d.Confirm())
	w.notices(work, 1)
	first.Abandon()
	w.is.Equal("abc", w.take(work).Text)
}

func turnRemoved(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("abc")
	work.Complete("")
	first := w.hold(work)
	line := []*call[*registry.Delivery]{w.reading(work, registry.ReadOptions{}), w.reading(work, registry.ReadOptions{})}
	w.is.NoError(w.Purge(w.ctx, alice(), work.ID))
	w.settled()
	for _, c := range line {
		w.is.True(c.returned(), "it waits for the turn of a task that is gone")
		_, err := c.result()
		w.refused(err, registry.CodeGone)
	}
	first.Abandon()
}
