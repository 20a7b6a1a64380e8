package registrytest

import (
	"context"
	"time"

	"afoot/registry"
)

// idempotencyCases: rule 19, in memory.
func idempotencyCases() []testCase {
	return []testCase{
		{name: "a repeated start answers with the first one's task", run: keyReplays},
		{name: "a replay shows the task as it is now", run: keyShowsNow},
		{name: "without a key every start is a new one", run: keyNone},
		{name: "another fingerprint is a mismatch", run: keyMismatch},
		{name: "twins wait for the first", run: keyTwins},
		{name: "another fingerprint while the first is in flight is a mismatch", run: keyTwinMismatch},
		{name: "a twin of a failed start makes its own attempt", run: keyTwinOfFailed},
		{name: "a twin may leave", run: keyTwinLeaves},
		{name: "refusals are not remembered", options: Options{MaxTasksPerOwner: 1}, run: keyRefusals},
		{name: "a replay needs no room", options: Options{MaxTasksPerOwner: 1}, run: keyFull},
		{name: "sessions do not share keys", run: keyPerSession},
		{name: "without a session the subject keeps keys apart", run: keyPerSubject},
		{name: "within a session the subject does not matter", run: keySubjectInSession},
		{name: "a key is remembered for 24 h", run: keyRemembered},
		{name: "many twins start once", run: keyManyTwins},
	}
}

// keyed asks for work under a key. The fingerprint is told by one byte.
func (w *world) keyed(key string, body byte, s Script) registry.StartRequest {
	r := w.request(s)
	r.IdempotencyKey, r.Fingerprint = key, [32]byte{body}
	return r
}

func (w *world) starting(c registry.Caller, r registry.StartRequest) *call[registry.Started] {
	s := begin(w.ctx, func(ctx context.Context) (registry.Started, error) { return w.Start(ctx, c, r) })
	w.settled()
	return s
}

// same asserts that a start made a new task, or replayed a former one.
func (w *world) same(c registry.Caller, r registry.StartRequest, id registry.ID, replayed bool) {
	w.t.Helper()
	started, err := w.Start(w.ctx, c, r)
	w.is.NoError(err)
	w.is.Equal(id, started.Snapshot.ID)
	w.is.Equal(replayed, started.Replayed)
}

func keyReplays(w *world) {
	r := w.keyed("k", 1, Script{})
	w.same(alice(), r, "job-1", false)
	w.same(alice(), r, "job-1", true)
	w.same(alice(), r, "job-1", true)
	w.is.Equal(1, w.jobs.Starts())
	w.same(alice(), w.keyed("other", 1, Script{}), "job-2", false)
	w.tale(w.jobs.Work("job-1"), registry.ChangeRegistered)
}

func keyShowsNow(w *world) {
	r := w.keyed("k", 1, Script{})
	w.same(alice(), r, "job-1", false)
	w.jobs.Work("job-1").Complete("exit code: 0")
	started, err := w.Start(w.ctx, alice(), r)
	w.is.NoError(err)
	w.is.Equal(w.get(w.jobs.Work("job-1")), started.Snapshot)
	w.notices(w.jobs.Work("job-1"), 1)
}

func keyNone(w *world) {
	r := w.keyed("", 1, Script{})
	w.same(alice(), r, "job-1", false)
	w.same(alice(), r, "job-2", false)
}

func keyMismatch(w *world) {
	w.same(alice(), w.keyed("k", 1, Script{}), "job-1", false)
	_, err := w.Start(w.ctx, alice(), w.keyed("k", 2, Script{}))
	w.refused(err, registry.CodeIdempotencyMismatch)
	w.is.Equal(1, w.jobs.Starts())
	w.same(alice(), w.keyed("k", 1, Script{}), "job-1", true)
}

func keyTwins(w *world) {
	running := w.gate()
	r := w.keyed("k", 1, Script{Start: func(context.Context, *Work) error { running.pass(); return nil }})
	first, twin := w.starting(alice(), r), w.starting(alice(), r)
	w.pass(time.Second)
	w.is.False(twin.returned())
	w.is.Equal(1, w.jobs.Starts())
	running.open()
	one, err := first.result()
	w.is.NoError(err)
	two, err := twin.result()
	w.is.NoError(err)
	w.is.False(one.Replayed)
	w.is.True(two.Replayed)
	w.is.Equal(one.Snapshot.ID, two.Snapshot.ID)
	w.is.Equal(1, w.jobs.Starts())
}

func keyTwinMismatch(w *world) {
	running := w.gate()
	first := w.starting(alice(), w.keyed("k", 1, Script{
		Start: func(context.Context, *Work) error { running.pass(); return nil },
	}))
	other := w.starting(alice(), w.keyed("k", 2, Script{}))
	running.open()
	_, err := first.result()
	w.is.NoError(err)
	_, err = other.result()
	w.refused(err, registry.CodeIdempotencyMismatch)
	w.is.Equal(1, w.jobs.Starts())
}

