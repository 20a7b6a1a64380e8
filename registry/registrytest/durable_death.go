package registrytest

import (
	"time"

	"afoot/registry"
)

// deathCases: the process may die at any instant.
func deathCases() []durableCase {
	return []durableCase{
		{name: "live work has failed, as of the restart", run: deathFails},
		{name: "work that was being stopped has failed too", run: deathStopping},
		{name: "a kill of live work stays reported", run: deathKilled},
		{name: "its output is there to the last byte", run: deathOutput},
		{name: "its end is told once, after its settlement, and never again", run: deathTold},
		{name: "an end that nobody was shown may be lost or not", run: deathUnseenEnd},
		{name: "no time runs backwards", run: deathClock},
		{name: "a start that was not answered may be known", run: deathUnanswered},
		{name: "nothing is served before it is loaded", run: deathNotLoaded},
		{name: "loading again is an error", run: deathLoadedTwice},
		{name: "it takes up no room among live tasks", options: Options{MaxTasksPerOwner: 1, MaxTasks: 1}, run: deathRoom},
		{name: "verbs on it behave as on any ended task", run: deathVerbs},
	}
}

func deathFails(w *durableWorld) {
	work := w.start(alice(), Script{Label: "the label"})
	was := w.get(work)
	time.Sleep(time.Minute)
	w = w.die(0)
	s := w.get(work)
	w.is.Equal(registry.StatusFailed, s.Status)
	w.is.Equal(registry.DetailLost, s.Detail)
	w.is.Equal(time.Now().UTC(), s.FinishedAt)
	w.is.False(s.Reported)
	s.Status, s.Detail, s.FinishedAt = was.Status, was.Detail, was.FinishedAt
	w.is.Equal(was, s, "nothing else of it changed")
	again := w.die(0)
	w.is.Equal(w.get(work), again.get(work))
}

func deathStopping(w *durableWorld) {
	work := w.start(nobody(), Script{})
	w.kill(work, "")
	w = w.die(0)
	s := w.get(work)
	w.is.Equal(registry.StatusFailed, s.Status)
	w.is.Equal(registry.DetailLost, s.Detail)
}

func deathKilled(w *durableWorld) {
	work := w.start(alice(), Script{})
	w.kill(work, "")
	w = w.die(0)
	w.is.True(w.get(work).Reported)
	w.tale(work, registry.ChangeSettled)
	w.is.True(w.heard(work, registry.ChangeSettled).Reported)
}

func deathOutput(w *durableWorld) {
	work := w.split("out", "error")
	w.pieces(w.take(work), "out", "error")
	work.Output.Append("put")
	work.Stderr.Append("s")
	w = w.die(0)
	w.is.EqualValues(12, w.get(work).OutputBytes)
	r := w.take(work)
	w.pieces(r, "put", "s")
	w.is.True(r.EOF)
	w.is.True(r.Stderr.EOF)
	w.is.True(w.get(work).Reported)
	log, err := w.OpenLog(w.ctx, alice(), work.ID, registry.StreamStdout)
	w.is.NoError(err)
	_, next, ended := log.Bounds()
	w.is.EqualValues(6, next)
	w.is.True(ended)
	w.is.NoError(log.Close())
}

func deathTold(w *durableWorld) {
	owned, unowned := w.start(alice(), Script{}), w.start(nobody(), Script{})
	w = w.die(0)
	w.tale(owned, registry.ChangeSettled, notice)
	w.is.Equal(w.get(owned), w.heard(owned, notice))
	w.tale(unowned, registry.ChangeSettled)
	w.journal.Write(100)
	w = w.die(0)
	w.pass(time.Hour)
	w.tale(owned)
}

func deathUnseenEnd(w *durableWorld) {
	works := []*Work{w.start(alice(), Script{}), w.start(alice(), Script{})}
	w.journal.Hold()
	for _, work := range works {
		go work.Complete("exit code: 0")
		w.settled()
	}
	w = w.die(1) // only the first end was written
	w.is.Equal("exit code: 0", w.get(works[0]).Detail)
	w.is.Equal(registry.DetailLost, w.get(works[1]).Detail)
	for _, work := range works {
		w.notices(work, 1)
	}
}

