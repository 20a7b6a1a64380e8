package registrytest

import (
	"context"
	"time"

	"afoot/registry"
)

// closeCases: rule 15.
func closeCases() []testCase {
	bound := Options{TeardownTimeout: 8 * time.Second}
	return []testCase{
		{name: "live work is cancelled and awaited", options: bound, run: closeAwaits},
		{name: "nothing is announced on the way down", options: bound, run: closeSilent},
		{name: "no record is removed and no end it made is reported", options: bound, run: closeKeeps},
		{name: "starts are refused from the moment it is called", options: bound, run: closeRefusesStarts},
		{name: "blocked waits return with what is", options: bound, run: closeReleasesWaits},
		{name: "waits that begin meanwhile are ended by the work", options: bound, run: closeMeetsWaits},
		{name: "closing again is nothing", options: bound, run: closeAgain},
		{name: "the closing goes on when its caller leaves", options: bound, run: closeCallerLeaves},
		{name: "a start in flight is awaited and its work cancelled", options: bound, run: closeAgainstStart},
		{name: "a start that returns late is cancelled all the same", options: bound, run: closeAgainstLateStart},
		{name: "a start in the instant of the closing", run: closeSameInstant},
		{name: "answers on their way announce nothing any more", options: bound, run: closeHeld},
		{name: "no lease runs out after the end", options: bound, run: closeLeases},
		{name: "a disposal that goes on is awaited", options: bound, run: closeDisposal},
		{name: "an empty service closes at once", run: closeEmpty},
	}
}

func (w *world) closing() *call[struct{}] {
	c := begin(w.ctx, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, w.Close(ctx)
	})
	w.settled()
	return c
}

func closeAwaits(w *world) {
	works := []*Work{w.start(alice(), Script{}), w.start(bob(), Script{}), w.start(nobody(), Script{})}
	c := w.closing()
	for _, work := range works {
		w.is.Len(work.Cancels(), 1)
		w.is.False(c.returned())
		w.pass(time.Second)
		work.Settle(registry.Outcome{Status: registry.StatusKilled})
		w.settled()
	}
	w.is.True(c.returned())
	_, err := c.result()
	w.is.NoError(err)
}

func closeSilent(w *world) {
	work := w.start(alice(), Script{})
	quick := w.start(alice(), Script{Cancel: settlesKilled})
	late := w.start(alice(), Script{Cancel: refuses})
	c := w.closing()
	work.Complete("")
	_, err := c.result()
	w.is.NoError(err)
	events := w.log.all()
	late.Complete("")
	w.pass(time.Hour)
	for _, work := range []*Work{work, quick, late} {
		w.notices(work, 0)
	}
	w.is.Equal(events, w.log.all(), "a listener was called after the end")
}

func closeKeeps(w *world) {
	ended := w.start(alice(), Script{})
	ended.Output.Append("abc")
	ended.Complete("exit code: 0")
	live := w.start(alice(), Script{})
	c := w.closing()
	live.Output.Append("last words")
	live.Settle(registry.Outcome{Status: registry.StatusKilled, Detail: "signal: SIGTERM"})
	_, err := c.result()
	w.is.NoError(err)
	w.is.Equal([]registry.ID{ended.ID, live.ID}, w.ids(alice(), registry.ListOptions{}))
	s := w.get(live)
	w.is.Equal(registry.StatusKilled, s.Status)
	w.is.Equal(registry.DetailShutdown, s.Detail)
	w.is.False(s.Reported, "its owner is to be told after the next start")
	w.is.False(s.FinishedAt.IsZero())
	w.is.Equal("exit code: 0", w.get(ended).Detail)
	w.is.Zero(ended.Discards())
	w.is.Zero(live.Discards())
	w.is.Equal("last words", w.look(live, 0, registry.LookOptions{}).Text)
}

func closeRefusesStarts(w *world) {
	work := w.start(alice(), Script{})
	c := w.closing()
	for _, caller := range []registry.Caller{alice(), nobody()} {
		w.refused(w.tryStart(caller), registry.CodeUnavailable)
	}
	work.Settle(registry.Outcome{Status: registry.StatusKilled})
	_, err := c.result()
	w.is.NoError(err)
	w.refused(w.tryStart(alice()), registry.CodeUnavailable)
	w.is.Equal(1, w.jobs.Starts(), "the starter ran")
}

func closeReleasesWaits(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("so far")
	wait := w.reading(work, registry.ReadOptions{Wait: time.Hour})
	look := w.looking(work, 6, time.Hour)
	c := w.closing()
	w.is.False(c.returned())
	w.is.True(wait.returned(), "the wait outlasts the service")
	w.is.True(look.returned(), "the look outlasts the service")
	d, err := wait.result()
	w.is.NoError(err)
	w.is.Equal("so far", d.Text)
	w.is.False(d.Snapshot.Status.Terminal())
	w.is.False(d.EOF)
	d.Abandon()
	r, err := look.result()
	w.is.NoError(err)
	w.is.False(r.EOF)
}

