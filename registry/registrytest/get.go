package registrytest

import (
	"encoding/json"
	"time"

	"afoot/registry"
)

// getCases: rule 5 for a single task.
func getCases() []testCase {
	return []testCase{
		{name: "looking at a task consumes nothing and marks nothing", run: getConsumesNothing},
		{name: "a snapshot stays what it was", run: snapshotStays},
		{name: "a snapshot counts raw and dropped bytes", run: snapshotCounts},
		{name: "every agent of a session sees the session's tasks", run: sessionSees},
		{name: "everybody sees unowned tasks", run: allSeeUnowned},
		{name: "describing counts the reads that wait", run: describeWaiters},
		{name: "the raw log gives the bytes as they are", run: rawLogBytes},
	}
}

func getConsumesNothing(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("unread")
	work.Complete("")
	w.settled()
	for range 3 {
		w.is.False(w.get(work).Reported)
		_, err := w.List(w.ctx, alice(), registry.ListOptions{})
		w.is.NoError(err)
		_, err = w.Describe(w.ctx, alice(), work.ID)
		w.is.NoError(err)
		log, err := w.OpenLog(w.ctx, alice(), work.ID, "")
		w.is.NoError(err)
		w.is.NoError(log.Close())
	}
	w.is.False(w.get(work).Reported)
	w.is.Equal("unread", w.take(work).Text)
	w.tale(work, registry.ChangeRegistered, registry.ChangeSettled, notice, registry.ChangeReported)
}

func snapshotStays(w *world) {
	work := w.start(alice(), Script{})
	before := w.get(work)
	w.pass(time.Second)
	work.Output.Append("more")
	work.Settle(registry.Outcome{
		Status: registry.StatusFailed, Detail: "late", Result: json.RawMessage(`{"late":true}`),
	})
	w.settled()
	w.is.Equal(registry.StatusRunning, before.Status)
	w.is.Zero(before.OutputBytes)
	w.is.Empty(before.Detail)
	w.is.Nil(before.Result)
	w.is.True(before.FinishedAt.IsZero())
	w.is.NotEqual(before, w.get(work))
}

func snapshotCounts(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("0123456789")
	work.Output.Drop(4)
	s := w.get(work)
	w.is.EqualValues(10, s.OutputBytes)
	w.is.EqualValues(4, s.DroppedBytes)
	work.Complete("")
	s = w.heard(work, registry.ChangeSettled)
	w.is.EqualValues(10, s.OutputBytes)
	w.is.EqualValues(4, s.DroppedBytes)
}

func sessionSees(w *world) {
	agent, sibling := w.open(alice(), 0), w.open(alice(), 0)
	work := w.start(agent, Script{})
	for _, c := range []registry.Caller{alice(), agent, sibling} {
		s, err := w.Get(w.ctx, c, work.ID)
		w.is.NoError(err)
		w.is.Equal(work.ID, s.ID)
		w.is.Equal([]registry.ID{work.ID}, w.ids(c, registry.ListOptions{}))
	}
}

func allSeeUnowned(w *world) {
	work := w.start(nobody(), Script{})
	for _, c := range []registry.Caller{alice(), bob(), nobody(), w.open(bob(), 0)} {
		_, err := w.Get(w.ctx, c, work.ID)
		w.is.NoError(err)
		w.is.Equal([]registry.ID{work.ID}, w.ids(c, registry.ListOptions{}))
	}
}

func (w *world) waiters(work *Work) int {
	w.t.Helper()
	w.settled()
	d, err := w.Describe(w.ctx, work.caller(), work.ID)
	w.is.NoError(err)
	return d.Waiters
}

func describeWaiters(w *world) {
	work := w.start(alice(), Script{})
	w.is.Zero(w.waiters(work))
	short := w.reading(work, registry.ReadOptions{Wait: time.Second})
	left := w.reading(work, registry.ReadOptions{Wait: time.Hour})
	long := w.reading(work, registry.ReadOptions{Wait: time.Hour})
	w.is.Equal(3, w.waiters(work))
	w.pass(2 * time.Second)
	w.is.NoError(w.delivered(short).Confirm())
	w.is.Equal(2, w.waiters(work))
	left.leave()
	w.is.Equal(1, w.waiters(work))
	work.Complete("")
	w.is.NoError(w.delivered(long).Confirm())
	w.is.Zero(w.waiters(work))
}

func rawLogBytes(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("a\x00b\xff\xe7\x95")
	work.Output.Drop(1)
	log, err := w.OpenLog(w.ctx, alice(), work.ID, "")
	w.is.NoError(err)
	first, next, ended := log.Bounds()
	w.is.EqualValues(1, first)
	w.is.EqualValues(6, next)
	w.is.False(ended)
	p := make([]byte, 5)
	_, err = log.ReadAt(p, 1)
	w.is.NoError(err)
	w.is.Equal("\x00b\xff\xe7\x95", string(p))
	w.is.Equal(1, work.Output.OpenLogs())
	w.is.NoError(log.Close())
	w.is.Zero(work.Output.OpenLogs())
}
