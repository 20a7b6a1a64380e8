package registrytest

import (
	"context"
	"errors"
	"time"

	"afoot/registry"
)

// keptNoticeCases: each end is announced once, whenever the process dies.
func keptNoticeCases() []durableCase {
	return []durableCase{
		{name: "one that was heard is not told again", run: noticeHeard},
		{name: "one that was due and not heard is told", run: noticeNotHeard},
		{name: "one whose death came right behind the listener is told again", run: noticeBetween},
		{name: "one that waited for an answer is told when the answer is lost", run: noticeHeldAtDeath},
		{name: "none of an end that was reported", run: noticeReportedAtDeath},
		{name: "none of unowned work", run: noticeUnownedAtDeath},
		{name: "the end of a task that is evicted at once is told first", options: Options{RetainAge: time.Hour}, run: noticeBeforeEviction},
	}
}

func noticeHeard(w *durableWorld) {
	work := w.ends(alice(), Script{})
	w.notices(work, 1)
	w.journal.Write(100)
	w = w.die(0)
	w.pass(time.Hour)
	w.tale(work)
	w.hold(work).Abandon()
	w.tale(work)
	w.is.Equal(1, w.log.count(work.ID, registry.ChangeDue), "its notice stands elsewhere")
}

func noticeNotHeard(w *durableWorld) {
	work := w.start(alice(), Script{})
	w.journal.Hold()
	go work.Complete("exit code: 0")
	w.notices(work, 0)
	w.journal.Write(100)
	w = w.die(0)
	w.tale(work, notice)
	w.is.Equal("exit code: 0", w.heard(work, notice).Detail)
}

func noticeBetween(w *durableWorld) {
	work := w.ends(alice(), Script{})
	w.is.Equal(1, w.journal.InLine(), "that it was heard")
	w = w.die(0)
	w.tale(work, notice)
}

func noticeHeldAtDeath(w *durableWorld) {
	promised, handed := w.start(alice(), Script{}), w.start(alice(), Script{})
	w.promised(promised, registry.ReadOptions{})
	w.promised(handed, registry.ReadOptions{Explicit: true})
	w = w.die(0)
	for _, work := range []*Work{promised, handed} {
		w.tale(work, notice)
	}
}

func noticeReportedAtDeath(w *durableWorld) {
	work := w.reads(alice(), Script{})
	w = w.die(0)
	w.pass(time.Hour)
	w.tale(work)
}

func noticeUnownedAtDeath(w *durableWorld) {
	work := w.ends(nobody(), Script{})
	w = w.die(0)
	w.tale(work)
}

func noticeBeforeEviction(w *durableWorld) {
	work := w.start(alice(), Script{})
	w.journal.Hold()
	go work.Complete("")
	w.settled()
	next, jobs := w.journal.Die(100), w.jobs.Successor()
	w.pass(2 * time.Hour)
	w = newDurableWorld(w.t, w.factory, w.c, next, jobs)
	w.tale(work, notice, registry.ChangeEvicted)
}

// keptAgentCases: owners outlive the process.
func keptAgentCases() []durableCase {
	return []durableCase{
		{name: "agents come back with their names", run: agentsBack},
		{name: "the default agent is the same owner", run: agentsDefault},
		{name: "a disposed agent is gone with its tasks", run: agentsDisposed},
		{name: "a successor of a disposed default agent is somebody else, always", run: agentsSuccessor},
		{name: "a disposal that was not answered is all or nothing", options: Options{MaxTasksPerOwner: 20}, run: agentsHalfDisposed},
		{name: "a default agent whose disposal was under way goes", run: agentsDefaultHalfDisposed},
		{name: "leases begin anew", run: agentsLeases},
		{name: "a full session is full", options: Options{MaxAgentsPerSession: 2}, run: agentsFull},
		{name: "an agent that was not answered may be there", run: agentsUnanswered},
	}
}

