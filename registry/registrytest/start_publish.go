package registrytest

import (
	"context"
	"encoding/json"
	"time"

	"afoot/registry"
)

// startPublishCases: rules 1 and 4, from the starter to the published task.
func startPublishCases() []testCase {
	return []testCase{
		{name: "a started task shows its facts", run: startedFacts},
		{name: "an unowned task belongs to nobody", run: unownedFacts},
		{name: "the default agent owns what a session starts", run: defaultOwner},
		{name: "the producer gets the spec and the launch", run: launchFacts},
		{name: "the starter runs exactly once and may call the service", run: starterCallsBack},
		{name: "a call that is cancelled once the starter ran changes nothing", run: cancelledInStarter},
		{name: "a call that is cancelled after publication changes nothing", run: cancelledAfter},
		{name: "work that settles before the starter returned is published settled", run: settledInStarter},
		{name: "an end that the starting call awaits is no notice once it was read", run: awaitedEnd},
		{name: "an end that the starting call awaited in vain is a notice", run: awaitedInVain},
		{name: "a task is there when its registration is told", run: thereAtRegistered},
	}
}

func startedFacts(w *world) {
	w.pass(90 * time.Minute)
	now := time.Now()
	started, err := w.Start(w.ctx, alice(), w.request(Script{Label: "the label"}))
	w.is.NoError(err)
	w.is.False(started.Replayed)
	s := started.Snapshot
	work := w.jobs.Work(s.ID)
	w.is.Equal(registry.Snapshot{
		ID: "job-1", Kind: job, Label: "the label", Owner: work.Owner,
		Status: registry.StatusRunning, StartedAt: s.StartedAt,
	}, s)
	w.is.True(s.StartedAt.Equal(now), "started at %v, not %v", s.StartedAt, now)
	w.is.Equal("alice", s.Owner.Session)
	w.is.Equal(s, w.get(work))
	w.is.Equal(s, w.heard(work, registry.ChangeRegistered))
}

// awaited starts work whose end is promised to the starting call.
func (w *world) awaited() (*Work, func()) {
	w.t.Helper()
	req := w.request(Script{})
	req.Await = true
	started, err := w.Start(w.ctx, alice(), req)
	w.is.NoError(err)
	w.is.NotNil(started.Release)
	return w.jobs.Work(started.Snapshot.ID), started.Release
}

func awaitedEnd(w *world) {
	work, release := w.awaited()
	work.Output.Append("abc")
	work.Complete("") // before the read begins
	w.settled()
	w.notices(work, 0)
	w.is.Equal("abc", w.take(work).Text)
	release()
	release()
	w.notices(work, 0)
	w.is.True(w.get(work).Reported)
}

func awaitedInVain(w *world) {
	work, release := w.awaited()
	work.Complete("")
	w.settled()
	w.notices(work, 0)
	release()
	w.notices(work, 1)

	work, release = w.awaited()
	release()
	w.notices(work, 0)
	work.Complete("")
	w.settled()
	w.notices(work, 1)
}

func unownedFacts(w *world) {
	work := w.start(nobody(), Script{})
	w.is.True(work.Owner.Unowned())
	w.is.True(w.get(work).Owner.Unowned())
}

func defaultOwner(w *world) {
	unnamed := w.start(alice(), Script{})
	named := w.start(registry.Caller{Session: "alice", Agent: registry.DefaultAgent}, Script{})
	w.is.Equal(registry.DefaultAgent, unnamed.Owner.Agent)
	w.is.Equal(unnamed.Owner, named.Owner)
	agent := w.open(alice(), 0)
	w.is.Equal(agent.Agent, w.start(agent, Script{}).Owner.Agent)
}

func launchFacts(w *world) {
	request := w.request(Script{})
	request.Spec.Label = new("mine")
	request.Spec.OutputLimitBytes = new(int64(100))
	started, err := w.Start(w.ctx, alice(), request)
	w.is.NoError(err)
	work := w.jobs.Work(started.Snapshot.ID)
	w.is.Equal(request.Spec, work.Spec)
	w.is.Equal(started.Snapshot.Owner, work.Owner)
	d, err := w.Describe(w.ctx, alice(), work.ID)
	w.is.NoError(err)
	w.is.JSONEq(string(request.Spec.Fields), string(d.Request))
	w.is.Equal(w.get(work), d.Snapshot)
	w.is.Zero(d.Waiters)
	w.is.True(json.Valid(d.Request))
}

func starterCallsBack(w *world) {
	var listed int
	work := w.start(alice(), Script{Start: func(ctx context.Context, _ *Work) error {
		l, err := w.List(ctx, alice(), registry.ListOptions{})
		listed = len(l.Tasks)
		return err
	}})
	w.is.Zero(listed)
	w.is.Equal(1, w.jobs.Starts())
	w.tale(work, registry.ChangeRegistered)
}

func cancelledInStarter(w *world) {
	running := w.gate()
	c := begin(w.ctx, func(ctx context.Context) (registry.Started, error) {
		return w.Start(ctx, alice(), w.request(Script{
			Start: func(context.Context, *Work) error { running.pass(); return nil },
		}))
	})
	w.settled()
	c.leave()
	running.open()
	started, err := c.result()
	w.is.NoError(err, "registration cannot fail once the starter has returned")
	w.settled()
	work := w.jobs.Work(started.Snapshot.ID)
	w.is.Equal(registry.StatusRunning, w.get(work).Status)
	w.is.Empty(work.Cancels())
}

func cancelledAfter(w *world) {
	ctx, cancel := context.WithCancel(w.ctx)
	started, err := w.Start(ctx, alice(), w.request(Script{}))
	w.is.NoError(err)
	cancel()
	w.pass(time.Hour)
	work := w.jobs.Work(started.Snapshot.ID)
	w.is.Equal(registry.StatusRunning, w.get(work).Status)
	w.is.Empty(work.Cancels())
}

func settledInStarter(w *world) {
	work := w.start(alice(), Script{Start: func(_ context.Context, work *Work) error {
		work.Output.Append("quick")
		work.Complete("exit code: 0")
		work.Break(errBoom)
		return nil
	}})
	work.Complete("third")
	w.tale(work, registry.ChangeRegistered, registry.ChangeSettled, notice)
	s := w.get(work)
	w.is.Equal(registry.StatusCompleted, s.Status)
	w.is.Equal("exit code: 0", s.Detail)
	w.is.False(s.FinishedAt.Before(s.StartedAt))
	r := w.take(work)
	w.is.Equal("quick", r.Text)
	w.is.True(r.EOF)
}

func thereAtRegistered(w *world) {
	var err error
	w.OnChange(registry.AllOwners(), func(c registry.Change) {
		if c.Type == registry.ChangeRegistered {
			_, err = w.Get(w.ctx, alice(), c.Snapshot.ID)
		}
	})
	w.start(alice(), Script{})
	w.settled()
	w.is.NoError(err)
}
