package registrytest

import (
	"context"
	"time"

	"afoot/registry"
)

// promoteCases: a foreground task becomes a background one together with the answer
// that says so.
func promoteCases() []testCase {
	return []testCase{
		{name: "the answer and the record agree, and a change tells of it", run: promoteLive},
		{name: "the later end is due once", run: promoteThenEnd},
		{name: "a wait lets go when its time is over", run: promoteAtBound},
		{name: "the reader's leaving afterwards changes nothing", run: promoteLeft},
		{name: "the text is unread until it is confirmed", run: promoteUnread},
		{name: "a wait that is answered with the end promotes nothing", run: promoteEnded},
		{name: "of an ended task it promotes nothing and delivers the end", run: promoteTooLate},
		{name: "an end that comes while the answer is made is what it tells", run: promoteEndsMeanwhile},
		{name: "an end that comes while the answer is made is told of in full", run: promoteSplitMeanwhile},
		{name: "a caller who has left promotes nothing", run: promoteLeaver},
		{name: "a caller who leaves while the answer is made promotes nothing", run: promoteLeavesMeanwhile},
		{name: "output that can't be read promotes nothing", run: promoteFails},
		{name: "of a background task it is a read like any other", run: promoteBackground},
		{name: "out of turn it promotes too", run: promoteOutOfTurn},
		{name: "an explicit read promotes at once and commits by its ack", run: promoteExplicit},
		{name: "a final output", run: promoteFinal},
		{name: "a kill afterwards silences the notice", run: promoteThenKill},
		{name: "of stopping work it stays reported", run: promoteStopping},
		{name: "the start's own promise holds the notice on", run: promoteAwaited},
		{name: "unowned work has nobody to notify", run: promoteUnowned},
		{name: "work removed while the answer is made is gone", run: promoteRemoved},
		{name: "of two promoters one is late, and gets an end that was announced", run: promoteLate},
	}
}

// letGo reads a foreground task and promotes it, with the answer still on its way.
func (w *world) letGo(work *Work) *registry.Delivery {
	w.t.Helper()
	d := w.holdWith(work, registry.ReadOptions{Promote: true})
	w.is.False(d.Snapshot.Status.Terminal())
	w.is.False(d.Snapshot.Foreground)
	w.is.False(d.EOF)
	return d
}

// background asserts that a task was promoted and is live.
func (w *world) background(work *Work) {
	w.t.Helper()
	w.whole(work, registry.ChangeRegistered, registry.ChangePromoted)
	w.is.False(w.get(work).Foreground)
	w.is.False(w.heard(work, registry.ChangePromoted).Foreground)
}

func promoteLive(w *world) {
	work := w.foreground(alice(), Script{})
	work.Output.Append("abc")
	d := w.letGo(work)
	w.is.Equal("abc", d.Text)
	w.is.Equal(w.get(work), d.Snapshot)
	w.is.Equal(w.get(work), w.heard(work, registry.ChangePromoted))
	w.background(work)
	w.is.NoError(d.Confirm())
	w.background(work)
	w.is.True(registry.ChangePromoted.Visible())
}

func promoteThenEnd(w *world) {
	work := w.foreground(alice(), Script{})
	w.is.NoError(w.letGo(work).Confirm())
	w.pass(time.Hour)
	work.Output.Append("abc")
	work.Complete("exit code: 0")
	w.pass(time.Hour)
	w.whole(work, registry.ChangeRegistered, registry.ChangePromoted, registry.ChangeSettled, notice)
	s := w.get(work)
	w.is.False(s.Foreground)
	w.is.False(s.Reported)
	w.is.Equal(s, w.heard(work, notice))
	w.is.Equal("abc", w.take(work).Text)
	w.tale(work, registry.ChangeRegistered, registry.ChangePromoted, registry.ChangeSettled, notice, registry.ChangeReported)
}

func promoteAtBound(w *world) {
	work := w.foreground(alice(), Script{})
	c := w.reading(work, registry.ReadOptions{Wait: time.Minute, Promote: true})
	w.pass(time.Minute - tick)
	w.is.False(c.returned())
	w.is.True(w.get(work).Foreground, "not before it answers")
	work.Output.Append("abc")
	w.pass(2 * tick)
	d := w.delivered(c)
	w.is.Equal("abc", d.Text)
	w.is.False(d.Snapshot.Foreground)
	w.background(work)
	w.is.NoError(d.Confirm())
	work.Complete("")
	w.notices(work, 1)
}

