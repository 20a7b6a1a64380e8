package registrytest

import (
	"context"
	"time"

	"afoot/registry"
)

// foregroundCases: a task whose caller waits for it in the same call. It is a task as
// any other, but its end is that call's answer, and never a notice.
func foregroundCases() []testCase {
	one := Options{MaxTasksPerOwner: 1}
	many := Options{MaxTasksPerOwner: rounds}
	return []testCase{
		{name: "every snapshot says so, from the first moment to after the end", run: foregroundShown},
		{name: "it counts against the owner's limit and gives its room back", options: one, run: foregroundOwnerLimit},
		{name: "it counts against the daemon's limit and gives its room back", options: Options{MaxTasks: 1}, run: foregroundLimit},
		{name: "its end is reported from the moment it is recorded and never announced", run: foregroundEnds},
		{name: "so it is while somebody waits for it", run: foregroundWaited},
		{name: "so it is when its reader left before", run: foregroundLeft},
		{name: "so it is when its reader leaves in the instant of settlement", options: many, run: foregroundLeavesSameInstant},
		{name: "so it is when the answer with the end is lost", run: foregroundLost},
		{name: "so it is when it ends before it is published", run: foregroundEndsAtStart},
		{name: "so it is for a broken promise", run: foregroundBroken},
		{name: "so it is when the start awaits it", run: foregroundAwaited},
		{name: "so it is for unowned work", run: foregroundUnowned},
		{name: "a read that does not let go changes nothing", run: foregroundRead},
		{name: "a kill ends it as any other", run: foregroundKilled},
		{name: "a refused kill changes nothing", run: foregroundKillRefused},
		{name: "a repeated start gives the same task", run: foregroundKey},
		{name: "retention takes it for a reported one", options: Options{RetainCount: 1}, run: foregroundRetained},
		{name: "it ends with its owner", run: foregroundDisposed},
	}
}

// foreground starts work that its caller waits for in the same call.
func (w *world) foreground(c registry.Caller, s Script) *Work {
	w.t.Helper()
	r := w.request(s)
	r.Foreground = true
	started, err := w.Start(w.ctx, c, r)
	w.is.NoError(err)
	w.is.True(started.Snapshot.Foreground)
	return w.jobs.Work(started.Snapshot.ID)
}

// silent asserts the end of a foreground task: reported, and nobody was told.
func (w *world) silent(work *Work, status registry.Status) {
	w.t.Helper()
	w.pass(time.Hour)
	w.whole(work, registry.ChangeRegistered, registry.ChangeSettled)
	s := w.get(work)
	w.is.Equal(status, s.Status)
	w.is.True(s.Foreground)
	w.is.True(s.Reported)
	w.is.Equal(s, w.heard(work, registry.ChangeSettled))
}

func foregroundShown(w *world) {
	work, other := w.foreground(alice(), Script{}), w.start(alice(), Script{})
	w.is.True(w.heard(work, registry.ChangeRegistered).Foreground)
	for range 2 {
		l, err := w.List(w.ctx, alice(), registry.ListOptions{})
		w.is.NoError(err)
		w.is.Len(l.Tasks, 2)
		w.is.Equal([]registry.ID{work.ID, other.ID}, []registry.ID{l.Tasks[0].ID, l.Tasks[1].ID})
		w.is.True(l.Tasks[0].Foreground)
		w.is.False(l.Tasks[1].Foreground)
		w.is.True(w.get(work).Foreground)
		w.is.True(w.look(work, 0, registry.LookOptions{}).Snapshot.Foreground)
		w.is.True(w.take(work).Snapshot.Foreground)
		d, err := w.Describe(w.ctx, alice(), work.ID)
		w.is.NoError(err)
		w.is.True(d.Snapshot.Foreground)
		work.Complete("")
		w.settled()
	}
}

func foregroundOwnerLimit(w *world) {
	for range 3 {
		work := w.foreground(alice(), Script{})
		w.full(w.tryStart(alice()), ownerLimit)
		r := w.request(Script{})
		r.Foreground = true
		_, err := w.Start(w.ctx, alice(), r)
		w.full(err, ownerLimit)
		work.Complete("")
	}
	w.start(alice(), Script{})
}

