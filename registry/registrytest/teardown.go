package registrytest

import (
	"time"

	"afoot/registry"
)

// teardownCases: rule 14 for work that does not behave, the same for the end of
// an owner and of the service.
func teardownCases() []testCase {
	bound := Options{TeardownTimeout: 8 * time.Second}
	return []testCase{
		{name: "a cancel that fails force-fails the record at once", options: bound, run: cancelFails},
		{name: "a cancel that fails holds other work's end up for nobody", options: bound, run: cancelFailsBeside},
		{name: "a late outcome never overwrites a forced one", options: bound, run: lateOutcome},
		{name: "a cancel that fails because the work has ended keeps the first outcome", options: bound, run: cancelFailsEnded},
		{name: "work that does not end is force-failed when the time is over", options: bound, run: neverEnds},
		{name: "stuck works share one bound", options: bound, run: stuckTogether},
		{name: "the bound is configurable", options: Options{TeardownTimeout: time.Second}, run: boundOption},
		{name: "the bound is 8 s by default", run: boundDefault},
		{name: "a forced end releases waits", options: bound, run: forcedReleases},
		{name: "a forced end keeps the room it leaves", options: Options{MaxTasksPerOwner: 1, MaxTasks: 1, TeardownTimeout: time.Second}, run: forcedRoom},
	}
}

func refuses(*Work, string) error { return errBoom }

// forced asserts the record of a forced end.
func (w *world) forced(s registry.Snapshot) {
	w.t.Helper()
	w.is.Equal(registry.StatusFailed, s.Status)
	w.is.Contains(s.Detail, "orphan", "the warning that work may live on")
	w.is.False(s.FinishedAt.IsZero())
}

func cancelFails(w *world) {
	agent := w.open(alice(), 0)
	work := w.start(agent, Script{Cancel: refuses})
	before := time.Now()
	w.is.NoError(w.DisposeAgent(w.ctx, alice(), agent.Agent))
	w.is.Zero(time.Since(before), "the producer has said that nothing will come")
	s := w.heard(work, registry.ChangeSettled)
	w.forced(s)
	w.is.True(s.Reported)
	w.ended(work)
	work.Complete("late")
	w.settled()
	w.is.Equal(1, w.log.count(work.ID, registry.ChangeSettled))
	w.notices(work, 0)
}

func cancelFailsBeside(w *world) {
	agent := w.open(alice(), 0)
	refusing := w.start(agent, Script{Cancel: refuses})
	slow := w.start(agent, Script{})
	d := w.disposing(alice(), agent.Agent)
	w.is.False(d.returned())
	w.is.Len(slow.Cancels(), 1, "one refusal must not keep others from being asked")
	slow.Settle(registry.Outcome{Status: registry.StatusKilled, Detail: "signal: SIGTERM"})
	_, err := d.result()
	w.is.NoError(err)
	w.forced(w.heard(refusing, registry.ChangeSettled))
	w.is.Equal("signal: SIGTERM", w.heard(slow, registry.ChangeSettled).Detail)
}

// lateOutcome uses the end of the service, which keeps the records to look at.
func lateOutcome(w *world) {
	refusing, stuck := w.start(alice(), Script{Cancel: refuses}), w.start(alice(), Script{})
	w.is.NoError(w.Close(w.ctx))
	for _, work := range []*Work{refusing, stuck} {
		forced := w.get(work)
		w.forced(forced)
		w.pass(time.Second)
		work.Complete("it did end after all")
		w.settled()
		w.is.Equal(forced, w.get(work))
		w.notices(work, 0)
	}
}

func cancelFailsEnded(w *world) {
	agent := w.open(alice(), 0)
	work := w.start(agent, Script{Cancel: func(work *Work, _ string) error {
		work.Complete("just in time")
		return errBoom
	}})
	w.is.NoError(w.DisposeAgent(w.ctx, alice(), agent.Agent))
	s := w.heard(work, registry.ChangeSettled)
	w.is.Equal(registry.StatusCompleted, s.Status)
	w.is.Equal("just in time", s.Detail)
	w.is.Equal(1, w.log.count(work.ID, registry.ChangeSettled))
}

func neverEnds(w *world) {
	agent := w.open(alice(), 0)
	work := w.start(agent, Script{})
	d := w.disposing(alice(), agent.Agent)
	w.pass(8*time.Second - tick)
	w.is.False(d.returned())
	w.is.Equal(registry.StatusStopping, w.get(work).Status)
	w.pass(2 * tick)
	w.is.True(d.returned())
	_, err := d.result()
	w.is.NoError(err)
	w.forced(w.heard(work, registry.ChangeSettled))
	w.ended(work)
	w.tale(work, registry.ChangeRegistered, registry.ChangeStopping, registry.ChangeSettled, registry.ChangeRemoved)
	work.Complete("late")
	w.tale(work, registry.ChangeRegistered, registry.ChangeStopping, registry.ChangeSettled, registry.ChangeRemoved)
}

func stuckTogether(w *world) {
	agent := w.open(alice(), 0)
	for range 5 {
		w.start(agent, Script{})
	}
	before := time.Now()
	w.is.NoError(w.DisposeAgent(w.ctx, alice(), agent.Agent))
	w.is.LessOrEqual(time.Since(before), 8*time.Second+tick)
}

func boundOption(w *world) {
	w.start(alice(), Script{})
	before := time.Now()
	w.is.NoError(w.Close(w.ctx))
	w.is.GreaterOrEqual(time.Since(before), time.Second)
	w.is.LessOrEqual(time.Since(before), time.Second+tick)
}

func boundDefault(w *world) {
	w.start(alice(), Script{})
	before := time.Now()
	w.is.NoError(w.Close(w.ctx))
	w.is.GreaterOrEqual(time.Since(before), 8*time.Second)
	w.is.LessOrEqual(time.Since(before), 8*time.Second+tick)
}

func forcedReleases(w *world) {
	agent := w.open(alice(), 0)
	work := w.start(agent, Script{})
	c := w.reading(work, registry.ReadOptions{Wait: time.Hour})
	w.is.NoError(w.DisposeAgent(w.ctx, alice(), agent.Agent))
	w.settled()
	w.is.True(c.returned())
	if d, err := c.result(); err == nil {
		w.forced(d.Snapshot)
		d.Abandon()
	} else {
		w.refused(err, registry.CodeGone)
	}
}

func forcedRoom(w *world) {
	w.start(alice(), Script{})
	w.is.NoError(w.DisposeAgent(w.ctx, alice(), registry.DefaultAgent))
	w.is.NoError(w.tryStart(alice()))
}