func deathClock(w *durableWorld) {
	work := w.start(alice(), Script{})
	ahead := w.journal.disk.tasks[work.ID]
	ahead.Snapshot.StartedAt = ahead.Snapshot.StartedAt.Add(time.Hour)
	w.journal.disk.tasks[work.ID] = ahead
	w = w.die(0)
	w.is.Equal(ahead.Snapshot.StartedAt, w.get(work).FinishedAt)
}

func deathUnanswered(w *durableWorld) {
	for lucky, code := range []registry.Code{registry.CodeUnknownTask, ""} {
		w.journal.Hold()
		c := w.starting(alice(), w.request(Script{}))
		w.is.False(c.returned())
		w = w.die(lucky)
		_, err := w.Get(w.ctx, alice(), "job-1")
		w.is.Equal(code, registry.CodeOf(err))
		w.is.Len(w.ids(alice(), registry.ListOptions{}), lucky)
	}
	w.same(alice(), w.request(Script{}), "job-2", false)
}

func deathNotLoaded(w *durableWorld) {
	work := w.start(alice(), Script{})
	agent := w.open(alice(), 0)
	s := w.factory(w.t, w.c.options, w.journal.Die(0))
	s.AttachController("suite", registry.AllOwners())
	s.AttachProducer(job, w.jobs.Successor())
	_, err := s.Start(w.ctx, alice(), w.request(Script{}))
	w.refused(err, registry.CodeUnavailable)
	_, err = s.Get(w.ctx, alice(), work.ID)
	w.refused(err, registry.CodeUnavailable)
	_, err = s.Read(w.ctx, alice(), work.ID, registry.ReadOptions{})
	w.refused(err, registry.CodeUnavailable)
	_, err = s.List(w.ctx, alice(), registry.ListOptions{})
	w.refused(err, registry.CodeUnavailable)
	_, _, err = s.Kill(w.ctx, alice(), work.ID, "")
	w.refused(err, registry.CodeUnavailable)
	_, err = s.OpenAgent(w.ctx, alice(), registry.AgentOptions{})
	w.refused(err, registry.CodeUnavailable)
	_, err = s.ListAgents(w.ctx, alice())
	w.refused(err, registry.CodeUnavailable)
	_, err = s.Act(w.ctx, agent)
	w.refused(err, registry.CodeUnavailable)
	for _, id := range []string{agent.Agent, registry.DefaultAgent} {
		w.refused(s.DisposeAgent(w.ctx, alice(), id), registry.CodeUnavailable)
	}
	w.is.NoError(s.Load(w.ctx))
	_, err = s.Get(w.ctx, alice(), work.ID)
	w.is.NoError(err)
	w.is.NoError(s.Close(w.ctx))
}

func deathLoadedTwice(w *durableWorld) {
	work := w.start(alice(), Script{})
	durable, _ := w.Service.(Durable)
	w.is.Error(durable.Load(w.ctx))
	w.is.Equal(registry.StatusRunning, w.get(work).Status)
	w.is.NoError(w.Close(w.ctx))
	w.is.Error(durable.Load(w.ctx))
}

func deathRoom(w *durableWorld) {
	w.start(alice(), Script{})
	w = w.die(0)
	w.start(alice(), Script{})
	w.refused(w.tryStart(alice()), registry.CodeLimitReached)
}

func deathVerbs(w *durableWorld) {
	work, other := w.start(alice(), Script{}), w.start(alice(), Script{})
	w = w.die(0)
	outcome, s := w.kill(work, "")
	w.is.Equal(registry.KillAlreadyFinished, outcome)
	w.is.True(s.Reported)
	d, err := w.Describe(w.ctx, alice(), work.ID)
	w.is.NoError(err)
	w.is.Equal(work.Spec.Fields, d.Request)
	_, err = w.Input(w.ctx, alice(), work.ID, nil, true)
	w.refused(err, registry.CodeConflict)
	w.refused(w.Signal(w.ctx, alice(), work.ID, "INT"), registry.CodeConflict)
	_, err = w.Get(w.ctx, bob(), work.ID)
	w.refused(err, registry.CodeForeignTask)
	w.is.NoError(w.Purge(w.ctx, alice(), work.ID))
	w.is.Equal(1, w.of(work).Discards())
	w.is.Equal([]registry.ID{other.ID}, w.ids(alice(), registry.ListOptions{}))
}