func promoteLeft(w *world) {
	work := w.foreground(alice(), Script{})
	c := w.reading(work, registry.ReadOptions{Wait: time.Second, Promote: true})
	w.pass(time.Second)
	d := w.delivered(c)
	c.leave()
	d.Abandon()
	w.pass(time.Hour)
	w.background(work)
	w.is.Empty(work.Cancels())
	work.Complete("")
	w.whole(work, registry.ChangeRegistered, registry.ChangePromoted, registry.ChangeSettled, notice)
}

func promoteUnread(w *world) {
	work := w.foreground(alice(), Script{})
	work.Output.Append("abc")
	w.letGo(work).Abandon()
	w.background(work)
	d := w.hold(work)
	w.is.Equal("abc", d.Text)
	w.is.False(d.Snapshot.Foreground)
	w.is.NoError(d.Confirm())
	work.Output.Append("def")
	r := w.take(work)
	w.is.Equal("def", r.Text)
	w.is.EqualValues(3, r.Offset)
	work.Complete("")
	w.notices(work, 1)
}

func promoteEnded(w *world) {
	for _, confirm := range []bool{true, false} {
		work := w.foreground(alice(), Script{})
		work.Output.Append("abc")
		d := w.promisedReported(work, registry.ReadOptions{Promote: true})
		w.is.Equal("abc", d.Text)
		w.is.True(d.EOF)
		w.is.True(d.Snapshot.Foreground)
		if confirm {
			w.is.NoError(d.Confirm())
		} else {
			d.Abandon()
		}
		w.silent(work, registry.StatusCompleted)
	}
}

func promoteTooLate(w *world) {
	for _, wait := range []time.Duration{0, time.Second} {
		work := w.foreground(alice(), Script{})
		work.Output.Append("abc")
		work.Complete("")
		d := w.holdWith(work, registry.ReadOptions{Promote: true, Wait: wait})
		w.is.Equal("abc", d.Text)
		w.is.True(d.EOF)
		w.is.True(d.Snapshot.Foreground)
		w.is.True(d.Snapshot.Reported)
		w.is.NoError(d.Confirm())
		w.silent(work, registry.StatusCompleted)
	}
}

func promoteLeaver(w *world) {
	work := w.foreground(alice(), Script{})
	work.Output.Append("abc")
	ctx, cancel := context.WithCancel(w.ctx)
	cancel()
	for _, wait := range []time.Duration{0, time.Hour} {
		for range 5 {
			_, err := w.Read(ctx, alice(), work.ID, registry.ReadOptions{Promote: true, Wait: wait})
			w.is.ErrorIs(err, context.Canceled)
		}
	}
	w.whole(work, registry.ChangeRegistered)
	w.is.True(w.get(work).Foreground)
	w.is.Equal("abc", w.take(work).Text)
	work.Complete("")
	w.silent(work, registry.StatusCompleted)
}

func promoteFails(w *world) {
	work := w.foreground(alice(), Script{})
	work.Output.Lose(errBoom)
	_, err := w.Read(w.ctx, alice(), work.ID, registry.ReadOptions{Promote: true, Wait: time.Second})
	w.is.ErrorIs(err, errBoom)
	w.is.True(w.get(work).Foreground)
	work.Output.Lose(nil)
	work.Complete("")
	w.silent(work, registry.StatusCompleted)
}

func promoteBackground(w *world) {
	work := w.foreground(alice(), Script{})
	for range 3 {
		work.Output.Append("abc")
		d := w.letGo(work)
		w.is.Equal("abc", d.Text)
		w.is.NoError(d.Confirm())
	}
	w.background(work)
	plain := w.start(alice(), Script{})
	w.letGo(plain).Abandon()
	d := w.promised(plain, registry.ReadOptions{Promote: true})
	w.is.NoError(d.Confirm())
	w.whole(plain, registry.ChangeRegistered, registry.ChangeSettled, registry.ChangeReported)
}

