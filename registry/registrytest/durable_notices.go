package registrytest

import (
	"context"
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
		{name: "none is evicted that nobody was told of, whenever the process dies", options: Options{RetainCount: 1}, run: noticeUnheardDeath},
		{name: "none is evicted that the end of the service kept silent of", options: Options{RetainCount: 1}, run: noticeUnheardEnd},
		{name: "nor is one that came of age while nobody was there", options: Options{RetainAge: time.Hour}, run: noticeUnheardAged},
		{name: "one that is reported while it waits lets its task go", options: Options{RetainCount: 1}, run: noticeUnheardReported},
		{name: "a task stays until it was heard that it is reported", options: Options{RetainCount: 1}, run: noticeReportUnheard},
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

// unheard are two ends whose notices wait for the disk, of which one is too many.
func (w *durableWorld) unheard() (one, two *Work) {
	one, two = w.start(alice(), Script{}), w.start(alice(), Script{})
	w.journal.Hold()
	for _, work := range []*Work{one, two} {
		go work.Complete("")
		w.pass(tick)
	}
	return one, two
}

func noticeUnheardDeath(w *durableWorld) {
	for lucky := range 4 {
		one, two := w.unheard()
		w = w.die(lucky)
		w.notices(one, 1)
		w.notices(two, 1)
		w.evicted(w.of(one))
		w.is.NoError(w.Purge(w.ctx, alice(), two.ID))
	}
}

func noticeUnheardEnd(w *durableWorld) {
	one, two := w.unheard()
	c := w.closing()
	w.journal.Release()
	_, err := c.result()
	w.is.NoError(err)
	w.notices(one, 0)
	w = w.reopen()
	w.tale(one, notice, registry.ChangeEvicted)
	w.tale(two, notice)
}

// noticeUnheardAged: the daemon dies again while what it lost by the first death is not
// written.
func noticeUnheardAged(w *durableWorld) {
	ended := w.start(alice(), Script{})
	w.start(bob(), Script{})
	w.journal.Hold()
	go ended.Complete("")
	w.settled()
	next, jobs := w.journal.Die(1), w.jobs.Successor()
	w.pass(2 * time.Hour)
	next.Hold()
	second := newWorldOf(w.t, testCase{options: w.c.options}, jobs, func(o Options) registry.Service { return w.factory(w.t, o, next) })
	loading := begin(w.ctx, func(ctx context.Context) (struct{}, error) {
		durable, _ := second.Service.(Durable)
		return struct{}{}, durable.Load(ctx)
	})
	w.settled()
	w.is.False(loading.returned())
	second.notices(ended, 0)
	w = newDurableWorld(w.t, w.factory, w.c, next.Die(100), jobs.Successor())
	w.tale(ended, notice, registry.ChangeEvicted)
}

func noticeUnheardReported(w *durableWorld) {
	one, two := w.unheard()
	go func() { _, _, _ = w.Kill(w.ctx, alice(), one.ID, "") }()
	w.settled()
	w.journal.Release()
	w.journal.Write(100)
	w.evicted(one)
	w.kept(two)
	w.tale(one, registry.ChangeRegistered, registry.ChangeSettled, registry.ChangeReported, registry.ChangeEvicted)
}

// noticeReportUnheard: who has the notice asks for the end before it tells, and must not
// find it gone while the report waits for the disk.
func noticeReportUnheard(w *durableWorld) {
	one := w.ends(alice(), Script{})
	read := w.hold(one)
	two := w.start(alice(), Script{})
	w.hold(two)
	two.Complete("")
	w.kept(one, two)
	w.journal.Hold()
	go func() { _ = read.Confirm() }()
	w.settled()
	delivered, _ := w.Answered(one.ID)
	w.is.True(delivered)
	w.journal.Release()
	w.journal.Write(100)
	w.evicted(one)
	w.kept(two)
	w.tale(one, registry.ChangeRegistered, registry.ChangeSettled, notice, registry.ChangeReported, registry.ChangeEvicted)
}
