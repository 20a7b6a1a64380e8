package registrytest

import (
	"context"
	"strings"
	"time"

	"afoot/registry"
)

// agentCases: live owners and how they are named.
func agentCases() []testCase {
	two := Options{MaxAgentsPerSession: 2}
	return []testCase{
		{name: "an opened agent shows what was asked for", run: agentOpened},
		{name: "agents get ids of their own over all sessions", run: agentIDs},
		{name: "a list shows the session's agents in order of their making", run: agentList},
		{name: "a bad label is invalid", run: agentLabels},
		{name: "a lease out of bounds is invalid", run: agentLeaseBounds},
		{name: "a caller without a session opens no agent", run: agentNobody},
		{name: "a session has room for 64 by default", run: agentDefaultLimit},
		{name: "a full session refuses and a disposed agent makes room", options: two, run: agentLimit},
		{name: "an agent's id is never used again", run: agentNeverAgain},
		{name: "the default agent begins anew after its disposal", run: agentDefault},
		{name: "a refused start leaves a default agent that had tasks", options: Options{RetainAge: time.Hour, MaxTasks: 1}, run: agentDefaultStays},
		{name: "an agent may dispose itself", run: agentDisposesItself},
		{name: "disposing refuses unknown foreign and gone agents", run: agentDisposeRefused},
		{name: "a call's release may come twice and after the disposal", run: agentRelease},
	}
}

func agentOpened(w *world) {
	lease := 90 * time.Second
	a, err := w.OpenAgent(w.ctx, alice(), registry.AgentOptions{Label: new("the reviewer"), Lease: &lease})
	w.is.NoError(err)
	w.is.Regexp(`^agent-[1-9][0-9]*$`, a.ID)
	w.is.Equal(registry.Agent{ID: a.ID, Label: "the reviewer", Lease: lease, Incarnation: a.Incarnation}, a)
	b, err := w.OpenAgent(w.ctx, alice(), registry.AgentOptions{})
	w.is.NoError(err)
	w.is.Equal(registry.Agent{ID: b.ID, Incarnation: b.Incarnation}, b)
	w.is.Less(a.Incarnation, b.Incarnation)
	w.is.Equal([]registry.Agent{a, b}, w.agents(alice()))
}

// agents lists the agents that were opened.
func (w *world) agents(c registry.Caller) []registry.Agent {
	w.t.Helper()
	all, err := w.ListAgents(w.ctx, c)
	w.is.NoError(err)
	opened := []registry.Agent{}
	for _, a := range all {
		if a.ID != registry.DefaultAgent {
			opened = append(opened, a)
		}
	}
	return opened
}

func agentIDs(w *world) {
	seen := map[string]bool{}
	for range 3 {
		for _, c := range []registry.Caller{alice(), bob()} {
			id := w.open(c, 0).Agent
			w.is.False(seen[id], "%s was given twice", id)
			seen[id] = true
		}
	}
}

func agentList(w *world) {
	w.is.Empty(w.agents(alice()))
	var ids []string
	for range 12 {
		ids = append(ids, w.open(alice(), 0).Agent)
		w.open(bob(), 0)
	}
	w.is.NoError(w.DisposeAgent(w.ctx, alice(), ids[4]))
	var listed []string
	for _, a := range w.agents(alice()) {
		listed = append(listed, a.ID)
	}
	w.is.Equal(append(ids[:4:4], ids[5:]...), listed)
}

func agentLabels(w *world) {
	for _, label := range []string{"", "two\nlines", "\x00", strings.Repeat("x", registry.MaxLabelBytes+1)} {
		_, err := w.OpenAgent(w.ctx, alice(), registry.AgentOptions{Label: &label})
		w.is.Equal(registry.CodeInvalid, registry.CodeOf(err), "label %q", label)
	}
	w.is.Empty(w.agents(alice()))
}

func agentLeaseBounds(w *world) {
	for _, lease := range []time.Duration{
		0, -time.Second, registry.MinLease - 1, registry.MaxLease + 1,
	} {
		_, err := w.OpenAgent(w.ctx, alice(), registry.AgentOptions{Lease: &lease})
		w.is.Equal(registry.CodeInvalid, registry.CodeOf(err), "lease %v", lease)
	}
	w.is.Empty(w.agents(alice()))
	for _, lease := range []time.Duration{registry.MinLease, registry.MaxLease} {
		_, err := w.OpenAgent(w.ctx, alice(), registry.AgentOptions{Lease: &lease})
		w.is.NoError(err, "lease %v", lease)
	}
}

func agentNobody(w *world) {
	_, err := w.OpenAgent(w.ctx, nobody(), registry.AgentOptions{})
	w.refused(err, registry.CodeForbidden)
}

