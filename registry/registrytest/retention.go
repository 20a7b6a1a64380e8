package registrytest

import (
	"errors"
	"sync/atomic"
	"time"

	"afoot/registry"
)

// retentionCases: ended tasks beyond number or age are let go by themselves.
func retentionCases() []testCase {
	three := Options{RetainCount: 3}
	hour := Options{RetainAge: time.Hour}
	return []testCase{
		{name: "beyond the number the oldest end goes first", options: three, run: retainOldest},
		{name: "the order is that of the ends", options: three, run: retainOrder},
		{name: "reported ends go before unreported ones", options: three, run: retainReportedFirst},
		{name: "a report makes a place in the order of the ends", options: three, run: retainReportedLater},
		{name: "unreported ends go when they alone are too many, and their notice stays", options: three, run: retainUnreported},
		{name: "the number is per exact owner, and for nobody", options: three, run: retainPerOwner},
		{name: "live tasks do not count and do not go", options: three, run: retainLive},
		{name: "an end beyond the age goes without a start, reported or not", options: hour, run: retainAge},
		{name: "the age begins with the end", options: hour, run: retainAgeOfEnd},
		{name: "each end has its own age", options: hour, run: retainAges},
		{name: "a task with something alive stays until it has gone", options: three, run: retainLeftovers},
		{name: "a task with something alive stays beyond its age", options: hour, run: retainLeftoversAged},
		{name: "work that can't tell what is left stays", options: hour, run: retainLeftPanics},
		{name: "work may call the service while it is asked and discarded", options: three, run: retainForeign},
		{name: "work that fails to discard starves no other", options: three, run: retainDiscardFails},
		{name: "an evicted id is gone for every verb", options: three, run: retainGone},
		{name: "a key whose task was evicted is gone and starts nothing", options: three, run: retainKey},
		{name: "a list goes on behind what was evicted", options: three, run: retainList},
		{name: "a purged task is not evicted too", options: hour, run: retainPurged},
		{name: "an agent's end takes what is left of its tasks", options: three, run: retainDisposed},
		{name: "nothing is evicted after the end of the service", options: hour, run: retainClosed},
	}
}

// ends starts work and ends it, and lets a moment pass.
func (w *world) ends(c registry.Caller, s Script) *Work {
	w.t.Helper()
	work := w.start(c, s)
	work.Output.Append("abc")
	work.Complete("")
	w.pass(tick)
	return work
}

// reads is ends, and the end was read.
func (w *world) reads(c registry.Caller, s Script) *Work {
	w.t.Helper()
	work := w.start(c, s)
	work.Output.Append("abc")
	d := w.promised(work, registry.ReadOptions{})
	w.is.NoError(d.Confirm())
	w.pass(tick)
	return work
}

// kept asserts which tasks of their session are still there.
func (w *world) kept(works ...*Work) {
	w.t.Helper()
	w.settled()
	for _, work := range works {
		_, err := w.Get(w.ctx, work.caller(), work.ID)
		w.is.NoError(err)
		w.is.Zero(work.Discards(), "%s", work.ID)
		w.is.Zero(w.log.count(work.ID, registry.ChangeEvicted), "%s", work.ID)
	}
}

func (w *world) evicted(works ...*Work) {
	w.t.Helper()
	w.settled()
	for _, work := range works {
		_, err := w.Get(w.ctx, work.caller(), work.ID)
		w.is.Equal(registry.CodeGone, registry.CodeOf(err), "%s is still there", work.ID)
		w.is.Equal(1, work.Discards(), "%s", work.ID)
		w.is.Equal(1, w.log.count(work.ID, registry.ChangeEvicted), "%s", work.ID)
		w.is.Zero(w.log.count(work.ID, registry.ChangeRemoved), "%s", work.ID)
	}
}

func retainOldest(w *world) {
	var works []*Work
	for range 7 {
		works = append(works, w.reads(alice(), Script{}))
	}
	w.evicted(works[:4]...)
	w.kept(works[4:]...)
	w.tale(works[0], registry.ChangeRegistered, registry.ChangeSettled, registry.ChangeReported, registry.ChangeEvicted)
}

func retainOrder(w *world) {
	first, second := w.start(alice(), Script{}), w.start(alice(), Script{})
	w.kill(first, "")
	w.kill(second, "")
	second.Complete("")
	w.pass(tick)
	first.Complete("")
	w.pass(tick)
	others := []*Work{w.reads(alice(), Script{}), w.reads(alice(), Script{})}
	w.evicted(second)
	w.kept(append(others, first)...)
}

