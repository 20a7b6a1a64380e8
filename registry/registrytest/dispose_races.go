package registrytest

import (
	"context"
	"testing/synctest"
	"time"

	"afoot/registry"
)

// disposeRaceCases: rule 14, an owner's end against everything else.
func disposeRaceCases() []testCase {
	return []testCase{
		{name: "a start in flight is awaited and its work cancelled", run: disposeAgainstStart},
		{name: "a start in flight that fails holds no disposal up", run: disposeAgainstFailed},
		{name: "a start that returns late is cancelled all the same", options: Options{TeardownTimeout: 8 * time.Second}, run: disposeAgainstLateStart},
		{name: "a start in the instant of the disposal", run: disposeSameInstant},
		{name: "work that ends in the instant of the disposal", run: disposeAgainstSettle},
		{name: "two disposals at once end the owner once", run: disposeTwice},
		{name: "an old disposal never touches a successor", options: Options{TeardownTimeout: 8 * time.Second}, run: disposeSuccessor},
		{name: "a purge during the disposal", run: disposeAgainstPurge},
		{name: "a disposal from inside a listener", run: disposeFromListener},
	}
}

// ended asserts that work has been cancelled and is of no consequence any more.
func (w *world) ended(work *Work) {
	w.t.Helper()
	w.is.NotEmpty(work.Cancels(), "%s was never cancelled", work.ID)
	_, err := w.Get(w.ctx, work.caller(), work.ID)
	w.is.Contains([]registry.Code{registry.CodeGone, registry.CodeUnknownTask}, registry.CodeOf(err))
	w.notices(work, 0)
}

func disposeAgainstStart(w *world) {
	agent := w.open(alice(), 0)
	a := w.attempt(agent)
	d := w.disposing(alice(), agent.Agent)
	w.pass(time.Second)
	w.is.False(d.returned(), "work that is being started may be alive")
	a.verdict <- nil
	_, _ = a.result()
	w.settled()
	work := w.jobs.Work("job-1")
	w.is.NotNil(work)
	w.is.NotEmpty(work.Cancels())
	w.is.False(d.returned())
	work.Settle(registry.Outcome{Status: registry.StatusKilled})
	_, err := d.result()
	w.is.NoError(err)
	w.ended(work)
	w.is.Equal(1, w.gone(agent))
	w.is.Empty(w.ids(alice(), registry.ListOptions{}))
}

func disposeAgainstFailed(w *world) {
	agent := w.open(alice(), 0)
	a := w.attempt(agent)
	d := w.disposing(alice(), agent.Agent)
	a.verdict <- errBoom
	_, err := a.result()
	w.is.Error(err)
	w.settled()
	w.is.True(d.returned())
	_, err = d.result()
	w.is.NoError(err)
	w.is.Equal(1, w.gone(agent))
}

// disposeAgainstLateStart: the starter returns while the disposal waits for other
// work, or when it is over; nobody but the service knows of what it started.
func disposeAgainstLateStart(w *world) {
	agent := w.open(alice(), 0)
	stuck := w.start(agent, Script{})
	during, after := w.attempt(agent), w.attempt(agent)
	d := w.disposing(alice(), agent.Agent)
	w.pass(10 * time.Second)
	during.verdict <- nil
	w.pass(time.Minute)
	w.is.True(d.returned())
	after.verdict <- nil
	w.settled()
	for _, a := range []*attempt{during, after} {
		w.is.True(a.returned())
	}
	w.is.NotEmpty(stuck.Cancels())
	for _, work := range w.jobs.works {
		w.is.NotEmpty(work.Cancels(), "work that ran was forgotten")
		work.Complete("late")
	}
	w.settled()
	w.is.Empty(w.ids(alice(), registry.ListOptions{}))
	w.is.Equal(1, w.gone(agent))
	for _, work := range w.jobs.works {
		w.is.Equal(1, work.Discards(), "what work %s stored was not given back", work.ID)
	}
}

// disposeSameInstant: what was started is cancelled, what was refused never ran.
func disposeSameInstant(w *world) {
	for range rounds / 2 {
		agent := w.open(alice(), 0)
		starts := w.jobs.Starts()
		start := begin(w.ctx, func(ctx context.Context) (registry.Started, error) {
			return w.Start(ctx, agent, w.request(Script{Cancel: settlesKilled}))
		})
		dispose := begin(w.ctx, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, w.DisposeAgent(ctx, alice(), agent.Agent)
		})
		w.settled()
		_, err := dispose.result()
		w.is.NoError(err)
		started, err := start.result()
		switch {
		case err == nil:
			w.ended(w.jobs.Work(started.Snapshot.ID))
		case w.jobs.Starts() == starts:
			w.refused(err, registry.CodeGone)
		default:
			w.is.NotEmpty(w.jobs.works[starts].Cancels(), "work that ran was forgotten")
		}
		w.is.Empty(w.ids(alice(), registry.ListOptions{}))
		w.is.Equal(1, w.gone(agent))
	}
}