func agentsBack(w *durableWorld) {
	label, lease := "the label", time.Hour
	_, err := w.OpenAgent(w.ctx, alice(), registry.AgentOptions{Label: &label, Lease: &lease})
	w.is.NoError(err)
	second := w.open(alice(), 0)
	work := w.start(second, Script{})
	was, err := w.ListAgents(w.ctx, alice())
	w.is.NoError(err)
	w = w.die(0)
	is, err := w.ListAgents(w.ctx, alice())
	w.is.NoError(err)
	w.is.Equal(was, is)
	w.is.Equal(work.Owner, w.heard(work, notice).Owner)
	w.is.Equal(work.Owner, w.start(second, Script{}).Owner)
	_, err = w.Act(w.ctx, registry.Caller{Session: "bob", Agent: second.Agent})
	w.refused(err, registry.CodeForeignAgent)
}

func agentsDefault(w *durableWorld) {
	work := w.start(alice(), Script{})
	w = w.die(0)
	w.is.Equal(work.Owner, w.start(alice(), Script{}).Owner)
	w.is.Len(w.journal.Stored().Agents, 1)
}

func agentsDisposed(w *durableWorld) {
	agent := w.open(alice(), 0)
	work := w.ends(agent, Script{})
	w.is.NoError(w.DisposeAgent(w.ctx, alice(), agent.Agent))
	w = w.die(0)
	w.codes(registry.CodeGone, work.ID)
	_, err := w.Act(w.ctx, agent)
	w.refused(err, registry.CodeGone)
	w.is.Empty(w.agents(alice()))
	w.is.NotEqual(agent, w.open(alice(), 0))
}

func agentsSuccessor(w *durableWorld) {
	seen := map[uint64]bool{}
	for range 4 {
		work := w.ends(alice(), Script{})
		w.is.False(seen[work.Owner.Incarnation], "owner %+v came before", work.Owner)
		seen[work.Owner.Incarnation] = true
		w.is.NoError(w.DisposeAgent(w.ctx, alice(), registry.DefaultAgent))
		w = w.die(0)
	}
}

func agentsHalfDisposed(w *durableWorld) {
	for lucky := range 3 {
		agent := w.open(alice(), 0)
		for range 10 {
			w.ends(agent, Script{})
		}
		w.journal.Write(100)
		w.journal.Hold()
		d := w.disposing(alice(), agent.Agent)
		w.is.False(d.returned())
		w = w.die(lucky)
		n := len(w.ids(alice(), registry.ListOptions{}))
		_, err := w.Act(w.ctx, agent)
		if err == nil {
			w.is.Equal(10, n)
			w.is.NoError(w.DisposeAgent(w.ctx, alice(), agent.Agent))
		} else {
			w.refused(err, registry.CodeGone)
			w.is.Zero(n)
		}
	}
}

func agentsDefaultHalfDisposed(w *durableWorld) {
	first := w.start(alice(), Script{})
	d := w.disposing(alice(), registry.DefaultAgent)
	second := w.start(alice(), Script{})
	w.is.False(d.returned())
	w = w.die(0)
	w.settled()
	w.codes(registry.CodeGone, first.ID)
	w.is.Equal(second.Owner, w.get(second).Owner)
	w.is.Equal(second.Owner, w.start(alice(), Script{}).Owner)
	w.notices(second, 1)
	w.notices(first, 0)
}

func agentsLeases(w *durableWorld) {
	agent := w.open(alice(), time.Minute)
	w.pass(40 * time.Second)
	w = w.die(0)
	w.pass(40 * time.Second)
	w.alive(agent, true)
	w.pass(30 * time.Second)
	w.alive(agent, false)
	w = w.die(0)
	w.alive(agent, false)
}

func agentsFull(w *durableWorld) {
	w.open(alice(), 0)
	w.open(alice(), 0)
	w = w.die(0)
	_, err := w.OpenAgent(w.ctx, alice(), registry.AgentOptions{})
	w.refused(err, registry.CodeLimitReached)
	w.open(bob(), 0)
}

