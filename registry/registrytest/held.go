package registrytest

import (
	"time"

	"afoot/registry"
)

// heldCases: where the notice of an announced end is. Whoever keeps it for
// delivery must not deliver it while an answer with the end is on its way, and
// must not lose it if that answer is lost.
func heldCases() []testCase {
	return []testCase{
		{name: "an answer on its way holds an announced notice until it is confirmed", run: heldConfirmed},
		{name: "an answer that is lost makes an announced notice due again", run: heldLost},
		{name: "an explicit read holds an announced notice for 30 s", run: heldExplicit},
		{name: "an ack of an explicit read reports instead", run: heldAcked},
		{name: "a live answer holds nothing", run: heldLive},
		{name: "a look holds nothing", run: heldLook},
		{name: "an end that was never announced is not held", run: heldUnannounced},
		{name: "a kill during the hold reports and nothing is due", run: heldKilled},
		{name: "a removal during the hold is the last of it", run: heldRemoved},
	}
}

// whole asserts all events of a task, also those that say where its notice is.
func (w *world) whole(work *Work, names ...registry.ChangeType) {
	w.t.Helper()
	w.settled()
	var got []registry.ChangeType
	for _, e := range w.log.about(work.ID) {
		got = append(got, e.what)
	}
	w.is.Equal(names, got, "events of %s", work.ID)
}

// announced gives a task whose end was announced and not read.
func (w *world) announced() *Work {
	w.t.Helper()
	work := w.start(alice(), Script{})
	work.Output.Append("abc")
	work.Complete("")
	w.whole(work, registry.ChangeRegistered, registry.ChangeSettled, notice)
	return work
}

func heldConfirmed(w *world) {
	work := w.announced()
	d := w.hold(work)
	w.whole(work, registry.ChangeRegistered, registry.ChangeSettled, notice, registry.ChangeHeld)
	w.is.NoError(d.Confirm())
	w.take(work)
	w.hold(work).Abandon()
	w.whole(work, registry.ChangeRegistered, registry.ChangeSettled, notice,
		registry.ChangeHeld, registry.ChangeReported)
}

func heldLost(w *world) {
	work := w.announced()
	w.hold(work).Abandon()
	w.whole(work, registry.ChangeRegistered, registry.ChangeSettled, notice,
		registry.ChangeHeld, registry.ChangeDue)
	w.hold(work).Abandon()
	w.whole(work, registry.ChangeRegistered, registry.ChangeSettled, notice,
		registry.ChangeHeld, registry.ChangeDue, registry.ChangeHeld, registry.ChangeDue)
	w.is.False(w.get(work).Reported)
}

func heldExplicit(w *world) {
	work := w.announced()
	w.takeExplicit(work)
	w.pass(registry.AckHold - tick)
	w.whole(work, registry.ChangeRegistered, registry.ChangeSettled, notice, registry.ChangeHeld)
	w.pass(2 * tick)
	w.whole(work, registry.ChangeRegistered, registry.ChangeSettled, notice,
		registry.ChangeHeld, registry.ChangeDue)
	w.pass(time.Hour)
	w.whole(work, registry.ChangeRegistered, registry.ChangeSettled, notice,
		registry.ChangeHeld, registry.ChangeDue)
}

func heldAcked(w *world) {
	work := w.announced()
	w.ack(work, w.takeExplicit(work).NextOffset)
	w.pass(time.Hour)
	w.whole(work, registry.ChangeRegistered, registry.ChangeSettled, notice,
		registry.ChangeHeld, registry.ChangeReported)
}

func heldLive(w *world) {
	work := w.start(alice(), Script{})
	d := w.hold(work)
	work.Complete("")
	w.is.NoError(d.Confirm())
	w.whole(work, registry.ChangeRegistered, registry.ChangeSettled, notice)
}

func heldLook(w *world) {
	work := w.announced()
	w.look(work, 0, registry.LookOptions{Wait: time.Second})
	w.whole(work, registry.ChangeRegistered, registry.ChangeSettled, notice)
}

func heldUnannounced(w *world) {
	work := w.start(alice(), Script{})
	d := w.promised(work, registry.ReadOptions{})
	w.whole(work, registry.ChangeRegistered, registry.ChangeSettled)
	w.is.NoError(d.Confirm())
	w.hold(work).Abandon()
	w.whole(work, registry.ChangeRegistered, registry.ChangeSettled, registry.ChangeReported)

	unowned := w.start(nobody(), Script{})
	unowned.Complete("")
	w.hold(unowned).Abandon()
	w.whole(unowned, registry.ChangeRegistered, registry.ChangeSettled)
}

func heldKilled(w *world) {
	work := w.announced()
	d := w.hold(work)
	w.kill(work, "")
	d.Abandon()
	w.whole(work, registry.ChangeRegistered, registry.ChangeSettled, notice,
		registry.ChangeHeld, registry.ChangeReported)
}

func heldRemoved(w *world) {
	work := w.announced()
	d := w.hold(work)
	w.is.NoError(w.Purge(w.ctx, alice(), work.ID))
	d.Abandon()
	w.pass(time.Hour)
	w.whole(work, registry.ChangeRegistered, registry.ChangeSettled, notice,
		registry.ChangeHeld, registry.ChangeRemoved)
}
