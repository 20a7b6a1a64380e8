package registrytest

import (
	"context"
	"time"

	"afoot/registry"
)

// shutdownCases: rule 15, and what comes after it.
func shutdownCases() []durableCase {
	bound := Options{TeardownTimeout: 8 * time.Second}
	return []durableCase{
		{name: "stopped work is told after the next start, once", options: bound, run: shutdownTold},
		{name: "a kill before it stays reported", options: bound, run: shutdownKilled},
		{name: "work that did not end in time is told too", options: bound, run: shutdownForced},
		{name: "ends that were due are told after the next start", options: bound, run: shutdownDue},
		{name: "work whose start was under way is told too", options: bound, run: shutdownStarting},
		{name: "also if a call would have waited for it", options: bound, run: shutdownStartingForeground},
		{name: "an end that was reported before it stands", options: bound, run: shutdownEnded},
		{name: "also if nobody can say what is kept of it", options: bound, run: shutdownEndedStuck},
		{name: "so does one that comes before work is asked to end", options: bound, run: shutdownEnding},
		{name: "agents and leases go on", options: bound, run: shutdownAgents},
		{name: "it returns when all is written", options: bound, run: shutdownWritten},
		{name: "it returns while nothing can be written", options: bound, run: shutdownUnwritten},
		{name: "before it was loaded it is nothing", run: shutdownUnloaded},
	}
}

func shutdownTold(w *durableWorld) {
	work := w.start(alice(), Script{Cancel: settlesKilled})
	work.Output.Append("last words")
	w = w.reopen()
	s := w.get(work)
	w.is.Equal(registry.StatusKilled, s.Status)
	w.is.Equal(registry.DetailShutdown, s.Detail)
	w.is.False(s.Reported)
	w.tale(work, notice)
	w.is.Equal("last words", w.look(work, 0, registry.LookOptions{}).Text)
	w.journal.Write(100)
	w = w.reopen()
	w.tale(work)
}

func shutdownKilled(w *durableWorld) {
	work := w.start(alice(), Script{})
	w.kill(work, "")
	c := w.closing()
	work.Settle(registry.Outcome{Status: registry.StatusKilled})
	_, err := c.result()
	w.is.NoError(err)
	w = w.reopen()
	w.is.True(w.get(work).Reported)
	w.tale(work)
}

func shutdownForced(w *durableWorld) {
	work := w.start(alice(), Script{})
	w = w.reopen()
	w.forced(w.get(work))
	w.tale(work, notice)
}

func shutdownDue(w *durableWorld) {
	held, queued := w.start(alice(), Script{}), w.start(alice(), Script{})
	w.promised(held, registry.ReadOptions{})
	w.journal.Hold()
	go queued.Complete("")
	w.settled()
	c := w.closing()
	w.is.False(c.returned())
	w.journal.Release()
	_, err := c.result()
	w.is.NoError(err)
	w.notices(queued, 0)
	w = w.reopen()
	w.tale(held, notice)
	w.tale(queued, notice)
}

func shutdownAgents(w *durableWorld) {
	agent := w.open(alice(), time.Minute)
	w = w.reopen()
	w.alive(agent, true)
	w.pass(time.Hour)
	w.alive(agent, false)
}

func shutdownWritten(w *durableWorld) {
	work := w.start(alice(), Script{Cancel: settlesKilled})
	w.journal.Hold()
	c := w.closing()
	w.pass(time.Minute)
	w.is.False(c.returned())
	w.journal.Release()
	_, err := c.result()
	w.is.NoError(err)
	w.is.Zero(w.journal.InLine())
	w.is.Equal(registry.DetailShutdown, w.journal.Stored().Tasks[0].Snapshot.Detail)
	w.notices(work, 0)
}

func shutdownUnwritten(w *durableWorld) {
	work := w.start(alice(), Script{Cancel: settlesKilled})
	w.journal.Fail(errBoom)
	w.is.NoError(w.Close(w.ctx))
	w.is.Equal(registry.DetailShutdown, w.get(work).Detail)
	w = w.die(0)
	w.is.Equal(registry.DetailLost, w.get(work).Detail)
}

func shutdownUnloaded(w *durableWorld) {
	s := w.factory(w.t, w.c.options, NewJournal())
	w.is.NoError(s.Close(w.ctx))
	w.is.Error(s.Load(w.ctx))
}

// shutdownStart has a shutdown begin while a starter runs.
func (w *durableWorld) shutdownStart(foreground bool) {
	g := w.gate()
	r := w.request(Script{Cancel: settlesKilled, Start: func(context.Context, *Work) error { g.pass(); return nil }})
	r.Foreground = foreground
	starting := w.starting(alice(), r)
	closing := w.closing()
	g.open()
	_, err := closing.result()
	w.is.NoError(err)
	started, err := starting.result()
	w.is.NoError(err)
	w.is.False(started.Snapshot.Foreground)
	w = w.reopen()
	work := w.jobs.Work(started.Snapshot.ID)
	s := w.get(work)
	w.is.Equal(registry.StatusKilled, s.Status)
	w.is.Equal(registry.DetailShutdown, s.Detail)
	w.is.False(s.Reported)
	w.tale(work, notice)
}

func shutdownStarting(w *durableWorld)           { w.shutdownStart(false) }
func shutdownStartingForeground(w *durableWorld) { w.shutdownStart(true) }

// ending is work that has ended, of which is still being asked what is kept.
func (w *durableWorld) ending(verdict error) (*Work, *gate) {
	g := w.gate()
	work := w.start(alice(), Script{
		Handle: func(work *Work) error {
			if work.over() {
				g.pass()
			}
			return nil
		},
		Cancel: func(*Work, string) error { return verdict },
	})
	go work.Complete("exit code: 3")
	w.settled()
	return work, g
}

func shutdownEnded(w *durableWorld) {
	for _, verdict := range []error{nil, registry.ErrEnded} {
		work, g := w.ending(verdict)
		c := w.closing()
		g.open()
		_, err := c.result()
		w.is.NoError(err)
		w = w.reopen()
		w.is.Equal(registry.StatusCompleted, w.get(work).Status)
		w.is.Equal("exit code: 3", w.get(work).Detail)
		w.tale(work, notice)
	}
}

func shutdownEndedStuck(w *durableWorld) {
	work, g := w.ending(nil)
	w.is.NoError(w.Close(w.ctx))
	w.is.Equal("exit code: 3", w.get(work).Detail)
	g.open()
	w.settled()
	w = w.die(100)
	w.is.Equal("exit code: 3", w.get(work).Detail)
	w.tale(work, notice)
}

func shutdownEnding(w *durableWorld) {
	work := w.start(alice(), Script{Cancel: func(work *Work, _ string) error {
		work.Complete("exit code: 3")
		return registry.ErrEnded
	}})
	w = w.reopen()
	w.is.Equal("exit code: 3", w.get(work).Detail)
	w.tale(work, notice)
}