func agentsUnanswered(w *durableWorld) {
	for lucky := range 2 {
		w.journal.Hold()
		c := begin(w.ctx, func(ctx context.Context) (registry.Agent, error) {
			return w.OpenAgent(ctx, alice(), registry.AgentOptions{})
		})
		w.settled()
		w.is.False(c.returned())
		w = w.die(lucky)
		w.is.Len(w.agents(alice()), lucky)
	}
	w.is.Equal("agent-2", w.open(alice(), 0).Agent)
}

// keptKeyCases: idempotency keys outlive the process.
func keptKeyCases() []durableCase {
	return []durableCase{
		{name: "a repeated start answers with the first one's task", run: keysReplay},
		{name: "another fingerprint is a mismatch", run: keysMismatch},
		{name: "a start that was not answered is repeated or replayed, never doubled", run: keysUnanswered},
		{name: "a key is remembered for 24 h, and then not kept", options: Options{RetainAge: 100 * time.Hour}, run: keysExpire},
		{name: "a key of a removed task is gone", run: keysGone},
		{name: "keys stay apart by session and subject", run: keysApart},
	}
}

func keysReplay(w *durableWorld) {
	r := w.keyed("k", 1, Script{})
	w.same(alice(), r, "job-1", false)
	w = w.die(0)
	w.same(alice(), r, "job-1", true)
	w.same(alice(), w.keyed("other", 1, Script{}), "job-2", false)
	w = w.reopen()
	w.same(alice(), r, "job-1", true)
}

func keysMismatch(w *durableWorld) {
	w.same(alice(), w.keyed("k", 1, Script{}), "job-1", false)
	w = w.die(0)
	_, err := w.Start(w.ctx, alice(), w.keyed("k", 2, Script{}))
	w.refused(err, registry.CodeIdempotencyMismatch)
}

func keysUnanswered(w *durableWorld) {
	for lucky := range 2 {
		r := w.keyed("k", 1, Script{})
		w.journal.Hold()
		c := w.starting(alice(), r)
		w.is.False(c.returned())
		w = w.die(lucky)
		w.same(alice(), r, "job-1", lucky == 1)
		if lucky == 0 {
			w.is.NoError(w.Close(w.ctx))
			w = newDurableWorld(w.t, w.factory, w.c, NewJournal(), NewProducer())
		}
	}
}

func keysExpire(w *durableWorld) {
	r := w.keyed("k", 1, Script{})
	w.same(alice(), r, "job-1", false)
	w.pass(23 * time.Hour)
	w = w.die(0)
	w.same(alice(), r, "job-1", true)
	w.pass(time.Hour)
	w.same(alice(), w.keyed("new", 1, Script{}), "job-2", false)
	w.is.Len(w.journal.Stored().Keys, 1)
	w.pass(24 * time.Hour)
	w = w.die(0)
	w.journal.Write(100)
	w.is.Empty(w.journal.Stored().Keys)
	w.same(alice(), r, "job-3", false)
}

func keysGone(w *durableWorld) {
	r := w.keyed("k", 1, Script{})
	w.same(alice(), r, "job-1", false)
	w = w.die(0)
	w.is.NoError(w.Purge(w.ctx, alice(), "job-1"))
	w = w.die(0)
	_, err := w.Start(w.ctx, alice(), r)
	w.refused(err, registry.CodeGone)
}

func keysApart(w *durableWorld) {
	mine, theirs := w.keyed("k", 1, Script{}), w.keyed("k", 1, Script{})
	mine.Subject, theirs.Subject = "me", "them"
	w.same(nobody(), mine, "job-1", false)
	w.same(nobody(), theirs, "job-2", false)
	w.same(alice(), mine, "job-3", false)
	w = w.die(0)
	w.same(alice(), theirs, "job-3", true)
	w.same(nobody(), theirs, "job-2", true)
	w.same(nobody(), mine, "job-1", true)
	w.same(bob(), mine, "job-4", false)
}