func retainReportedFirst(w *world) {
	a, b := w.ends(alice(), Script{}), w.ends(alice(), Script{})
	c := w.reads(alice(), Script{})
	w.kept(a, b, c)
	d := w.reads(alice(), Script{})
	w.evicted(c)
	w.kept(a, b, d)
	e := w.ends(alice(), Script{})
	w.evicted(d)
	w.kept(a, b, e)
}

// retainReportedLater: an old end that is read late is the first to go.
func retainReportedLater(w *world) {
	a := w.ends(alice(), Script{})
	b, c := w.reads(alice(), Script{}), w.reads(alice(), Script{})
	w.take(a)
	d := w.ends(alice(), Script{})
	w.evicted(a)
	w.kept(b, c, d)
}

func retainUnreported(w *world) {
	a, b, c := w.ends(alice(), Script{}), w.ends(alice(), Script{}), w.ends(alice(), Script{})
	w.kept(a, b, c)
	d := w.ends(alice(), Script{})
	w.evicted(a)
	w.kept(b, c, d)
	w.tale(a, registry.ChangeRegistered, registry.ChangeSettled, notice, registry.ChangeEvicted)
	w.is.False(w.heard(a, registry.ChangeEvicted).Reported)
}

func retainPerOwner(w *world) {
	agent := w.open(alice(), 0)
	callers := []registry.Caller{alice(), agent, bob(), nobody()}
	var first, rest []*Work
	for range 3 {
		for _, c := range callers {
			rest = append(rest, w.reads(c, Script{}))
		}
	}
	w.kept(rest...)
	first, rest = rest[:4], rest[4:]
	for _, c := range callers {
		rest = append(rest, w.reads(c, Script{}))
	}
	w.evicted(first...)
	w.kept(rest...)
}

func retainLive(w *world) {
	var live []*Work
	for range 5 {
		live = append(live, w.start(alice(), Script{}))
	}
	w.kill(live[0], "")
	a, b, c := w.reads(alice(), Script{}), w.reads(alice(), Script{}), w.reads(alice(), Script{})
	w.pass(23 * time.Hour)
	w.kept(append(live, a, b, c)...)
	w.pass(24 * time.Hour)
	w.evicted(a, b, c)
	w.kept(live...)
}

func retainAge(w *world) {
	a, b, c := w.ends(alice(), Script{}), w.reads(bob(), Script{}), w.ends(nobody(), Script{})
	w.pass(time.Hour - 10*tick)
	w.kept(a, b, c)
	w.pass(10 * tick)
	w.evicted(a, b, c)
	w.notices(a, 1)
	w.is.Empty(w.ids(alice(), registry.ListOptions{}))
}

func retainAgeOfEnd(w *world) {
	work := w.start(alice(), Script{})
	w.pass(3 * time.Hour)
	work.Complete("")
	w.pass(time.Hour - tick)
	w.kept(work)
	w.pass(tick)
	w.evicted(work)
}

func retainAges(w *world) {
	a := w.ends(alice(), Script{})
	w.pass(10 * time.Minute)
	b := w.ends(alice(), Script{})
	w.pass(10 * time.Minute)
	c := w.ends(bob(), Script{})
	w.pass(40 * time.Minute)
	w.evicted(a)
	w.kept(b, c)
	w.pass(10 * time.Minute)
	w.evicted(b)
	w.kept(c)
	w.pass(10 * time.Minute)
	w.evicted(c)
}

// lingering is a script of work of which something lives while alive is set.
func lingering(alive *atomic.Bool) Script {
	return Script{
		Leftovers: func(string) <-chan struct{} { return nil },
		Left:      alive.Load,
	}
}

func retainLeftovers(w *world) {
	var alive atomic.Bool
	alive.Store(true)
	a := w.reads(alice(), lingering(&alive))
	b, c, d := w.reads(alice(), Script{}), w.reads(alice(), Script{}), w.reads(alice(), Script{})
	w.evicted(b)
	w.kept(a, c, d)
	w.is.Empty(w.take(a).Text, "it can be read all along")
	alive.Store(false)
	w.pass(2 * time.Minute)
	w.kept(a, c, d) // no more than three are left
	e := w.reads(alice(), Script{})
	w.evicted(a)
	w.kept(c, d, e)
}

func retainLeftoversAged(w *world) {
	var alive atomic.Bool
	alive.Store(true)
	a := w.ends(alice(), lingering(&alive))
	w.pass(48 * time.Hour)
	w.kept(a)
	alive.Store(false)
	w.pass(2 * time.Minute)
	w.evicted(a)
}

