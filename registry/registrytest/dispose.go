package registrytest

import (
	"context"
	"time"

	"afoot/registry"
)

// disposeCases: rule 14, the end of an owner whose work behaves.
func disposeCases() []testCase {
	return []testCase{
		{name: "live work is cancelled and awaited before the answer", run: disposeAwaits},
		{name: "records and stored output are removed", run: disposeRemoves},
		{name: "nothing of a disposed owner is announced", run: disposeSilent},
		{name: "observers are told before the answer", run: disposeTells},
		{name: "the emptied set can be seen by who is told of the end", run: disposeEmptied},
		{name: "a second end of the same owner waits as well", run: disposeAgain},
		{name: "an owner without tasks ends as well", run: disposeIdle},
		{name: "work that is stopping already is awaited", run: disposeStopping},
		{name: "all work is cancelled before any is awaited", run: disposeTogether},
		{name: "other owners are not touched", run: disposeOthers},
		{name: "a wait on disposed work is released", run: disposeReleasesWaits},
		{name: "the disposal goes on when its caller leaves", run: disposeCallerLeaves},
		{name: "an answer on its way when its task is disposed changes nothing", run: disposeHeld},
		{name: "a disposed agent starts nothing more", run: disposeNoStart},
	}
}

func disposeAwaits(w *world) {
	agent := w.open(alice(), 0)
	one, two := w.start(agent, Script{}), w.start(agent, Script{})
	d := w.disposing(alice(), agent.Agent)
	for _, work := range []*Work{one, two} {
		w.is.Len(work.Cancels(), 1)
		s := w.get(work)
		w.is.Equal(registry.StatusStopping, s.Status)
		w.is.True(s.Reported, "nobody is left to be told")
	}
	w.pass(time.Second)
	one.Settle(registry.Outcome{Status: registry.StatusKilled})
	w.pass(time.Second)
	w.is.False(d.returned(), "work was still alive")
	two.Settle(registry.Outcome{Status: registry.StatusKilled})
	w.settled()
	w.is.True(d.returned())
	_, err := d.result()
	w.is.NoError(err)
}

func disposeRemoves(w *world) {
	agent := w.open(alice(), 0)
	live, ended := w.start(agent, Script{Cancel: settlesKilled}), w.start(agent, Script{})
	ended.Complete("")
	w.is.NoError(w.DisposeAgent(w.ctx, alice(), agent.Agent))
	for _, work := range []*Work{live, ended} {
		_, err := w.Get(w.ctx, alice(), work.ID)
		w.refused(err, registry.CodeGone)
		w.is.Equal(1, work.Discards(), "%s", work.ID)
	}
	w.is.Empty(w.ids(alice(), registry.ListOptions{}))
	w.is.Empty(w.agents(alice()))
}

func disposeSilent(w *world) {
	agent := w.open(alice(), 0)
	slow, quick := w.start(agent, Script{}), w.start(agent, Script{Cancel: settlesKilled})
	d := w.disposing(alice(), agent.Agent)
	slow.Complete("exit code: 0")
	_, err := d.result()
	w.is.NoError(err)
	w.pass(time.Hour)
	w.tale(slow, registry.ChangeRegistered, registry.ChangeStopping, registry.ChangeSettled, registry.ChangeRemoved)
	w.notices(quick, 0)
}

func disposeTells(w *world) {
	agent := w.open(alice(), 0)
	work := w.start(agent, Script{Cancel: settlesKilled})
	w.is.NoError(w.DisposeAgent(w.ctx, alice(), agent.Agent))
	// At once, without letting anything else run.
	w.is.Equal(1, w.log.count(work.ID, registry.ChangeRemoved))
	events := w.log.all()
	w.is.Equal(registry.ChangeOwnerGone, events[len(events)-1].what)
}

func disposeEmptied(w *world) {
	agent := w.open(alice(), 0)
	other := w.start(alice(), Script{})
	var seen []registry.ID
	w.OnChange(registry.SessionScope("alice"), func(c registry.Change) {
		if c.Type == registry.ChangeOwnerGone {
			l, _ := w.List(w.ctx, alice(), registry.ListOptions{})
			for _, s := range l.Tasks {
				seen = append(seen, s.ID)
			}
		}
	})
	w.start(agent, Script{Cancel: settlesKilled})
	w.start(agent, Script{}).Complete("")
	w.is.NoError(w.DisposeAgent(w.ctx, alice(), agent.Agent))
	w.settled()
	w.is.Equal([]registry.ID{other.ID}, seen)
}

// gone counts how often the end of an owner was told.
func (w *world) gone(c registry.Caller) int {
	n := 0
	for _, e := range w.log.all() {
		if e.what == registry.ChangeOwnerGone && e.of.Owner.Session == c.Session && e.of.Owner.Agent == c.Agent {
			n++
		}
	}
	return n
}

func disposeIdle(w *world) {
	agent := w.open(alice(), 0)
	w.is.NoError(w.DisposeAgent(w.ctx, alice(), agent.Agent))
	w.is.Equal(1, w.gone(agent))
	w.is.Empty(w.agents(alice()))
}

func disposeStopping(w *world) {
	agent := w.open(alice(), 0)
	work := w.start(agent, Script{})
	w.kill(work, "by hand")
	d := w.disposing(alice(), agent.Agent)
	w.is.False(d.returned())
	work.Settle(registry.Outcome{Status: registry.StatusKilled})
	_, err := d.result()
	w.is.NoError(err)
	w.tale(work, registry.ChangeRegistered, registry.ChangeStopping, registry.ChangeSettled, registry.ChangeRemoved)
}

