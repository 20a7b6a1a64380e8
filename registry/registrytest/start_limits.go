package registrytest

import (
	"context"
	"errors"

	"afoot/registry"
)

// startLimitCases: rule 2, and the bound of the whole daemon.
func startLimitCases() []testCase {
	three := Options{MaxTasksPerOwner: 3}
	one := Options{MaxTasksPerOwner: 1}
	return []testCase{
		{name: "ten tasks per owner by default", run: tenByDefault},
		{name: "a full bucket refuses before starter and id", options: three, run: fullBucket},
		{name: "room returns at once after each outcome", options: one, run: roomReturns},
		{name: "a stopping task keeps its place", options: one, run: stoppingKeepsPlace},
		{name: "a start in flight keeps a place", options: one, run: inFlightKeepsPlace},
		{name: "a failed starter gives its place back", options: one, run: failedGivesBack},
		{name: "buckets are per session", options: one, run: bucketPerSession},
		{name: "buckets are per agent", options: one, run: bucketPerAgent},
		{name: "unowned work has one bucket for all", options: one, run: unownedBucket},
		{name: "a successor of the same name has a bucket of its own", options: one, run: successorBucket},
		{name: "the daemon's own limit counts all owners", options: Options{MaxTasks: 2}, run: daemonLimit},
	}
}

func (w *world) full(err error, variable string) {
	w.t.Helper()
	w.refused(err, registry.CodeLimitReached)
	var e *registry.Error
	w.is.ErrorAs(err, &e)
	w.is.Equal(variable, e.Limit, "the error names the limit")
}

const (
	ownerLimit  = "AFOOT_MAX_TASKS_PER_OWNER"
	taskLimit   = "AFOOT_MAX_TASKS"
	agentsLimit = "AFOOT_MAX_AGENTS_PER_SESSION"
)

func tenByDefault(w *world) {
	for range 10 {
		w.start(alice(), Script{})
	}
	w.full(w.tryStart(alice()), ownerLimit)
}

func fullBucket(w *world) {
	works := []*Work{w.start(alice(), Script{}), w.start(alice(), Script{}), w.start(alice(), Script{})}
	for range 3 {
		w.full(w.tryStart(alice()), ownerLimit)
	}
	w.is.Equal(3, w.jobs.Starts(), "the starter ran")
	works[1].Complete("")
	w.settled()
	w.is.Equal(3, w.jobs.Starts(), "a refused start was queued")
	w.is.Equal(registry.ID("job-4"), w.start(alice(), Script{}).ID, "an id was burnt")
	for _, work := range []*Work{works[0], works[2]} {
		w.is.Equal(registry.StatusRunning, w.get(work).Status, "work was pre-empted")
	}
}

func roomReturns(w *world) {
	for _, status := range []registry.Status{
		registry.StatusCompleted, registry.StatusKilled, registry.StatusFailed,
	} {
		work := w.start(alice(), Script{})
		w.full(w.tryStart(alice()), ownerLimit)
		work.Settle(registry.Outcome{Status: status})
		// At once: the end is not even announced yet.
		w.start(alice(), Script{}).Complete("")
	}
}

func stoppingKeepsPlace(w *world) {
	work := w.start(alice(), Script{})
	_, _, err := w.Kill(w.ctx, alice(), work.ID, "")
	w.is.NoError(err)
	w.full(w.tryStart(alice()), ownerLimit)
	work.Settle(registry.Outcome{Status: registry.StatusKilled})
	w.is.NoError(w.tryStart(alice()))
}

func inFlightKeepsPlace(w *world) {
	started := w.gate()
	c := begin(w.ctx, func(ctx context.Context) (registry.Started, error) {
		return w.Start(ctx, alice(), w.request(Script{
			Start: func(context.Context, *Work) error { started.pass(); return nil },
		}))
	})
	w.settled()
	w.full(w.tryStart(alice()), ownerLimit)
	w.is.Equal(1, w.jobs.Starts())
	started.open()
	_, err := c.result()
	w.is.NoError(err)
	w.full(w.tryStart(alice()), ownerLimit)
}

func failedGivesBack(w *world) {
	for range 3 {
		_, err := w.Start(w.ctx, alice(), w.request(Script{
			Start: func(context.Context, *Work) error { return errors.New("no process") },
		}))
		w.is.Error(err)
		w.is.NotEqual(registry.CodeLimitReached, registry.CodeOf(err))
	}
	w.is.NoError(w.tryStart(alice()))
}

func bucketPerSession(w *world) {
	w.start(alice(), Script{})
	w.is.NoError(w.tryStart(bob()))
	w.is.NoError(w.tryStart(nobody()))
	w.full(w.tryStart(alice()), ownerLimit)
}

func bucketPerAgent(w *world) {
	w.start(alice(), Script{})
	first, second := w.open(alice(), 0), w.open(alice(), 0)
	w.is.NoError(w.tryStart(first))
	w.is.NoError(w.tryStart(second))
	w.full(w.tryStart(first), ownerLimit)
	byName := registry.Caller{Session: "alice", Agent: registry.DefaultAgent}
	w.full(w.tryStart(byName), ownerLimit)
}

func unownedBucket(w *world) {
	work := w.start(nobody(), Script{})
	w.full(w.tryStart(nobody()), ownerLimit)
	work.Complete("")
	w.is.NoError(w.tryStart(nobody()))
}

func successorBucket(w *world) {
	old := w.start(alice(), Script{Cancel: settlesKilled})
	w.is.NoError(w.DisposeAgent(w.ctx, alice(), registry.DefaultAgent))
	successor := w.start(alice(), Script{})
	w.is.NotEqual(old.Owner, successor.Owner, "successive agents of one name are two owners")
	w.is.Equal(old.Owner.Agent, successor.Owner.Agent)
	w.full(w.tryStart(alice()), ownerLimit)
}

func daemonLimit(w *world) {
	first := w.start(alice(), Script{})
	w.start(nobody(), Script{})
	w.full(w.tryStart(bob()), taskLimit)
	w.is.Equal(2, w.jobs.Starts())
	first.Complete("")
	w.is.Equal(registry.ID("job-3"), w.start(bob(), Script{}).ID)
	w.full(w.tryStart(alice()), taskLimit)
}