// closeMeetsWaits has who was told that the work lives ask again.
func closeMeetsWaits(w *world) {
	work := w.start(alice(), Script{})
	c := w.closing()
	wait := w.reading(work, registry.ReadOptions{Wait: time.Hour})
	look := w.looking(work, 0, time.Hour)
	w.is.False(wait.returned(), "a wait that is repeated spins")
	w.is.False(look.returned(), "a look that is repeated spins")
	work.Settle(registry.Outcome{Status: registry.StatusKilled})
	_, err := c.result()
	w.is.NoError(err)
	d, err := wait.result()
	w.is.NoError(err)
	w.is.Equal(registry.DetailShutdown, d.Snapshot.Detail)
	w.is.True(d.EOF)
	d.Abandon()
	r, err := look.result()
	w.is.NoError(err)
	w.is.True(r.EOF)
}

func closeAgain(w *world) {
	work := w.start(alice(), Script{})
	one, two := w.closing(), w.closing()
	w.is.False(one.returned())
	w.is.False(two.returned(), "the work has not ended")
	work.Settle(registry.Outcome{Status: registry.StatusKilled})
	for _, c := range []*call[struct{}]{one, two, w.closing()} {
		_, err := c.result()
		w.is.NoError(err)
	}
}

func closeCallerLeaves(w *world) {
	work := w.start(alice(), Script{})
	c := w.closing()
	c.leave()
	w.settled()
	w.is.True(c.returned())
	_, err := c.result()
	w.is.ErrorIs(err, context.Canceled)
	w.refused(w.tryStart(alice()), registry.CodeUnavailable)
	again := w.closing()
	w.is.False(again.returned())
	w.pass(9 * time.Second)
	w.is.True(again.returned())
	_, err = again.result()
	w.is.NoError(err)
	w.forced(w.get(work))
}

func closeAgainstStart(w *world) {
	a := w.attempt(alice())
	c := w.closing()
	w.pass(time.Second)
	w.is.False(c.returned(), "work that is being started may be alive")
	a.verdict <- nil
	_, _ = a.result()
	w.settled()
	work := w.jobs.Work("job-1")
	w.is.NotEmpty(work.Cancels())
	work.Settle(registry.Outcome{Status: registry.StatusKilled})
	_, err := c.result()
	w.is.NoError(err)
	w.notices(work, 0)
}

// closeAgainstLateStart: the starter returns while the closing waits for other
// work, or when it is over; nobody but the service knows of what it started.
func closeAgainstLateStart(w *world) {
	stuck := w.start(alice(), Script{})
	during, after := w.attempt(bob()), w.attempt(bob())
	c := w.closing()
	w.pass(10 * time.Second)
	during.verdict <- nil
	w.pass(time.Minute)
	w.is.True(c.returned())
	after.verdict <- nil
	w.settled()
	for _, a := range []*attempt{during, after} {
		w.is.True(a.returned())
	}
	w.is.NotEmpty(stuck.Cancels())
	for _, work := range w.jobs.works {
		w.is.NotEmpty(work.Cancels(), "work that ran was forgotten")
	}
}

// closeSameInstant has work on both sides of the closing: all of it is cancelled.
func closeSameInstant(w *world) {
	var starts []*call[registry.Started]
	for i := range 8 {
		c := registry.Caller{Session: "s" + string(rune('a'+i))}
		starts = append(starts, begin(w.ctx, func(ctx context.Context) (registry.Started, error) {
			return w.Start(ctx, c, w.request(Script{Cancel: settlesKilled}))
		}))
	}
	w.is.NoError(w.Close(w.ctx))
	w.settled()
	for _, c := range starts {
		if _, err := c.result(); err != nil {
			w.refused(err, registry.CodeUnavailable)
		}
	}
	for _, work := range w.jobs.works {
		w.is.NotEmpty(work.Cancels(), "work that ran was forgotten")
		w.notices(work, 0)
	}
}

func closeHeld(w *world) {
	work := w.start(alice(), Script{})
	d := w.promised(work, registry.ReadOptions{})
	w.is.NoError(w.Close(w.ctx))
	d.Abandon()
	w.pass(time.Hour)
	w.notices(work, 0)
	w.is.False(w.get(work).Reported)
}

func closeLeases(w *world) {
	agent := w.open(alice(), time.Second)
	work := w.start(agent, Script{})
	work.Complete("")
	w.settled()
	w.is.NoError(w.Close(w.ctx))
	events := w.log.all()
	w.pass(time.Hour)
	w.is.Equal(events, w.log.all())
	w.is.Equal(registry.StatusCompleted, w.get(work).Status)
}

func closeDisposal(w *world) {
	agent := w.open(alice(), 0)
	work := w.start(agent, Script{})
	d := w.disposing(alice(), agent.Agent)
	c := w.closing()
	w.pass(time.Second)
	w.is.False(c.returned(), "work was still alive")
	work.Settle(registry.Outcome{Status: registry.StatusKilled})
	_, err := c.result()
	w.is.NoError(err)
	_, err = w.Get(w.ctx, alice(), work.ID)
	w.refused(err, registry.CodeGone)
	w.settled()
	w.is.True(d.returned())
	w.notices(work, 0)
}

func closeEmpty(w *world) {
	before := time.Now()
	w.is.NoError(w.Close(w.ctx))
	w.is.Zero(time.Since(before))
	w.is.Empty(w.ids(alice(), registry.ListOptions{}))
}