func disposeAgainstSettle(w *world) {
	for range rounds / 2 {
		agent := w.open(alice(), 0)
		work := w.start(agent, Script{Cancel: func(work *Work, _ string) error {
			go work.Settle(registry.Outcome{Status: registry.StatusKilled})
			return nil
		}})
		go work.Complete("")
		w.is.NoError(w.DisposeAgent(w.ctx, alice(), agent.Agent))
		w.settled()
		w.is.Equal(1, w.log.count(work.ID, registry.ChangeSettled))
		w.is.Equal(1, w.log.count(work.ID, registry.ChangeRemoved))
		w.is.LessOrEqual(w.log.count(work.ID, notice), 1)
		if len(work.Cancels()) > 0 && w.heard(work, registry.ChangeSettled).Reported {
			w.notices(work, 0)
		}
		w.is.Equal(1, work.Discards())
	}
}

func disposeTwice(w *world) {
	for range 20 {
		agent := w.open(alice(), 0)
		work := w.start(agent, Script{})
		one, two := w.disposing(alice(), agent.Agent), w.disposing(alice(), agent.Agent)
		w.is.False(one.returned(), "the work has not ended")
		work.Settle(registry.Outcome{Status: registry.StatusKilled})
		_, err := one.result()
		w.is.NoError(err)
		if _, err := two.result(); err != nil {
			w.refused(err, registry.CodeGone)
		}
		w.settled()
		w.is.Equal(1, w.gone(agent))
		w.is.Equal(1, work.Discards())
		w.is.Equal(1, w.log.count(work.ID, registry.ChangeRemoved))
	}
}

// disposeSuccessor: the default agent may begin anew while the old one's work
// still resists; whether it may is left open, what happens to it is not.
func disposeSuccessor(w *world) {
	old := w.start(alice(), Script{})
	d := w.disposing(alice(), registry.DefaultAgent)
	d.leave()
	w.settled()
	var successor *Work
	if started, err := w.Start(w.ctx, alice(), w.request(Script{})); err == nil {
		successor = w.jobs.Work(started.Snapshot.ID)
	} else {
		w.refused(err, registry.CodeGone)
	}
	w.pass(time.Minute)
	w.ended(old)
	if successor == nil {
		successor = w.start(alice(), Script{})
	}
	w.is.NotEqual(old.Owner, successor.Owner)
	w.pass(time.Minute)
	w.is.Empty(successor.Cancels())
	w.tale(successor, registry.ChangeRegistered)
	w.is.Equal(1, w.gone(registry.Caller{Session: "alice", Agent: registry.DefaultAgent}))
	successor.Complete("")
	w.notices(successor, 1)
}

func disposeAgainstPurge(w *world) {
	agent := w.open(alice(), 0)
	ended, live := w.start(agent, Script{}), w.start(agent, Script{})
	ended.Complete("")
	w.settled()
	d := w.disposing(alice(), agent.Agent)
	if err := w.Purge(w.ctx, alice(), ended.ID); err != nil {
		w.refused(err, registry.CodeGone)
	}
	live.Settle(registry.Outcome{Status: registry.StatusKilled})
	_, err := d.result()
	w.is.NoError(err)
	w.settled()
	w.is.Equal(1, ended.Discards())
	w.is.Equal(1, w.log.count(ended.ID, registry.ChangeRemoved))
	events := w.log.all()
	w.is.Equal(registry.ChangeOwnerGone, events[len(events)-1].what)
}

// disposeFromListener: a disposal answers when the observers have been told, which
// cannot be while one of them is still about an earlier event. A listener must
// not block, and so must not await the disposal itself.
func disposeFromListener(w *world) {
	agent := w.open(alice(), 0)
	type begun struct {
		*call[struct{}]
		early bool
	}
	disposals := make(chan begun, 1)
	w.OnDone(registry.AllOwners(), func(registry.Notice) {
		d := begun{call: begin(w.ctx, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, w.DisposeAgent(ctx, alice(), agent.Agent)
		})}
		synctest.Wait()
		d.early = d.returned()
		disposals <- d
	})
	ended, live := w.start(agent, Script{}), w.start(agent, Script{Cancel: settlesKilled})
	go ended.Complete("")
	d := <-disposals
	w.is.False(d.early, "the disposal answered before its observers were told")
	_, err := d.result()
	w.is.NoError(err)
	w.tale(ended, registry.ChangeRegistered, registry.ChangeSettled, notice, registry.ChangeRemoved)
	w.ended(live)
}
