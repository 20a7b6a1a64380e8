package registrytest

import (
	"time"

	"afoot/registry"
)

// fenceCases: sessions are kept apart by every verb.
func fenceCases() []testCase {
	return []testCase{
		{name: "every verb refuses a foreign task and leaves it untouched", run: fenceForeign},
		{name: "every verb refuses an unknown task", run: fenceUnknown},
		{name: "every verb refuses a removed task as gone", run: fenceGone},
		{name: "every verb refuses an unknown agent", run: fenceUnknownAgent},
		{name: "every verb refuses another session's agent", run: fenceForeignAgent},
		{name: "every verb refuses a disposed agent as gone", run: fenceGoneAgent},
		{name: "every caller may do everything with unowned tasks", run: fenceUnowned},
		{name: "a caller without a session reaches no owned task", run: fenceNobody},
	}
}

// verb is one of the calls on a task that exists.
type verb struct {
	name string
	call func(w *world, c registry.Caller, id registry.ID) error
}

func verbs() []verb {
	ended := func(d *registry.Delivery, err error) error {
		if err == nil {
			d.Abandon()
		}
		return err
	}
	return []verb{
		{"get", func(w *world, c registry.Caller, id registry.ID) error {
			_, err := w.Get(w.ctx, c, id)
			return err
		}},
		{"describe", func(w *world, c registry.Caller, id registry.ID) error {
			_, err := w.Describe(w.ctx, c, id)
			return err
		}},
		{"read", func(w *world, c registry.Caller, id registry.ID) error {
			return ended(w.Read(w.ctx, c, id, registry.ReadOptions{}))
		}},
		{"wait", func(w *world, c registry.Caller, id registry.ID) error {
			return ended(w.Read(w.ctx, c, id, registry.ReadOptions{Wait: time.Second}))
		}},
		{"explicit read", func(w *world, c registry.Caller, id registry.ID) error {
			return ended(w.Read(w.ctx, c, id, registry.ReadOptions{Explicit: true}))
		}},
		{"look", func(w *world, c registry.Caller, id registry.ID) error {
			_, err := w.Look(w.ctx, c, id, 0, registry.LookOptions{})
			return err
		}},
		{"waiting look", func(w *world, c registry.Caller, id registry.ID) error {
			_, err := w.Look(w.ctx, c, id, 0, registry.LookOptions{Wait: time.Second})
			return err
		}},
		{"ack", func(w *world, c registry.Caller, id registry.ID) error {
			return w.Ack(w.ctx, c, id, 0)
		}},
		{"log", func(w *world, c registry.Caller, id registry.ID) error {
			log, err := w.OpenLog(w.ctx, c, id, "")
			if err != nil {
				return err
			}
			return log.Close()
		}},
		{"kill", func(w *world, c registry.Caller, id registry.ID) error {
			_, _, err := w.Kill(w.ctx, c, id, "")
			return err
		}},
		{"purge", func(w *world, c registry.Caller, id registry.ID) error {
			return w.Purge(w.ctx, c, id)
		}},
	}
}

// fenced asserts that every verb on every id refuses a caller with one code,
// at once.
func (w *world) fenced(c registry.Caller, code registry.Code, ids ...registry.ID) {
	w.t.Helper()
	before := time.Now()
	for _, v := range verbs() {
		for _, id := range ids {
			w.is.Equal(code, registry.CodeOf(v.call(w, c, id)), "%s of %q", v.name, id)
		}
	}
	w.is.Zero(time.Since(before), "a refusal waited")
}

