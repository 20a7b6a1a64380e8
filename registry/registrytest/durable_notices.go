package registrytest

import (
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
