package registrytest

import (
	"context"
	"errors"

	"afoot/registry"
)

// startIDCases: ids come from one counter per kind and are neither burnt nor
// used twice.
func startIDCases() []testCase {
	return []testCase{
		{name: "each kind counts for itself", run: perKind},
		{name: "all sessions share the counter of a kind", run: sharedCounter},
		{name: "an id is never used again", run: neverAgain},
		{name: "a failed starter leaves nothing", run: failedStarter},
		{name: "a failed starter's number goes to the next start while others are in flight", run: failedInFlight},
		{name: "a failed starter below published ids fills its gap", run: failedBelow},
		{name: "settling inside a failed starter leaves nothing", run: settledThenFailed},
		{name: "an id is unknown until its task is published", run: unpublished},
		{name: "ids that never were are unknown, removed ones gone", run: goneOrUnknown},
	}
}

func perKind(w *world) {
	w.AttachProducer("other-kind", w.jobs)
	for _, want := range []registry.ID{"job-1", "other-kind-1", "job-2", "other-kind-2"} {
		kind, _, _ := want.Parse()
		started, err := w.Start(w.ctx, alice(), registry.StartRequest{Spec: registry.Spec{Kind: kind}})
		w.is.NoError(err)
		w.is.Equal(want, started.Snapshot.ID)
		w.is.Equal(kind, started.Snapshot.Kind)
	}
}

func sharedCounter(w *world) {
	w.is.Equal(registry.ID("job-1"), w.start(alice(), Script{}).ID)
	w.is.Equal(registry.ID("job-2"), w.start(bob(), Script{}).ID)
	w.is.Equal(registry.ID("job-3"), w.start(nobody(), Script{}).ID)
}

func neverAgain(w *world) {
	for _, want := range []registry.ID{"job-1", "job-2", "job-3"} {
		work := w.start(alice(), Script{})
		w.is.Equal(want, work.ID)
		work.Complete("")
		w.is.NoError(w.Purge(w.ctx, alice(), work.ID))
	}
}

func failedStarter(w *world) {
	boom := registry.Errorf(registry.CodeUnavailable, "out of processes")
	_, err := w.Start(w.ctx, alice(), w.request(Script{
		Start: func(context.Context, *Work) error { return boom },
	}))
	w.is.ErrorIs(err, boom)
	w.settled()
	w.is.Empty(w.log.all())
	w.is.Empty(w.ids(alice(), registry.ListOptions{}))
	_, err = w.Get(w.ctx, alice(), "job-1")
	w.refused(err, registry.CodeUnknownTask)
	w.is.Equal(registry.ID("job-1"), w.start(alice(), Script{}).ID)
}

// attempt is a start whose starter waits to be told how to end.
type attempt struct {
	*call[registry.Started]
	verdict chan error
}

func (w *world) attempt(c registry.Caller) *attempt {
	a := &attempt{verdict: make(chan error, 1)}
	over := w.gate()
	a.call = begin(w.ctx, func(ctx context.Context) (registry.Started, error) {
		return w.Start(ctx, c, w.request(Script{Start: func(context.Context, *Work) error {
			select {
			case err := <-a.verdict:
				return err
			case <-over.opened:
				return errors.New("the case is over")
			}
		}}))
	})
	w.settled()
	return a
}

// end lets the starter return and gives the id under which it was published.
func (w *world) end(a *attempt, err error) registry.ID {
	w.t.Helper()
	a.verdict <- err
	started, got := a.result()
	if err == nil {
		w.is.NoError(got)
	} else {
		w.is.Error(got)
	}
	w.settled()
	return started.Snapshot.ID
}

func failedInFlight(w *world) {
	boom := errors.New("boom")
	first, second, third := w.attempt(alice()), w.attempt(alice()), w.attempt(alice())
	w.end(first, boom)
	w.is.Equal(registry.ID("job-1"), w.start(alice(), Script{}).ID)
	w.is.Equal(registry.ID("job-2"), w.end(second, nil))
	w.end(third, boom)
	w.is.Equal(registry.ID("job-3"), w.start(alice(), Script{}).ID)
	w.is.Equal(registry.ID("job-4"), w.start(alice(), Script{}).ID)
	w.is.Len(w.ids(alice(), registry.ListOptions{}), 4)
}

func failedBelow(w *world) {
	boom := errors.New("boom")
	first, second := w.attempt(alice()), w.attempt(alice())
	w.is.Equal(registry.ID("job-2"), w.end(second, nil))
	w.end(first, boom)
	w.is.Equal(registry.ID("job-1"), w.start(alice(), Script{}).ID)
	w.is.Equal(registry.ID("job-3"), w.start(alice(), Script{}).ID)
	w.is.Equal([]registry.ID{"job-2", "job-1", "job-3"}, w.ids(alice(), registry.ListOptions{}),
		"registration order, not the order of numbers")
}

func settledThenFailed(w *world) {
	var failed *Work
	_, err := w.Start(w.ctx, alice(), w.request(Script{
		Start: func(_ context.Context, work *Work) error {
			failed = work
			work.Complete("too early")
			return errors.New("boom")
		},
	}))
	w.is.Error(err)
	failed.Complete("too late")
	w.settled()
	w.is.Empty(w.log.all())

	// The number lives on in another task, which the failed one must not settle.
	next := w.start(alice(), Script{})
	w.is.Equal(failed.ID, next.ID)
	failed.Complete("far too late")
	w.settled()
	w.is.Equal(registry.StatusRunning, w.get(next).Status)
}

func unpublished(w *world) {
	a := w.attempt(alice())
	_, err := w.Get(w.ctx, alice(), "job-1")
	w.refused(err, registry.CodeUnknownTask)
	_, _, err = w.Kill(w.ctx, alice(), "job-1", "")
	w.refused(err, registry.CodeUnknownTask)
	w.is.Empty(w.ids(alice(), registry.ListOptions{}))
	w.is.Empty(w.log.all())
	w.is.Equal(registry.ID("job-1"), w.end(a, nil))
	_, err = w.Get(w.ctx, alice(), "job-1")
	w.is.NoError(err)
}

func goneOrUnknown(w *world) {
	works := []*Work{w.start(alice(), Script{}), w.start(alice(), Script{}), w.start(alice(), Script{})}
	for _, work := range works[1:] {
		work.Complete("")
		w.is.NoError(w.Purge(w.ctx, alice(), work.ID))
	}
	w.codes(registry.CodeGone, "job-2", "job-3")
	w.codes(registry.CodeUnknownTask, "job-0", "job-4", "other-1", "job", "job-", "", "-2", "2",
		"job-02", "job-+2", "job--2", "job-2 ", "JOB-2", "job-2x", "job-0x2", "job-18446744073709551615",
		"job-18446744073709551616", "job-18446744073709551618")
}

// codes asserts how a look at some ids is refused, whoever looks.
func (w *world) codes(code registry.Code, ids ...registry.ID) {
	w.t.Helper()
	for _, id := range ids {
		for _, c := range []registry.Caller{alice(), bob(), nobody()} {
			_, err := w.Get(w.ctx, c, id)
			w.is.Equal(code, registry.CodeOf(err), "id %q", id)
		}
	}
}
