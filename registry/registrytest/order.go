package registrytest

import (
	"time"

	"afoot/registry"
)

// orderCases: the order of events, per task and over listeners.
func orderCases() []testCase {
	return []testCase{
		{name: "registered settled notice reported removed", run: orderPlain},
		{name: "registered stopping settled removed", run: orderKilled},
		{name: "all change listeners hear of the end before any done listener", run: orderChangesFirst},
		{name: "owner gone comes last and once", run: orderOwnerGone},
		{name: "a change carries the state right after it", run: orderStates},
		{name: "every listener hears all events in one order", options: Options{MaxTasksPerOwner: 50}, run: orderSame},
	}
}

func orderPlain(w *world) {
	work := w.start(alice(), Script{})
	work.Complete("")
	w.settled()
	w.take(work)
	w.is.NoError(w.Purge(w.ctx, alice(), work.ID))
	w.tale(work, registry.ChangeRegistered, registry.ChangeSettled, notice,
		registry.ChangeReported, registry.ChangeRemoved)
}

func orderKilled(w *world) {
	work := w.start(alice(), Script{})
	w.kill(work, "")
	work.Settle(registry.Outcome{Status: registry.StatusKilled})
	w.is.NoError(w.Purge(w.ctx, alice(), work.ID))
	w.tale(work, registry.ChangeRegistered, registry.ChangeStopping,
		registry.ChangeSettled, registry.ChangeRemoved)
}

func orderChangesFirst(w *world) {
	// Attached the other way round, so that the order is not that of attaching.
	var order []string
	w.OnDone(registry.AllOwners(), func(registry.Notice) { order = append(order, "done") })
	for range 3 {
		w.OnChange(registry.AllOwners(), func(c registry.Change) {
			if c.Type == registry.ChangeSettled {
				order = append(order, "settled")
			}
		})
	}
	w.OnDone(registry.AllOwners(), func(registry.Notice) { order = append(order, "done") })
	w.start(alice(), Script{}).Complete("")
	w.settled()
	w.is.Equal([]string{"settled", "settled", "settled", "done", "done"}, order)
}

func orderOwnerGone(w *world) {
	agent := w.open(alice(), 0)
	ended := w.start(agent, Script{})
	ended.Complete("")
	live := w.start(agent, Script{Cancel: settlesKilled})
	slow := w.start(agent, Script{Cancel: func(work *Work, _ string) error {
		time.AfterFunc(time.Second, func() {
			work.Settle(registry.Outcome{Status: registry.StatusKilled})
		})
		return nil
	}})
	w.is.NoError(w.DisposeAgent(w.ctx, alice(), agent.Agent))
	events := w.log.all()
	last := events[len(events)-1]
	w.is.Equal(registry.ChangeOwnerGone, last.what)
	w.is.Equal(registry.Snapshot{Owner: live.Owner}, last.of, "it carries no task")
	w.pass(time.Hour)
	w.is.Equal(events, w.log.all(), "something was told after the disposal had answered")
	for _, work := range []*Work{ended, live, slow} {
		story := w.log.story(work.ID)
		w.is.Equal(registry.ChangeRemoved, story[len(story)-1])
		w.is.Equal(1, w.log.count(work.ID, registry.ChangeRemoved))
	}
}

func orderStates(w *world) {
	work := w.start(alice(), Script{})
	w.kill(work, "")
	work.Settle(registry.Outcome{Status: registry.StatusKilled, Detail: "signal: SIGTERM"})
	w.settled()
	w.is.NoError(w.Purge(w.ctx, alice(), work.ID))
	w.settled()
	w.is.Equal(registry.StatusRunning, w.heard(work, registry.ChangeRegistered).Status)
	w.is.Equal(registry.StatusStopping, w.heard(work, registry.ChangeStopping).Status)
	w.is.Equal(registry.StatusKilled, w.heard(work, registry.ChangeSettled).Status)
	removed := w.heard(work, registry.ChangeRemoved)
	w.is.Equal(registry.StatusKilled, removed.Status)
	w.is.Equal(work.Owner, removed.Owner)
}

func orderSame(w *world) {
	one, two := w.listen(registry.AllOwners()), w.listen(registry.AllOwners())
	for range 30 {
		work := w.start(alice(), Script{})
		go work.Complete("")
	}
	w.settled()
	w.is.Len(one.changes, 60)
	w.is.Equal(one.changes, two.changes)
	w.is.Len(one.notices, 30)
	w.is.Equal(one.notices, two.notices)
}
