package registrytest

import (
	"context"
	"time"

	"afoot/registry"
)

// keptAgentCases: owners outlive the process.
func keptAgentCases() []durableCase {
	return []durableCase{
		{name: "agents come back with their names", run: agentsBack},
		{name: "the default agent is the same owner", run: agentsDefault},
		{name: "a disposed agent is gone with its tasks", run: agentsDisposed},
		{name: "a successor of a disposed default agent is somebody else, always", run: agentsSuccessor},
		{name: "a disposal that was not answered is all or nothing", options: Options{MaxTasksPerOwner: 20}, run: agentsHalfDisposed},
		{name: "a default agent whose disposal was under way goes", run: agentsDefaultHalfDisposed},
		{name: "an agent that was told to be gone stays gone, and its end goes on", options: Options{TeardownTimeout: 8 * time.Second}, run: agentsEnding},
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

func agentsEnding(w *durableWorld) {
	agent := w.open(alice(), time.Minute)
	live, ended := w.start(agent, Script{}), w.start(agent, Script{})
	w.promised(ended, registry.ReadOptions{}) // else its notice is due
	w.journal.Hold()
	d := w.disposing(alice(), agent.Agent)
	c := begin(w.ctx, func(ctx context.Context) (func(), error) { return w.Act(ctx, agent) })
	w.pass(time.Second)
	w.is.False(c.returned(), "told that it is gone, which it may not be")
	w.journal.Write(100)
	w.settled()
	_, err := c.result()
	w.refused(err, registry.CodeGone)
	w.is.False(d.returned())
	w.is.Len(live.Cancels(), 1)
	w = w.die(0)
	_, err = w.Act(w.ctx, agent)
	w.refused(err, registry.CodeGone)
	w.is.Equal(1, w.gone(agent))
	for _, work := range []*Work{live, ended} {
		w.codes(registry.CodeGone, work.ID)
		w.notices(work, 0)
		w.is.Equal(1, w.of(work).Discards())
	}
}
