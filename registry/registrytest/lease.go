package registrytest

import (
	"context"
	"time"

	"afoot/registry"
)

// leaseCases: an agent that is silent for its lease is disposed.
func leaseCases() []testCase {
	return []testCase{
		{name: "a silent agent is disposed with all its work", run: leaseRunsOut},
		{name: "an agent without a lease lives on in silence", run: leaseNone},
		{name: "every call renews the lease", run: leaseRenewed},
		{name: "an open call holds the lease until it is released", run: leaseHeld},
		{name: "of overlapping calls the last one counts", run: leaseOverlap},
		{name: "a release counts once", run: leaseReleaseOnce},
		{name: "one agent's silence ends no other", run: leaseOthers},
		{name: "a call in the instant of the lease's end", options: Options{MaxAgentsPerSession: rounds}, run: leaseSameInstant},
		{name: "a silent agent whose work does not end is disposed in the end", options: Options{TeardownTimeout: 8 * time.Second}, run: leaseStuck},
	}
}

// alive asserts by a list, which renews nothing, whether an agent lives.
func (w *world) alive(c registry.Caller, want bool) {
	w.t.Helper()
	w.settled()
	found := false
	for _, a := range w.agents(registry.Caller{Session: c.Session}) {
		found = found || a.ID == c.Agent
	}
	w.is.Equal(want, found, "agent %s lives", c.Agent)
}

func (w *world) act(c registry.Caller) (release func()) {
	w.t.Helper()
	release, err := w.Act(w.ctx, c)
	w.is.NoError(err)
	return release
}

func leaseRunsOut(w *world) {
	agent := w.open(alice(), 10*time.Second)
	live := w.start(agent, Script{Cancel: settlesKilled})
	ended := w.start(agent, Script{})
	ended.Complete("")
	other := w.start(alice(), Script{})
	w.pass(10*time.Second - tick)
	w.alive(agent, true)
	w.is.Empty(live.Cancels())
	w.pass(2 * tick)
	w.alive(agent, false)
	w.is.Len(live.Cancels(), 1)
	w.notices(live, 0)
	w.is.Equal(1, w.log.count(live.ID, registry.ChangeRemoved))
	w.is.Equal(1, w.log.count(ended.ID, registry.ChangeRemoved))
	events := w.log.all()
	w.is.Equal(registry.ChangeOwnerGone, events[len(events)-1].what)
	w.is.Equal(live.Owner, events[len(events)-1].of.Owner)
	w.is.Equal([]registry.ID{other.ID}, w.ids(alice(), registry.ListOptions{}))
	_, err := w.Act(w.ctx, agent)
	w.refused(err, registry.CodeGone)
	w.is.Equal(registry.StatusRunning, w.get(other).Status)
}

func leaseNone(w *world) {
	agent := w.open(alice(), 0)
	w.pass(10 * registry.MaxLease)
	w.alive(agent, true)
	w.act(agent)()
	w.pass(10 * registry.MaxLease)
	w.alive(agent, true)
}

func leaseRenewed(w *world) {
	agent := w.open(alice(), 10*time.Second)
	for range 5 {
		w.pass(9 * time.Second)
		w.act(agent)()
	}
	w.pass(10*time.Second - tick)
	w.alive(agent, true)
	w.pass(2 * tick)
	w.alive(agent, false)
}

func leaseHeld(w *world) {
	agent := w.open(alice(), 10*time.Second)
	release := w.act(agent)
	w.pass(time.Hour)
	w.alive(agent, true)
	release()
	w.pass(10*time.Second - tick)
	w.alive(agent, true)
	w.pass(2 * tick)
	w.alive(agent, false)
}

func leaseOverlap(w *world) {
	agent := w.open(alice(), 10*time.Second)
	long := w.act(agent)
	w.pass(5 * time.Second)
	w.act(agent)()
	w.pass(time.Minute)
	w.alive(agent, true)
	long()
	w.pass(9 * time.Second)
	w.alive(agent, true)
	w.pass(2 * time.Second)
	w.alive(agent, false)
}

func leaseReleaseOnce(w *world) {
	agent := w.open(alice(), 10*time.Second)
	one, other := w.act(agent), w.act(agent)
	one()
	one()
	w.pass(time.Minute)
	w.alive(agent, true)
	other()
	w.pass(9 * time.Second)
	one()
	other()
	w.pass(2 * time.Second)
	w.alive(agent, false)
}

func leaseOthers(w *world) {
	short, long, bobs := w.open(alice(), time.Second), w.open(alice(), time.Minute), w.open(bob(), time.Minute)
	work := w.start(long, Script{})
	w.pass(2 * time.Second)
	w.alive(short, false)
	w.alive(long, true)
	w.alive(bobs, true)
	w.is.Equal(registry.StatusRunning, w.get(work).Status)
	w.is.Empty(work.Cancels())
}

// leaseSameInstant: who is told that it lives, lives.
func leaseSameInstant(w *world) {
	for range rounds / 4 {
		agent := w.open(alice(), time.Second)
		work := w.start(agent, Script{Cancel: settlesKilled})
		c := begin(w.ctx, func(ctx context.Context) (func(), error) {
			time.Sleep(time.Second)
			return w.Act(ctx, agent)
		})
		w.pass(time.Second)
		w.is.True(c.returned())
		release, err := c.result()
		if err != nil {
			w.refused(err, registry.CodeGone)
			w.alive(agent, false)
			continue
		}
		w.pass(time.Minute)
		w.alive(agent, true)
		w.is.Equal(registry.StatusRunning, w.get(work).Status)
		release()
		w.pass(2 * time.Second)
		w.alive(agent, false)
	}
}

func leaseStuck(w *world) {
	agent := w.open(alice(), time.Second)
	work := w.start(agent, Script{})
	w.pass(2 * time.Second)
	_, err := w.Act(w.ctx, agent)
	w.refused(err, registry.CodeGone)
	w.is.Len(work.Cancels(), 1)
	w.pass(10 * time.Second)
	w.is.Equal(registry.StatusFailed, w.heard(work, registry.ChangeSettled).Status)
	w.is.Equal(1, w.log.count(work.ID, registry.ChangeRemoved))
}