func promoteOutOfTurn(w *world) {
	work := w.foreground(alice(), Script{})
	work.Output.Append("abc")
	first := w.hold(work)
	w.is.True(first.Snapshot.Foreground)
	d := w.holdWith(work, registry.ReadOptions{Promote: true, Wait: time.Second})
	w.is.Empty(d.Text)
	w.is.False(d.Snapshot.Foreground)
	w.is.NoError(d.Confirm())
	w.background(work)
	first.Abandon()
	w.is.Equal("abc", w.take(work).Text)
	work.Complete("")
	w.notices(work, 1)

	work = w.foreground(alice(), Script{})
	first = w.hold(work)
	ctx, cancel := context.WithTimeout(w.ctx, time.Second)
	defer cancel()
	_, err := w.Read(ctx, alice(), work.ID, registry.ReadOptions{Promote: true})
	w.is.ErrorIs(err, context.DeadlineExceeded)
	w.is.True(w.get(work).Foreground)
	c := w.reading(work, registry.ReadOptions{Promote: true, Wait: time.Second})
	work.Complete("")
	w.pass(time.Second)
	d = w.delivered(c)
	w.is.Equal(registry.StatusCompleted, d.Snapshot.Status)
	w.is.True(d.Snapshot.Foreground)
	first.Abandon()
	w.silent(work, registry.StatusCompleted)
}

func promoteExplicit(w *world) {
	work := w.foreground(alice(), Script{})
	work.Output.Append("abc")
	d := w.holdWith(work, registry.ReadOptions{Promote: true, Explicit: true})
	w.is.False(d.Snapshot.Foreground)
	w.background(work)
	w.is.NoError(d.Confirm())
	w.is.Equal("abc", w.look(work, registry.AtCursor, registry.LookOptions{}).Text)
	w.ack(work, 3)
	w.is.Empty(w.look(work, registry.AtCursor, registry.LookOptions{}).Text)
	work.Complete("")
	w.notices(work, 1)
}

func promoteFinal(w *world) {
	work := w.foreground(alice(), Script{Final: true})
	w.is.NoError(w.letGo(work).Confirm())
	work.finish("the answer")
	w.notices(work, 1)
	work = w.foreground(alice(), Script{Final: true})
	c := w.reading(work, registry.ReadOptions{Promote: true, Wait: time.Hour})
	work.finish("the answer")
	d := w.delivered(c)
	w.is.Equal("the answer", d.Text)
	d.Abandon()
	w.silent(work, registry.StatusCompleted)
}

func promoteThenKill(w *world) {
	work := w.foreground(alice(), Script{})
	w.is.NoError(w.letGo(work).Confirm())
	w.kill(work, "")
	work.Settle(registry.Outcome{Status: registry.StatusKilled})
	w.pass(time.Hour)
	w.whole(work, registry.ChangeRegistered, registry.ChangePromoted, registry.ChangeStopping, registry.ChangeSettled)
	w.is.True(w.get(work).Reported)
}

func promoteStopping(w *world) {
	work := w.foreground(alice(), Script{})
	w.kill(work, "")
	d := w.letGo(work)
	w.is.Equal(registry.StatusStopping, d.Snapshot.Status)
	w.is.True(d.Snapshot.Reported)
	w.is.NoError(d.Confirm())
	work.Settle(registry.Outcome{Status: registry.StatusKilled})
	w.pass(time.Hour)
	w.whole(work, registry.ChangeRegistered, registry.ChangeStopping, registry.ChangePromoted, registry.ChangeSettled)

	work = w.foreground(alice(), Script{})
	work.Output.OnPage(func() { w.kill(work, "") })
	d = w.letGo(work)
	w.is.Equal(registry.StatusStopping, d.Snapshot.Status, "the state at which it was promoted")
	w.is.True(d.Snapshot.Reported)
	w.is.Equal(w.get(work), d.Snapshot)
}

func promoteAwaited(w *world) {
	r := w.request(Script{})
	r.Foreground, r.Await = true, true
	started, err := w.Start(w.ctx, alice(), r)
	w.is.NoError(err)
	work := w.jobs.Work(started.Snapshot.ID)
	w.is.NoError(w.letGo(work).Confirm())
	work.Complete("")
	w.notices(work, 0)
	started.Release()
	w.notices(work, 1)
}

func promoteUnowned(w *world) {
	work := w.foreground(nobody(), Script{})
	w.is.NoError(w.letGo(work).Confirm())
	work.Complete("")
	w.pass(time.Hour)
	w.whole(work, registry.ChangeRegistered, registry.ChangePromoted, registry.ChangeSettled)
	w.is.False(w.get(work).Reported)
}
