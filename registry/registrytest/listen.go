package registrytest

import (
	"afoot/registry"
)

// listenCases: listeners are scoped, contained, run one at a time with no lock
// held, and can be taken off.
func listenCases() []testCase {
	return []testCase{
		{name: "change listeners hear their own scope", run: scopedChanges},
		{name: "done listeners hear their own scope", run: scopedNotices},
		{name: "a detached listener hears nothing more", run: detachedListeners},
		{name: "detaching one of two equal listeners leaves the other", run: equalListeners},
		{name: "a listener may detach itself", run: detachesItself},
		{name: "a change listener that panics starves no other", run: changePanic},
		{name: "a done listener that panics starves no other", run: donePanic},
		{name: "a task is not evicted before its end was heard", options: Options{RetainCount: 1}, run: heardThenEvicted},
		{name: "a done listener may call the service", run: doneCallsBack},
		{name: "a change listener may call the service", run: changeCallsBack},
		{name: "events that a listener causes come after the one it hears", run: nestedEvents},
	}
}

// ear is a pair of listeners that remember the ids they heard of.
type ear struct {
	changes, notices []registry.ID
	detachChange     func()
	detachDone       func()
}

func (w *world) listen(scope registry.Scope) *ear {
	e := &ear{}
	e.detachChange = w.OnChange(scope, func(c registry.Change) { e.changes = append(e.changes, c.Snapshot.ID) })
	e.detachDone = w.OnDone(scope, func(n registry.Notice) { e.notices = append(e.notices, n.Snapshot.ID) })
	return e
}

func scopedChanges(w *world) {
	all := w.listen(registry.AllOwners())
	alices := w.listen(registry.SessionScope("alice"))
	unowned := w.listen(registry.Scope{})
	a, b, u := w.start(alice(), Script{}), w.start(bob(), Script{}), w.start(nobody(), Script{})
	agents := w.start(w.open(alice(), 0), Script{})
	w.settled()
	w.is.Equal([]registry.ID{a.ID, b.ID, u.ID, agents.ID}, all.changes)
	w.is.Equal([]registry.ID{a.ID, agents.ID}, alices.changes)
	w.is.Equal([]registry.ID{u.ID}, unowned.changes)
}

func scopedNotices(w *world) {
	all := w.listen(registry.AllOwners())
	alices := w.listen(registry.SessionScope("alice"))
	unowned := w.listen(registry.Scope{})
	a, b, u := w.start(alice(), Script{}), w.start(bob(), Script{}), w.start(nobody(), Script{})
	for _, work := range []*Work{a, b, u} {
		work.Complete("")
		w.settled()
	}
	w.is.Equal([]registry.ID{a.ID, b.ID}, all.notices)
	w.is.Equal([]registry.ID{a.ID}, alices.notices)
	w.is.Empty(unowned.notices, "unowned work notifies nobody")
}

func detachedListeners(w *world) {
	e := w.listen(registry.AllOwners())
	work := w.start(alice(), Script{})
	w.settled()
	e.detachChange()
	e.detachChange()
	e.detachDone()
	e.detachDone()
	work.Complete("")
	w.settled()
	w.is.Equal([]registry.ID{work.ID}, e.changes, "registered only")
	w.is.Empty(e.notices)
	w.notices(work, 1)
}

func equalListeners(w *world) {
	heard := 0
	listener := func(registry.Notice) { heard++ }
	detach := w.OnDone(registry.AllOwners(), listener)
	w.OnDone(registry.AllOwners(), listener)
	detach()
	detach()
	w.start(alice(), Script{}).Complete("")
	w.settled()
	w.is.Equal(1, heard)
}

func detachesItself(w *world) {
	heard := 0
	var detach func()
	detach = w.OnDone(registry.AllOwners(), func(registry.Notice) {
		heard++
		detach()
	})
	for range 3 {
		work := w.start(alice(), Script{})
		work.Complete("")
		w.notices(work, 1)
	}
	w.is.Equal(1, heard)
}

func changePanic(w *world) {
	panics := 0
	w.OnChange(registry.AllOwners(), func(registry.Change) {
		panics++
		panic("scripted panic of a change listener")
	})
	late := w.listen(registry.AllOwners())
	work := w.start(alice(), Script{})
	work.Complete("")
	w.tale(work, registry.ChangeRegistered, registry.ChangeSettled, notice)
	w.is.Equal([]registry.ID{work.ID, work.ID}, late.changes)
	w.is.Equal([]registry.ID{work.ID}, late.notices)
	w.is.Equal(2, panics, "a panic detaches nobody")
}