func retainLeftPanics(w *world) {
	var asked atomic.Int32
	a := w.ends(alice(), Script{
		Leftovers: func(string) <-chan struct{} { return nil },
		Left: func() bool {
			asked.Add(1)
			panic("left")
		},
	})
	b := w.ends(alice(), Script{})
	w.pass(2 * time.Hour)
	w.kept(a)
	w.evicted(b)
	w.is.Positive(asked.Load())
}

func retainForeign(w *world) {
	script := Script{
		Leftovers: func(string) <-chan struct{} { return nil },
		Left: func() bool {
			_, err := w.List(w.ctx, alice(), registry.ListOptions{})
			return err != nil
		},
		Discard: func(work *Work) error {
			_, err := w.Get(w.ctx, alice(), work.ID)
			if registry.CodeOf(err) != registry.CodeGone {
				panic("discarded before it was removed")
			}
			return nil
		},
	}
	a := w.reads(alice(), script)
	b := []*Work{w.reads(alice(), script), w.reads(alice(), script), w.reads(alice(), script)}
	w.evicted(a)
	w.kept(b...)
}

func retainDiscardFails(w *world) {
	a := w.reads(alice(), Script{Discard: func(*Work) error { panic("discard") }})
	b := w.reads(alice(), Script{Discard: func(*Work) error { return errors.New("full") }})
	c := w.reads(alice(), Script{})
	for range 3 {
		w.reads(alice(), Script{})
	}
	w.evicted(a, b, c)
}

func retainGone(w *world) {
	a := w.reads(alice(), Script{Input: newPipe(9).write})
	for range 3 {
		w.reads(alice(), Script{})
	}
	w.evicted(a)
	w.fenced(alice(), registry.CodeGone, a.ID)
	w.fenced(bob(), registry.CodeGone, a.ID)
	_, err := w.Input(w.ctx, alice(), a.ID, nil, true)
	w.refused(err, registry.CodeGone)
	w.refused(w.Signal(w.ctx, alice(), a.ID, "INT"), registry.CodeGone)
}

func retainKey(w *world) {
	r := w.keyed("k", 1, Script{})
	w.same(alice(), r, "job-1", false)
	w.jobs.Work("job-1").Complete("")
	w.take(w.jobs.Work("job-1"))
	w.pass(tick)
	for range 3 {
		w.reads(alice(), Script{})
	}
	w.evicted(w.jobs.Work("job-1"))
	starts := w.jobs.Starts()
	_, err := w.Start(w.ctx, alice(), r)
	w.refused(err, registry.CodeGone)
	r.Fingerprint[0] = 2
	_, err = w.Start(w.ctx, alice(), r)
	w.refused(err, registry.CodeIdempotencyMismatch)
	w.is.Equal(starts, w.jobs.Starts())
}

func retainList(w *world) {
	first := []*Work{w.reads(alice(), Script{}), w.reads(alice(), Script{}), w.reads(alice(), Script{})}
	l, err := w.List(w.ctx, alice(), registry.ListOptions{Limit: 2})
	w.is.NoError(err)
	a, b := w.reads(alice(), Script{}), w.reads(alice(), Script{})
	w.evicted(first[:2]...)
	l, err = w.List(w.ctx, alice(), registry.ListOptions{After: l.Next})
	w.is.NoError(err)
	w.is.Len(l.Tasks, 3)
	w.is.Equal([]registry.ID{first[2].ID, a.ID, b.ID}, w.ids(alice(), registry.ListOptions{}))
}

func retainPurged(w *world) {
	a, b := w.ends(alice(), Script{}), w.ends(alice(), Script{})
	w.is.NoError(w.Purge(w.ctx, alice(), a.ID))
	w.pass(2 * time.Hour)
	w.evicted(b)
	w.is.Zero(w.log.count(a.ID, registry.ChangeEvicted))
	w.is.Equal(1, w.log.count(a.ID, registry.ChangeRemoved))
	w.is.Equal(1, a.Discards())
}

func retainDisposed(w *world) {
	agent := w.open(alice(), 0)
	var works []*Work
	for range 5 {
		works = append(works, w.ends(agent, Script{}))
	}
	w.is.NoError(w.DisposeAgent(w.ctx, alice(), agent.Agent))
	w.pass(48 * time.Hour)
	for i, work := range works {
		w.is.Equal(1, work.Discards())
		w.is.Equal(i < 2, w.log.count(work.ID, registry.ChangeEvicted) == 1)
		w.is.Equal(i >= 2, w.log.count(work.ID, registry.ChangeRemoved) == 1)
	}
}

func retainClosed(w *world) {
	a := w.ends(alice(), Script{})
	w.is.NoError(w.Close(w.ctx))
	w.pass(48 * time.Hour)
	w.kept(a)
}