func agentDefaultLimit(w *world) {
	for range 64 {
		w.open(alice(), 0)
	}
	_, err := w.OpenAgent(w.ctx, alice(), registry.AgentOptions{})
	w.full(err, agentsLimit)
}

func agentLimit(w *world) {
	first, second := w.open(alice(), 0), w.open(alice(), time.Minute)
	for range 3 {
		_, err := w.OpenAgent(w.ctx, alice(), registry.AgentOptions{})
		w.full(err, agentsLimit)
	}
	w.open(bob(), 0)
	w.is.NoError(w.DisposeAgent(w.ctx, alice(), first.Agent))
	third := w.open(alice(), 0)
	w.pass(time.Hour)
	listed := w.agents(alice())
	w.is.Len(listed, 1)
	w.is.Equal(third.Agent, listed[0].ID)
	w.open(alice(), 0)
	_, err := w.Act(w.ctx, second)
	w.refused(err, registry.CodeGone)
}

func agentNeverAgain(w *world) {
	seen := map[string]bool{}
	for range 4 {
		agent := w.open(alice(), 0)
		w.is.False(seen[agent.Agent])
		seen[agent.Agent] = true
		w.is.NoError(w.DisposeAgent(w.ctx, alice(), agent.Agent))
	}
}

func agentDefault(w *world) {
	old := w.start(alice(), Script{Cancel: settlesKilled})
	w.is.NoError(w.DisposeAgent(w.ctx, alice(), registry.DefaultAgent))
	_, err := w.Get(w.ctx, alice(), old.ID)
	w.refused(err, registry.CodeGone)
	w.is.Empty(w.ids(alice(), registry.ListOptions{}))
	release, err := w.Act(w.ctx, alice())
	w.is.NoError(err, "a session can always act as its default agent")
	release()
	fresh := w.start(alice(), Script{})
	w.is.Equal(registry.DefaultAgent, fresh.Owner.Agent)
	w.is.NotEqual(old.Owner, fresh.Owner)
	w.pass(registry.MaxLease + time.Hour)
	w.is.Equal(registry.StatusRunning, w.get(fresh).Status, "the default agent is never leased")
}

func agentDisposesItself(w *world) {
	agent := w.open(alice(), 0)
	w.start(agent, Script{Cancel: settlesKilled})
	w.is.NoError(w.DisposeAgent(w.ctx, agent, agent.Agent))
	w.is.Empty(w.agents(alice()))
	w.is.Empty(w.ids(alice(), registry.ListOptions{}))
}

func agentDisposeRefused(w *world) {
	bobs := w.open(bob(), 0)
	w.refused(w.DisposeAgent(w.ctx, alice(), "agent-99"), registry.CodeUnknownAgent)
	w.refused(w.DisposeAgent(w.ctx, alice(), bobs.Agent), registry.CodeForeignAgent)
	w.is.Len(w.agents(bob()), 1)
	w.is.Error(w.DisposeAgent(w.ctx, nobody(), bobs.Agent))
	w.is.Len(w.agents(bob()), 1)
	own := w.open(alice(), 0)
	w.is.NoError(w.DisposeAgent(w.ctx, alice(), own.Agent))
	w.refused(w.DisposeAgent(w.ctx, alice(), own.Agent), registry.CodeGone)
}

func agentRelease(w *world) {
	agent := w.open(alice(), time.Second)
	release, err := w.Act(w.ctx, agent)
	w.is.NoError(err)
	w.is.NoError(w.DisposeAgent(w.ctx, alice(), agent.Agent), "a call in progress holds no disposal up")
	release()
	release()
	w.pass(time.Hour)
	w.is.Empty(w.agents(alice()))

	for _, c := range []registry.Caller{alice(), nobody()} {
		release, err := w.Act(w.ctx, c)
		w.is.NoError(err)
		release()
		release()
	}
}

// agentDefaultStays: its end takes back the notices of what was evicted.
func agentDefaultStays(w *world) {
	work := w.ends(alice(), Script{})
	w.pass(2 * time.Hour)
	w.evicted(work)
	other := w.start(bob(), Script{Cancel: settlesKilled})
	w.full(w.tryStart(alice()), taskLimit)
	w.kill(other, "")
	_, err := w.Start(w.ctx, alice(), w.request(Script{Start: func(context.Context, *Work) error { return errBoom }}))
	w.is.ErrorIs(err, errBoom)
	w.is.NoError(w.DisposeAgent(w.ctx, alice(), registry.DefaultAgent))
	w.is.Equal(1, w.gone(registry.Caller{Session: "alice", Agent: registry.DefaultAgent}))
	w.is.NotEqual(work.Owner, w.start(alice(), Script{Cancel: settlesKilled}).Owner)
}