func donePanic(w *world) {
	panics := 0
	w.OnDone(registry.AllOwners(), func(registry.Notice) {
		panics++
		panic("scripted panic of a done listener")
	})
	late := w.listen(registry.AllOwners())
	first, second := w.start(alice(), Script{}), w.start(alice(), Script{})
	first.Complete("")
	w.settled()
	second.Complete("")
	w.settled()
	w.is.Equal([]registry.ID{first.ID, second.ID}, late.notices)
	w.is.Equal(2, panics)
}

func doneCallsBack(w *world) {
	var text string
	var next registry.ID
	failed := make(chan error, 3)
	w.OnDone(registry.AllOwners(), func(n registry.Notice) {
		if next != "" {
			return
		}
		d, err := w.Read(w.ctx, alice(), n.Snapshot.ID, registry.ReadOptions{})
		failed <- err
		if err == nil {
			text = d.Text
			failed <- d.Confirm()
		}
		started, err := w.Start(w.ctx, alice(), w.request(Script{}))
		failed <- err
		next = started.Snapshot.ID
	})
	work := w.start(alice(), Script{})
	work.Output.Append("all of it")
	work.Complete("")
	w.settled()
	for range 3 {
		w.is.NoError(<-failed)
	}
	w.is.Equal("all of it", text)
	w.is.Equal(registry.ID("job-2"), next)
	w.tale(work, registry.ChangeRegistered, registry.ChangeSettled, notice, registry.ChangeReported)
}

func changeCallsBack(w *world) {
	var lists []int
	w.OnChange(registry.AllOwners(), func(registry.Change) {
		l, err := w.List(w.ctx, alice(), registry.ListOptions{})
		if err != nil {
			return
		}
		lists = append(lists, len(l.Tasks))
	})
	work := w.start(alice(), Script{})
	work.Complete("")
	w.settled()
	w.is.NoError(w.Purge(w.ctx, alice(), work.ID))
	w.settled()
	w.is.Equal([]int{1, 1, 0}, lists, "each listener sees the state that it is told of")
}

// nestedEvents kills from inside a listener work whose cancel settles on the
// spot: three events arise while one is being told.
func nestedEvents(w *world) {
	w.OnChange(registry.AllOwners(), func(c registry.Change) {
		if c.Type == registry.ChangeRegistered {
			_, _, _ = w.Kill(w.ctx, alice(), c.Snapshot.ID, "at birth")
		}
	})
	depth, deepest := 0, 0
	var order []registry.ChangeType
	w.OnChange(registry.AllOwners(), func(c registry.Change) {
		depth++
		deepest = max(deepest, depth)
		order = append(order, c.Type)
		_, _ = w.List(w.ctx, alice(), registry.ListOptions{})
		depth--
	})
	work := w.start(alice(), Script{Cancel: settlesKilled})
	w.settled()
	w.is.Equal(registry.StatusKilled, w.get(work).Status)
	w.is.Equal(1, deepest, "events ran inside one another")
	w.is.Equal(registry.ChangeRegistered, order[0])
	w.is.Equal(registry.ChangeSettled, order[len(order)-1])
	w.notices(work, 0)
}

// settlesKilled is a cancel that settles before it returns.
func settlesKilled(w *Work, _ string) error {
	w.Settle(registry.Outcome{Status: registry.StatusKilled, Detail: "signal: SIGTERM"})
	return nil
}

// heardThenEvicted: also if a listener is slow, or fails.
func heardThenEvicted(w *world) {
	for _, fails := range []bool{false, true} {
		g := w.gate()
		detach := w.OnDone(registry.AllOwners(), func(registry.Notice) {
			g.pass()
			if fails {
				panic("done")
			}
		})
		a, b, c := w.start(alice(), Script{}), w.start(alice(), Script{}), w.start(alice(), Script{})
		for _, work := range []*Work{a, b, c} {
			go work.Complete("")
			w.pass(tick)
		}
		w.kept(a, b, c)
		g.open()
		w.evicted(a, b)
		w.kept(c)
		w.tale(b, registry.ChangeRegistered, registry.ChangeSettled, notice, registry.ChangeEvicted)
		detach()
	}
}