// shutdownCases: rule 15, and what comes after it.
func shutdownCases() []durableCase {
	bound := Options{TeardownTimeout: 8 * time.Second}
	return []durableCase{
		{name: "stopped work is told after the next start, once", options: bound, run: shutdownTold},
		{name: "a kill before it stays reported", options: bound, run: shutdownKilled},
		{name: "work that did not end in time is told too", options: bound, run: shutdownForced},
		{name: "ends that were due are told after the next start", options: bound, run: shutdownDue},
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

// lostOutputCases: a run that can't be given back.
func lostOutputCases() []durableCase {
	return []durableCase{
		{name: "its record stays, and all its bytes count as dropped", run: lostAll},
		{name: "of a run whose handle could not be had", run: lostHandle},
		{name: "of a kind that nobody attached", run: lostKind},
		{name: "it can be purged", run: lostPurge},
	}
}

// lostWork is an ended task of six bytes, three of them read, that can't be restored.
func (w *durableWorld) lostWork(s Script) *Work {
	work := w.start(alice(), s)
	work.Output.Append("abc")
	w.take(work)
	work.Output.Append("def")
	work.Complete("exit code: 0")
	w.settled()
	work.Output.Lose(errors.New("the file is gone"))
	return work
}

func (w *durableWorld) isLost(work *Work) {
	w.t.Helper()
	s := w.get(work)
	w.is.Equal(registry.StatusCompleted, s.Status)
	w.is.Equal("exit code: 0", s.Detail)
	w.is.EqualValues(6, s.OutputBytes)
	w.is.EqualValues(6, s.DroppedBytes)
	log, err := w.OpenLog(w.ctx, alice(), work.ID, "")
	w.is.NoError(err)
	first, next, ended := log.Bounds()
	w.is.Equal([]any{int64(6), int64(6), true}, []any{first, next, ended})
	w.is.NoError(log.Close())
	d, err := w.Describe(w.ctx, alice(), work.ID)
	w.is.NoError(err)
	w.is.JSONEq(`{}`, string(d.Request))
	_, err = w.Look(w.ctx, alice(), work.ID, 7, registry.LookOptions{})
	w.refused(err, registry.CodeInvalid)
	r := w.take(work)
	w.is.Empty(r.Text)
	w.is.EqualValues(3, r.Skipped)
	w.is.EqualValues(6, r.NextOffset)
	w.is.EqualValues(6, r.Dropped)
	w.is.True(r.EOF)
	w.is.True(w.get(work).Reported)
}

func lostAll(w *durableWorld) {
	work := w.lostWork(Script{})
	w = w.die(0)
	w.isLost(work)
	w = w.die(0)
	w.is.Zero(w.take(work).Skipped)
}

func lostHandle(w *durableWorld) {
	work := w.lostWork(Script{Handle: func(*Work) error { panic("boom") }})
	w.die(0).isLost(work)
}

func lostKind(w *durableWorld) {
	work := w.lostWork(Script{})
	jobs := w.jobs.Successor()
	s := w.factory(w.t, w.c.options, w.journal.Die(0))
	w.is.NoError(s.Load(w.ctx))
	got, err := s.Get(w.ctx, alice(), work.ID)
	w.is.NoError(err)
	w.is.EqualValues(6, got.DroppedBytes)
	w.is.Zero(jobs.Starts())
	w.is.NoError(s.Close(w.ctx))
}

func lostPurge(w *durableWorld) {
	work := w.lostWork(Script{})
	w = w.die(0)
	w.is.NoError(w.Purge(w.ctx, alice(), work.ID))
	w = w.die(0)
	w.codes(registry.CodeGone, work.ID)
}