func keyTwinOfFailed(w *world) {
	running := w.gate()
	r := w.keyed("k", 1, Script{Start: func(context.Context, *Work) error {
		if w.jobs.Starts() > 1 {
			return nil
		}
		running.pass()
		return errBoom
	}})
	first, twin := w.starting(alice(), r), w.starting(alice(), r)
	running.open()
	_, err := first.result()
	w.is.ErrorIs(err, errBoom)
	started, err := twin.result()
	w.is.NoError(err, "the first one's refusal was remembered")
	w.is.False(started.Replayed)
	w.same(alice(), r, started.Snapshot.ID, true)
}

func keyTwinLeaves(w *world) {
	running := w.gate()
	r := w.keyed("k", 1, Script{Start: func(context.Context, *Work) error { running.pass(); return nil }})
	first, twin := w.starting(alice(), r), w.starting(alice(), r)
	twin.leave()
	w.settled()
	w.is.True(twin.returned())
	_, err := twin.result()
	w.is.ErrorIs(err, context.Canceled)
	running.open()
	started, err := first.result()
	w.is.NoError(err)
	w.same(alice(), r, started.Snapshot.ID, true)
}

func keyRefusals(w *world) {
	work := w.start(alice(), Script{})
	r := w.keyed("k", 1, Script{})
	_, err := w.Start(w.ctx, alice(), r)
	w.refused(err, registry.CodeLimitReached)
	// Another body may use the key, too: nothing is remembered of a refusal.
	_, err = w.Start(w.ctx, alice(), w.keyed("k", 2, Script{}))
	w.refused(err, registry.CodeLimitReached)
	work.Complete("")
	w.same(alice(), r, "job-2", false)

	failing := w.keyed("f", 1, Script{Prepare: func(context.Context) error {
		return registry.Errorf(registry.CodeInvalid, "no")
	}})
	_, err = w.Start(w.ctx, bob(), failing)
	w.refused(err, registry.CodeInvalid)
	w.same(bob(), w.keyed("f", 2, Script{}), "job-3", false)
}

func keyFull(w *world) {
	r := w.keyed("k", 1, Script{})
	w.same(alice(), r, "job-1", false)
	w.full(w.tryStart(alice()), ownerLimit)
	w.same(alice(), r, "job-1", true)
}

func keyPerSession(w *world) {
	r := w.keyed("k", 1, Script{})
	w.same(alice(), r, "job-1", false)
	w.same(bob(), r, "job-2", false)
	w.same(nobody(), r, "job-3", false)
	w.same(alice(), r, "job-1", true)
	w.same(bob(), r, "job-2", true)
	_, err := w.Start(w.ctx, bob(), w.keyed("k", 2, Script{}))
	w.refused(err, registry.CodeIdempotencyMismatch)
}

func keyPerSubject(w *world) {
	ann, ben := w.keyed("k", 1, Script{}), w.keyed("k", 2, Script{})
	ann.Subject, ben.Subject = "ann", "ben"
	w.same(nobody(), ann, "job-1", false)
	w.same(nobody(), ben, "job-2", false)
	w.same(nobody(), ann, "job-1", true)
	w.same(nobody(), ben, "job-2", true)

	// A subject that is called like a session is somebody else.
	named := w.keyed("k", 3, Script{})
	named.Subject = "alice"
	w.same(nobody(), named, "job-3", false)
	w.same(alice(), w.keyed("k", 4, Script{}), "job-4", false)
}

func keySubjectInSession(w *world) {
	r := w.keyed("k", 1, Script{})
	r.Subject = "ann"
	w.same(alice(), r, "job-1", false)
	r.Subject = "ben"
	w.same(alice(), r, "job-1", true)
}

func keyRemembered(w *world) {
	r := w.keyed("k", 1, Script{})
	w.same(alice(), r, "job-1", false)
	w.pass(24*time.Hour - time.Minute)
	w.same(alice(), r, "job-1", true)

	other := w.keyed("other", 1, Script{})
	w.same(alice(), other, "job-2", false)
	w.pass(24*time.Hour + time.Minute)
	w.same(alice(), other, "job-3", false)
}

func keyManyTwins(w *world) {
	r := w.keyed("k", 1, Script{})
	var twins []*call[registry.Started]
	for range 50 {
		twins = append(twins, begin(w.ctx, func(ctx context.Context) (registry.Started, error) {
			return w.Start(ctx, alice(), r)
		}))
	}
	firsts := 0
	for _, c := range twins {
		started, err := c.result()
		w.is.NoError(err)
		w.is.Equal(registry.ID("job-1"), started.Snapshot.ID)
		if !started.Replayed {
			firsts++
		}
	}
	w.is.Equal(1, firsts)
	w.is.Equal(1, w.jobs.Starts())
}
