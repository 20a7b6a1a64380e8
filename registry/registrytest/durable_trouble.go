package registrytest

import (
	"context"
	"time"

	"afoot/registry"
)

// troubleCases: the journal can't be written.
func troubleCases() []durableCase {
	return []durableCase{
		{name: "a start is refused before its starter", run: troubleStart},
		{name: "a start that can't be written is taken back", run: troubleTakenBack},
		{name: "one that does not end is taken back all the same", options: Options{TeardownTimeout: 8 * time.Second}, run: troubleStuck},
		{name: "one that has ended is taken back", run: troubleEnded},
		{name: "a key of a start that was taken back is free", run: troubleKey},
		{name: "an agent is refused, or taken back", run: troubleAgent},
		{name: "reads, kills, lists and listeners go on", run: troubleGoesOn},
		{name: "when it is over everything is written", run: troubleHeals},
	}
}

func (w *durableWorld) insufficient(err error) {
	w.t.Helper()
	w.refused(err, registry.CodeInsufficientStorage)
	w.is.ErrorContains(err, errBoom.Error())
}

func troubleStart(w *durableWorld) {
	w.journal.Fail(errBoom)
	w.insufficient(w.tryStart(alice()))
	w.is.Zero(w.jobs.Starts(), "the starter ran")
	w.is.Empty(w.ids(alice(), registry.ListOptions{}))
	w.journal.Fail(nil)
	w.same(alice(), w.request(Script{}), "job-1", false)
}

// failsAt begins a start that meets the trouble when it is to be written.
func (w *durableWorld) failsAt(r registry.StartRequest) (*call[registry.Started], *Work) {
	w.t.Helper()
	w.journal.Hold()
	n := w.jobs.Starts()
	c := w.starting(alice(), r)
	w.is.False(c.returned())
	w.journal.Fail(errBoom)
	w.settled()
	return c, w.jobs.works[n]
}

func troubleTakenBack(w *durableWorld) {
	c, work := w.failsAt(w.request(Script{}))
	w.is.False(c.returned(), "the work still lives")
	w.is.Len(work.Cancels(), 1)
	w.is.Zero(work.Discards())
	work.Settle(registry.Outcome{Status: registry.StatusKilled})
	_, err := c.result()
	w.insufficient(err)
	w.is.Equal(1, work.Discards())
	w.codes(registry.CodeGone, work.ID)
	w.journal.Fail(nil)
	w.notices(work, 0)
	w.journal.Release()
	w = w.die(0)
	w.codes(registry.CodeGone, work.ID)
}

func troubleStuck(w *durableWorld) {
	c, work := w.failsAt(w.request(Script{}))
	w.pass(9 * time.Second)
	w.is.True(c.returned())
	_, err := c.result()
	w.insufficient(err)
	w.is.Equal(1, work.Discards())
	w.codes(registry.CodeGone, work.ID)
}

func troubleEnded(w *durableWorld) {
	c, work := w.failsAt(w.request(Script{Start: func(_ context.Context, work *Work) error {
		work.Complete("")
		return nil
	}}))
	_, err := c.result()
	w.insufficient(err)
	w.is.Equal(1, work.Discards())
	w.codes(registry.CodeGone, work.ID)
}

func troubleKey(w *durableWorld) {
	r := w.keyed("k", 1, Script{Cancel: settlesKilled})
	c, _ := w.failsAt(r)
	_, err := c.result()
	w.insufficient(err)
	w.journal.Fail(nil)
	w.journal.Release()
	w = w.die(0)
	w.same(alice(), r, "job-2", false)
}

func troubleAgent(w *durableWorld) {
	w.journal.Fail(errBoom)
	_, err := w.OpenAgent(w.ctx, alice(), registry.AgentOptions{})
	w.insufficient(err)
	w.journal.Fail(nil)
	w.journal.Hold()
	c := begin(w.ctx, func(ctx context.Context) (registry.Agent, error) {
		return w.OpenAgent(ctx, alice(), registry.AgentOptions{})
	})
	w.settled()
	w.journal.Fail(errBoom)
	w.settled()
	_, err = c.result()
	w.insufficient(err)
	w.is.Empty(w.agents(alice()))
	w.journal.Fail(nil)
	w.journal.Release()
	w.is.Equal("agent-2", w.open(alice(), 0).Agent)
}

// troubled is what goes on while nothing can be written.
func (w *durableWorld) troubled() (read, killed *Work) {
	w.t.Helper()
	read, killed = w.start(alice(), Script{}), w.start(alice(), Script{})
	agent := w.open(alice(), 0)
	w.journal.Fail(errBoom)
	before := time.Now()
	read.Output.Append("abc")
	d := w.promised(read, registry.ReadOptions{})
	w.is.Equal("abc", d.Text)
	w.is.NoError(d.Confirm())
	_, s := w.kill(killed, "")
	w.is.Equal(registry.StatusStopping, s.Status)
	killed.Settle(registry.Outcome{Status: registry.StatusKilled, Detail: "signal: SIGTERM"})
	w.is.Len(w.ids(alice(), registry.ListOptions{}), 2)
	w.is.True(w.get(read).Reported)
	w.is.NoError(w.DisposeAgent(w.ctx, alice(), agent.Agent))
	w.is.Zero(time.Since(before))
	return read, killed
}

func troubleGoesOn(w *durableWorld) {
	read, killed := w.troubled()
	w.tale(read, registry.ChangeRegistered, registry.ChangeSettled, registry.ChangeReported)
	w.tale(killed, registry.ChangeRegistered, registry.ChangeStopping, registry.ChangeSettled)
}

func troubleHeals(w *durableWorld) {
	read, killed := w.troubled()
	w.journal.Fail(nil)
	w = w.told(read, killed)
	w.is.Equal("signal: SIGTERM", w.get(killed).Detail)
	w.is.Empty(w.agents(alice()))
	w.is.Empty(w.take(read).Text)
}
