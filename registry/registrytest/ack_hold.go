package registrytest

import (
	"time"

	"afoot/registry"
)

// ackHoldCases: rule 16, the notice that an explicit read holds for 30 s.
func ackHoldCases() []testCase {
	return []testCase{
		{name: "without an ack the notice is due after 30 s", run: holdRunsOut},
		{name: "an explicit read that no wait was promised holds what is still due", run: holdOfLaterRead},
		{name: "a further explicit read renews the 30 s", run: holdRenewed},
		{name: "a further read that is abandoned does not end the hold", run: holdOutlastsAbandon},
		{name: "a late ack still moves the cursor and reports", run: holdLateAck},
		{name: "an ack of what was read before a lost end reports no end", run: holdLostEnd},
		{name: "an ack below the cursor does not end the hold", run: holdAckBelow},
		{name: "an ack counts after a write that took longer than 30 s", run: holdSlowWrite},
		{name: "an abandoned explicit read announces at once", run: holdAbandoned},
		{name: "a kill ends the hold without a notice", run: holdKilled},
		{name: "a purge ends the hold without a notice", run: holdPurged},
		{name: "the owner's end ends the hold without a notice", run: holdDisposed},
		{name: "the end of the service ends the hold without a notice", run: holdClosed},
	}
}

const tick = time.Millisecond

// unacked gives a settled task whose end was handed out and not acknowledged.
func (w *world) unacked() (*Work, registry.Read) {
	w.t.Helper()
	work := w.start(alice(), Script{})
	work.Output.Append("abc")
	d := w.promised(work, registry.ReadOptions{Explicit: true})
	w.is.NoError(d.Confirm())
	return work, d.Read
}

func holdRunsOut(w *world) {
	work, _ := w.unacked()
	w.pass(registry.AckHold - tick)
	w.notices(work, 0)
	w.pass(2 * tick)
	w.tale(work, registry.ChangeRegistered, registry.ChangeSettled, notice)
	w.is.False(w.get(work).Reported)
	w.pass(time.Hour)
	w.notices(work, 1)
	w.is.Equal("abc", w.take(work).Text)
}

// holdOfLaterRead: the first answer is lost at once, but a second one has begun to
// be handed out before; its hold counts.
func holdOfLaterRead(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("abc")
	one := w.reading(work, registry.ReadOptions{Wait: time.Hour})
	two := w.reading(work, registry.ReadOptions{Wait: time.Hour, Explicit: true})
	work.Complete("")
	w.settled()
	if one.returned() {
		w.delivered(one).Abandon()
		w.is.NoError(w.delivered(two).Confirm())
	} else {
		w.is.NoError(w.delivered(two).Confirm())
		w.delivered(one).Abandon()
	}
	w.pass(registry.AckHold - tick)
	w.notices(work, 0)
	w.pass(2 * tick)
	w.notices(work, 1)
}

func holdRenewed(w *world) {
	work, _ := w.unacked()
	for range 4 {
		w.pass(20 * time.Second)
		w.is.Equal("abc", w.takeExplicit(work).Text)
	}
	w.pass(registry.AckHold - tick)
	w.notices(work, 0)
	w.pass(2 * tick)
	w.notices(work, 1)
}

// holdOutlastsAbandon: the first answer did arrive and may still be acknowledged,
// whatever became of a second one.
func holdOutlastsAbandon(w *world) {
	for _, explicit := range []bool{false, true} {
		work, r := w.unacked()
		w.pass(20 * time.Second)
		w.holdWith(work, registry.ReadOptions{Explicit: explicit}).Abandon()
		w.notices(work, 0)
		w.pass(registry.AckHold + tick)
		w.notices(work, 1)
		w.ack(work, r.NextOffset)
		w.is.True(w.get(work).Reported)
	}
}

// holdLostEnd: the ack can only mean the answer that came while the work lived.
func holdLostEnd(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("abc")
	live := w.takeExplicit(work)
	w.is.False(live.Snapshot.Status.Terminal())
	work.Complete("")
	w.settled()
	w.holdWith(work, registry.ReadOptions{Explicit: true}).Abandon()
	w.ack(work, live.NextOffset)
	w.is.False(w.get(work).Reported)
	w.notices(work, 1)
}

func holdLateAck(w *world) {
	work, r := w.unacked()
	w.pass(time.Minute)
	w.notices(work, 1)
	w.ack(work, r.NextOffset)
	w.tale(work, registry.ChangeRegistered, registry.ChangeSettled, notice, registry.ChangeReported)
	w.is.Empty(w.take(work).Text)
}

func holdAckBelow(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("abc")
	w.take(work)
	d := w.promised(work, registry.ReadOptions{Explicit: true})
	w.is.NoError(d.Confirm())
	w.ack(work, 1)
	w.is.False(w.get(work).Reported)
	w.pass(registry.AckHold + tick)
	w.notices(work, 1)
}

// holdSlowWrite: whether the 30 s begin with the read or with its confirm is left
// open; the end must be told once, and the ack must count.
func holdSlowWrite(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("abc")
	d := w.promised(work, registry.ReadOptions{Explicit: true})
	w.pass(registry.AckHold - tick)
	w.notices(work, 0)
	w.pass(time.Hour)
	w.is.NoError(d.Confirm())
	w.ack(work, d.NextOffset)
	w.is.True(w.get(work).Reported)
	w.pass(time.Hour)
	w.is.LessOrEqual(w.log.count(work.ID, notice), 1)
	w.is.Empty(w.take(work).Text)
}

func holdAbandoned(w *world) {
	work := w.start(alice(), Script{})
	w.promised(work, registry.ReadOptions{Explicit: true}).Abandon()
	w.notices(work, 1)
	w.pass(time.Hour)
	w.notices(work, 1)
}

func holdKilled(w *world) {
	work, r := w.unacked()
	outcome, _ := w.kill(work, "")
	w.is.Equal(registry.KillAlreadyFinished, outcome)
	w.pass(time.Hour)
	w.tale(work, registry.ChangeRegistered, registry.ChangeSettled, registry.ChangeReported)
	w.ack(work, r.NextOffset)
	w.tale(work, registry.ChangeRegistered, registry.ChangeSettled, registry.ChangeReported)
	w.is.Empty(w.take(work).Text)
}

func holdPurged(w *world) {
	work, r := w.unacked()
	w.is.NoError(w.Purge(w.ctx, alice(), work.ID))
	w.refused(w.Ack(w.ctx, alice(), work.ID, r.NextOffset), registry.CodeGone)
	w.pass(time.Hour)
	w.tale(work, registry.ChangeRegistered, registry.ChangeSettled, registry.ChangeRemoved)
}

func holdDisposed(w *world) {
	work, r := w.unacked()
	w.is.NoError(w.DisposeAgent(w.ctx, alice(), registry.DefaultAgent))
	w.refused(w.Ack(w.ctx, alice(), work.ID, r.NextOffset), registry.CodeGone)
	w.pass(time.Hour)
	w.tale(work, registry.ChangeRegistered, registry.ChangeSettled, registry.ChangeRemoved)
}

func holdClosed(w *world) {
	work, _ := w.unacked()
	w.is.NoError(w.Close(w.ctx))
	w.pass(time.Hour)
	w.notices(work, 0)
	w.is.False(w.get(work).Reported)
}