func disposeTogether(w *world) {
	agent := w.open(alice(), 0)
	for range 3 {
		w.start(agent, Script{Cancel: func(work *Work, _ string) error {
			time.AfterFunc(time.Second, func() {
				work.Settle(registry.Outcome{Status: registry.StatusKilled})
			})
			return nil
		}})
	}
	before := time.Now()
	w.is.NoError(w.DisposeAgent(w.ctx, alice(), agent.Agent))
	w.is.Equal(time.Second, time.Since(before))
}

func disposeOthers(w *world) {
	agent, sibling := w.open(alice(), 0), w.open(alice(), 0)
	w.start(agent, Script{Cancel: settlesKilled})
	others := []*Work{
		w.start(alice(), Script{}), w.start(sibling, Script{}), w.start(bob(), Script{}), w.start(nobody(), Script{}),
	}
	ended := w.start(sibling, Script{})
	ended.Complete("")
	w.is.NoError(w.DisposeAgent(w.ctx, alice(), agent.Agent))
	w.settled()
	for _, work := range others {
		w.is.Empty(work.Cancels())
		w.tale(work, registry.ChangeRegistered)
	}
	w.tale(ended, registry.ChangeRegistered, registry.ChangeSettled, notice)
	w.alive(sibling, true)
}

func disposeReleasesWaits(w *world) {
	agent := w.open(alice(), 0)
	work := w.start(agent, Script{})
	waits := []*call[*registry.Delivery]{
		w.reading(work, registry.ReadOptions{Wait: time.Hour}), w.reading(work, registry.ReadOptions{Wait: time.Hour}),
		w.reading(work, registry.ReadOptions{Wait: time.Hour, Explicit: true}),
	}
	look := w.looking(work, 0, time.Hour)
	d := w.disposing(alice(), agent.Agent)
	work.Settle(registry.Outcome{Status: registry.StatusKilled})
	_, err := d.result()
	w.is.NoError(err, "a reader holds no disposal up")
	w.settled()
	for _, wait := range waits {
		w.is.True(wait.returned())
		answer, err := wait.result()
		w.is.NoError(err, "its end was promised to it")
		w.is.Equal(registry.StatusKilled, answer.Snapshot.Status)
		w.is.NoError(answer.Confirm())
	}
	w.is.True(look.returned())
	if _, err := look.result(); err != nil {
		w.refused(err, registry.CodeGone)
	}
	w.notices(work, 0)
}

func disposeCallerLeaves(w *world) {
	agent := w.open(alice(), 0)
	work := w.start(agent, Script{})
	d := w.disposing(alice(), agent.Agent)
	d.leave()
	w.settled()
	w.is.True(d.returned())
	_, err := d.result()
	w.is.ErrorIs(err, context.Canceled)
	w.is.Zero(w.gone(agent))

	// Asking again waits for the same end, or says that it has begun.
	again := w.disposing(alice(), agent.Agent)
	work.Settle(registry.Outcome{Status: registry.StatusKilled})
	if _, err := again.result(); err != nil {
		w.refused(err, registry.CodeGone)
	}
	w.settled()
	w.is.Equal(1, w.gone(agent))
	w.tale(work, registry.ChangeRegistered, registry.ChangeStopping, registry.ChangeSettled, registry.ChangeRemoved)
	w.is.Equal(1, work.Discards())
}

func disposeHeld(w *world) {
	for _, end := range []func(*registry.Delivery){
		func(d *registry.Delivery) { _ = d.Confirm() },
		func(d *registry.Delivery) { d.Abandon() },
	} {
		agent := w.open(alice(), 0)
		work := w.start(agent, Script{})
		d := w.promised(work, registry.ReadOptions{})
		w.is.NoError(w.DisposeAgent(w.ctx, alice(), agent.Agent))
		end(d)
		w.pass(time.Hour)
		w.tale(work, registry.ChangeRegistered, registry.ChangeSettled, registry.ChangeRemoved)
	}
}

func disposeNoStart(w *world) {
	agent := w.open(alice(), 0)
	work := w.start(agent, Script{})
	d := w.disposing(alice(), agent.Agent)
	starts := w.jobs.Starts()
	w.refused(w.tryStart(agent), registry.CodeGone)
	w.alive(agent, false)
	work.Settle(registry.Outcome{Status: registry.StatusKilled})
	_, err := d.result()
	w.is.NoError(err)
	w.refused(w.tryStart(agent), registry.CodeGone)
	w.is.Equal(starts, w.jobs.Starts(), "the starter ran")
}

// disposeAgain: whoever asks again, because an answer was lost say, is answered
// when the work has ended and no sooner, also for a default agent.
func disposeAgain(w *world) {
	for _, c := range []registry.Caller{alice(), w.open(alice(), 0)} {
		work := w.start(c, Script{})
		agent := work.Owner.Agent
		first, second := w.disposing(alice(), agent), w.disposing(alice(), agent)
		w.pass(time.Second)
		w.is.False(first.returned())
		w.is.False(second.returned(), "work of %s was still alive", agent)
		work.Settle(registry.Outcome{Status: registry.StatusKilled})
		w.settled()
		for _, d := range []*call[struct{}]{first, second} {
			w.is.True(d.returned())
		}
		_, err := first.result()
		w.is.NoError(err)
	}
}