func foregroundLimit(w *world) {
	for range 3 {
		work := w.foreground(alice(), Script{})
		w.full(w.tryStart(bob()), taskLimit)
		work.Complete("")
	}
	w.start(bob(), Script{})
}

func foregroundEnds(w *world) {
	for _, status := range []registry.Status{
		registry.StatusCompleted, registry.StatusKilled, registry.StatusFailed,
	} {
		work := w.foreground(alice(), Script{})
		work.Output.Append("abc")
		work.Settle(registry.Outcome{Status: status})
		w.is.True(w.get(work).Reported, "at once")
		w.silent(work, status)
		r := w.take(work)
		w.is.Equal("abc", r.Text)
		w.is.True(r.EOF)
		w.silent(work, status)
	}
}

func foregroundWaited(w *world) {
	for _, status := range []registry.Status{
		registry.StatusCompleted, registry.StatusKilled, registry.StatusFailed,
	} {
		work := w.foreground(alice(), Script{})
		c := w.reading(work, registry.ReadOptions{Wait: time.Hour})
		work.Output.Append("abc")
		work.Settle(registry.Outcome{Status: status})
		d := w.delivered(c)
		w.is.Equal("abc", d.Text)
		w.is.Equal(status, d.Snapshot.Status)
		w.is.True(d.Snapshot.Reported)
		w.is.NoError(d.Confirm())
		w.silent(work, status)
	}
}

func foregroundLeft(w *world) {
	for _, status := range []registry.Status{
		registry.StatusCompleted, registry.StatusKilled, registry.StatusFailed,
	} {
		work := w.foreground(alice(), Script{})
		c := w.reading(work, registry.ReadOptions{Wait: time.Hour, Promote: true})
		c.leave()
		w.settled()
		_, err := c.result()
		w.is.ErrorIs(err, context.Canceled)
		work.Settle(registry.Outcome{Status: status})
		w.silent(work, status)
	}
}

func foregroundLeavesSameInstant(w *world) {
	for i := range rounds {
		work := w.foreground(alice(), Script{})
		c := w.reading(work, registry.ReadOptions{Wait: time.Minute, Promote: i%2 == 0})
		go work.Complete("")
		go c.leave()
		w.settled()
		d, err := c.result()
		switch {
		case err != nil:
			w.is.ErrorIs(err, context.Canceled)
		case i%4 < 2:
			w.is.True(d.EOF)
			d.Abandon()
		default:
			w.is.True(d.EOF)
			w.is.NoError(d.Confirm())
		}
		w.whole(work, registry.ChangeRegistered, registry.ChangeSettled)
		w.is.True(w.get(work).Reported)
	}
}

func foregroundLost(w *world) {
	work := w.foreground(alice(), Script{})
	work.Output.Append("abc")
	w.promisedReported(work, registry.ReadOptions{}).Abandon()
	w.silent(work, registry.StatusCompleted)
	w.promisedReported(work, registry.ReadOptions{Explicit: true}).Abandon()
	w.silent(work, registry.StatusCompleted)
	w.is.Equal("abc", w.take(work).Text)
}

// promisedReported is promised for a task whose end is reported as it is recorded.
func (w *world) promisedReported(work *Work, o registry.ReadOptions) *registry.Delivery {
	w.t.Helper()
	o.Wait = time.Hour
	c := w.reading(work, o)
	work.Complete("")
	d := w.delivered(c)
	w.is.True(d.Snapshot.Status.Terminal())
	w.is.True(d.Snapshot.Reported)
	return d
}

func foregroundEndsAtStart(w *world) {
	work := w.foreground(alice(), Script{Start: func(_ context.Context, work *Work) error {
		work.Complete("at once")
		return nil
	}})
	w.silent(work, registry.StatusCompleted)
}

func foregroundBroken(w *world) {
	work := w.foreground(alice(), Script{})
	work.Break(errBoom)
	w.silent(work, registry.StatusFailed)
}

