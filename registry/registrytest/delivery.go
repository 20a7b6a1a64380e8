package registrytest

import (
	"time"

	"afoot/registry"
)

// deliveryCases: rule 16. Nothing moves before the answer was written.
func deliveryCases() []testCase {
	return []testCase{
		{name: "nothing moves before the answer is confirmed", run: commitAfterWrite},
		{name: "an abandoned answer leaves its text unread", run: abandonedText},
		{name: "an abandoned terminal answer leaves its notice due", run: abandonedNotice},
		{name: "a promised end holds the notice until it is confirmed", run: heldThenConfirmed},
		{name: "a promised end that is abandoned is announced exactly once", run: heldThenAbandoned},
		{name: "only the first of confirm and abandon counts", run: firstCounts},
		{name: "a live answer on its way holds no notice", run: liveHoldsNothing},
		{name: "a second end is never announced", run: neverTwice},
		{name: "output that comes while an answer is on its way stays unread", run: grewMeanwhile},
		{name: "an answer that was confirmed after the removal of its task changes nothing", run: confirmAfterPurge},
	}
}

func commitAfterWrite(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("abc")
	work.Complete("")
	w.settled()
	d := w.hold(work)
	w.is.True(d.Snapshot.Reported, "the answer shows what it brings about")
	w.is.False(w.get(work).Reported, "but nothing has moved yet")
	w.tale(work, registry.ChangeRegistered, registry.ChangeSettled, notice)
	w.is.NoError(d.Confirm())
	w.is.True(w.get(work).Reported)
	w.tale(work, registry.ChangeRegistered, registry.ChangeSettled, notice, registry.ChangeReported)
	w.is.Empty(w.take(work).Text)
}

func abandonedText(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("abc")
	for range 3 {
		d := w.hold(work)
		w.is.Equal("abc", d.Text)
		w.is.Zero(d.Offset)
		d.Abandon()
	}
	w.is.Equal("abc", w.take(work).Text)
	w.is.Empty(w.take(work).Text)
}

func abandonedNotice(w *world) {
	work := w.start(alice(), Script{})
	work.Complete("")
	w.notices(work, 1)
	w.hold(work).Abandon()
	w.is.False(w.get(work).Reported)
	w.notices(work, 1)
	w.take(work)
	w.tale(work, registry.ChangeRegistered, registry.ChangeSettled, notice, registry.ChangeReported)
}

// promised gives an answer that settlement promised to a wait.
func (w *world) promised(work *Work, o registry.ReadOptions) *registry.Delivery {
	w.t.Helper()
	o.Wait = time.Hour
	c := w.reading(work, o)
	work.Complete("exit code: 0")
	d := w.delivered(c)
	w.is.Equal(registry.StatusCompleted, d.Snapshot.Status)
	w.is.Equal(!o.Explicit, d.Snapshot.Reported, "the answer shows what its delivery brings about")
	return d
}

func heldThenConfirmed(w *world) {
	work := w.start(alice(), Script{})
	d := w.promised(work, registry.ReadOptions{})
	w.pass(time.Hour)
	w.tale(work, registry.ChangeRegistered, registry.ChangeSettled)
	w.is.False(w.get(work).Reported)
	w.is.NoError(d.Confirm())
	w.pass(time.Hour)
	w.tale(work, registry.ChangeRegistered, registry.ChangeSettled, registry.ChangeReported)
	w.is.True(w.get(work).Reported)
}

func heldThenAbandoned(w *world) {
	work := w.start(alice(), Script{})
	d := w.promised(work, registry.ReadOptions{})
	w.pass(time.Hour)
	w.notices(work, 0)
	d.Abandon()
	w.tale(work, registry.ChangeRegistered, registry.ChangeSettled, notice)
	n := w.heard(work, notice)
	w.is.False(n.Reported)
	w.is.Equal(registry.StatusCompleted, n.Status)
	w.pass(time.Hour)
	w.hold(work).Abandon()
	w.notices(work, 1)
}

func firstCounts(w *world) {
	work := w.start(alice(), Script{})
	d := w.promised(work, registry.ReadOptions{})
	w.is.NoError(d.Confirm())
	d.Abandon()
	w.is.NoError(d.Confirm())
	w.tale(work, registry.ChangeRegistered, registry.ChangeSettled, registry.ChangeReported)

	other := w.start(alice(), Script{})
	d = w.promised(other, registry.ReadOptions{})
	d.Abandon()
	w.is.NoError(d.Confirm())
	d.Abandon()
	w.tale(other, registry.ChangeRegistered, registry.ChangeSettled, notice)
	w.is.False(w.get(other).Reported)
}

func liveHoldsNothing(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("abc")
	d := w.hold(work)
	work.Complete("")
	w.notices(work, 1)
	w.is.NoError(d.Confirm())
	w.is.Equal(registry.StatusRunning, d.Snapshot.Status)
	w.is.False(w.get(work).Reported, "the answer told of no end")
	r := w.take(work)
	w.is.Empty(r.Text)
	w.is.True(r.EOF)
}

func neverTwice(w *world) {
	work := w.start(alice(), Script{})
	work.Complete("")
	w.notices(work, 1)
	for range 3 {
		w.hold(work).Abandon()
		d := w.holdWith(work, registry.ReadOptions{Explicit: true})
		w.is.NoError(d.Confirm())
		w.pass(time.Minute)
	}
	w.notices(work, 1)
}

func grewMeanwhile(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("abc")
	d := w.hold(work)
	work.Output.Append("def")
	w.is.NoError(d.Confirm())
	w.is.Equal("def", w.take(work).Text)
}

func confirmAfterPurge(w *world) {
	for _, end := range []func(*registry.Delivery){
		func(d *registry.Delivery) { _ = d.Confirm() },
		func(d *registry.Delivery) { d.Abandon() },
	} {
		work := w.start(alice(), Script{})
		d := w.promised(work, registry.ReadOptions{})
		w.is.NoError(w.Purge(w.ctx, alice(), work.ID))
		end(d)
		w.pass(time.Hour)
		w.tale(work, registry.ChangeRegistered, registry.ChangeSettled, registry.ChangeRemoved)
	}
}