func fenceForeign(w *world) {
	live, ended := w.start(alice(), Script{}), w.start(alice(), Script{})
	live.Output.Append("secret")
	ended.Output.Append("secret")
	ended.Complete("")
	w.settled()
	w.takeExplicit(ended)
	events, liveBefore, endedBefore := w.log.all(), w.get(live), w.get(ended)

	for _, c := range []registry.Caller{bob(), w.open(bob(), 0), nobody()} {
		w.fenced(c, registry.CodeForeignTask, live.ID, ended.ID)
		w.is.Empty(w.ids(c, registry.ListOptions{}))
	}
	w.settled()
	w.is.Equal(events, w.log.all())
	w.is.Equal(liveBefore, w.get(live))
	w.is.Equal(endedBefore, w.get(ended))
	w.is.Empty(live.Cancels())
	w.is.Zero(ended.Discards())
	w.is.Equal("secret", w.take(live).Text)
	w.is.Equal("secret", w.take(ended).Text)
}

func fenceUnknown(w *world) {
	w.start(alice(), Script{})
	for _, c := range []registry.Caller{alice(), bob(), nobody()} {
		w.fenced(c, registry.CodeUnknownTask, "job-2", "job-0", "job-01", "no-such-1", "job", "", "..", "job-1/..")
	}
}

func fenceGone(w *world) {
	work := w.start(alice(), Script{})
	work.Complete("")
	w.is.NoError(w.Purge(w.ctx, alice(), work.ID))
	for _, c := range []registry.Caller{alice(), bob(), nobody()} {
		w.fenced(c, registry.CodeGone, work.ID)
	}
}

// agentFenced asserts that an agent may neither act nor start nor touch what its
// session could.
func (w *world) agentFenced(c registry.Caller, code registry.Code) {
	w.t.Helper()
	work := w.start(registry.Caller{Session: c.Session}, Script{})
	starts := w.jobs.Starts()
	w.fenced(c, code, work.ID)
	_, err := w.List(w.ctx, c, registry.ListOptions{})
	w.refused(err, code)
	_, err = w.Act(w.ctx, c)
	w.refused(err, code)
	w.refused(w.tryStart(c), code)
	w.is.Equal(starts, w.jobs.Starts())
	w.tale(work, registry.ChangeRegistered)
	w.is.Empty(work.Cancels())
}

func fenceUnknownAgent(w *world) {
	w.open(alice(), 0)
	for _, agent := range []string{"agent-99", "agent-0", "agent-01", "nobody", "Default"} {
		w.agentFenced(registry.Caller{Session: "alice", Agent: agent}, registry.CodeUnknownAgent)
	}
}

func fenceForeignAgent(w *world) {
	bobs := w.open(bob(), 0)
	w.agentFenced(registry.Caller{Session: "alice", Agent: bobs.Agent}, registry.CodeForeignAgent)
}

func fenceGoneAgent(w *world) {
	agent := w.open(alice(), 0)
	w.is.NoError(w.DisposeAgent(w.ctx, alice(), agent.Agent))
	w.agentFenced(agent, registry.CodeGone)
}

func fenceUnowned(w *world) {
	for _, c := range []registry.Caller{alice(), bob(), nobody(), w.open(alice(), 0)} {
		work := w.start(nobody(), Script{})
		work.Output.Append("open to all")
		d, err := w.Read(w.ctx, c, work.ID, registry.ReadOptions{Explicit: true})
		w.is.NoError(err)
		w.is.Equal("open to all", d.Text)
		w.is.NoError(d.Confirm())
		w.is.NoError(w.Ack(w.ctx, c, work.ID, d.NextOffset))
		_, _, err = w.Kill(w.ctx, c, work.ID, "")
		w.is.NoError(err)
		work.Settle(registry.Outcome{Status: registry.StatusKilled})
		for _, v := range verbs() {
			if v.name != "ack" {
				w.is.NoError(v.call(w, c, work.ID), v.name)
			}
		}
		_, err = w.Get(w.ctx, c, work.ID)
		w.refused(err, registry.CodeGone)
	}
}

func fenceNobody(w *world) {
	w.start(alice(), Script{})
	own := w.start(nobody(), Script{})
	w.fenced(nobody(), registry.CodeForeignTask, "job-1")
	w.is.Equal([]registry.ID{own.ID}, w.ids(nobody(), registry.ListOptions{}))
}