func foregroundAwaited(w *world) {
	for range 2 {
		r := w.request(Script{})
		r.Foreground, r.Await = true, true
		started, err := w.Start(w.ctx, alice(), r)
		w.is.NoError(err)
		work := w.jobs.Work(started.Snapshot.ID)
		work.Complete("")
		w.silent(work, registry.StatusCompleted)
		started.Release()
		started.Release()
		w.silent(work, registry.StatusCompleted)
	}
}

func foregroundUnowned(w *world) {
	work := w.foreground(nobody(), Script{})
	work.Complete("")
	w.silent(work, registry.StatusCompleted)
}

func foregroundRead(w *world) {
	work := w.foreground(alice(), Script{})
	work.Output.Append("abc")
	w.is.Equal("abc", w.take(work).Text)
	d := w.holdWith(work, registry.ReadOptions{Wait: time.Second})
	w.is.Equal(registry.StatusRunning, d.Snapshot.Status)
	w.is.True(d.Snapshot.Foreground)
	w.is.NoError(d.Confirm())
	w.is.False(w.get(work).Reported, "before the end there is nothing to report")
	work.Complete("")
	w.silent(work, registry.StatusCompleted)
}

func foregroundKilled(w *world) {
	work := w.foreground(alice(), Script{})
	outcome, s := w.kill(work, "enough")
	w.is.Equal(registry.KillRequested, outcome)
	w.is.True(s.Reported)
	w.is.True(s.Foreground)
	w.is.Equal([]string{"enough"}, work.Cancels())
	work.Settle(registry.Outcome{Status: registry.StatusKilled})
	w.pass(time.Hour)
	w.whole(work, registry.ChangeRegistered, registry.ChangeStopping, registry.ChangeSettled)
	outcome, s = w.kill(work, "again")
	w.is.Equal(registry.KillAlreadyFinished, outcome)
	w.is.True(s.Foreground)
	w.whole(work, registry.ChangeRegistered, registry.ChangeStopping, registry.ChangeSettled)
}

func foregroundKillRefused(w *world) {
	work := w.foreground(alice(), Script{Cancel: func(*Work, string) error { return errBoom }})
	_, _, err := w.Kill(w.ctx, alice(), work.ID, "")
	w.is.ErrorIs(err, errBoom)
	s := w.get(work)
	w.is.Equal(registry.StatusRunning, s.Status)
	w.is.True(s.Foreground)
	w.is.False(s.Reported)
	work.Complete("")
	w.silent(work, registry.StatusCompleted)
}

func foregroundKey(w *world) {
	r := w.keyed("k", 1, Script{})
	r.Foreground = true
	w.same(alice(), r, "job-1", false)
	work := w.jobs.Work("job-1")
	started, err := w.Start(w.ctx, alice(), r)
	w.is.NoError(err)
	w.is.True(started.Replayed)
	w.is.True(started.Snapshot.Foreground)
	w.is.NoError(w.holdWith(work, registry.ReadOptions{Promote: true}).Confirm())
	started, err = w.Start(w.ctx, alice(), r)
	w.is.NoError(err)
	w.is.True(started.Replayed)
	w.is.False(started.Snapshot.Foreground, "as it is now")
	w.is.Equal(1, w.jobs.Starts())
}

func foregroundRetained(w *world) {
	background := w.ends(alice(), Script{})
	work := w.foreground(alice(), Script{})
	work.Complete("")
	w.pass(tick)
	w.evicted(work)
	w.kept(background)
}

func foregroundDisposed(w *world) {
	agent := w.open(alice(), 0)
	live, ended := w.foreground(agent, Script{Cancel: settlesKilled}), w.foreground(agent, Script{})
	ended.Complete("")
	w.settled()
	w.is.NoError(w.DisposeAgent(w.ctx, alice(), agent.Agent))
	w.whole(live, registry.ChangeRegistered, registry.ChangeStopping, registry.ChangeSettled, registry.ChangeRemoved)
	w.whole(ended, registry.ChangeRegistered, registry.ChangeSettled, registry.ChangeRemoved)
	w.codes(registry.CodeGone, live.ID, ended.ID)
}
