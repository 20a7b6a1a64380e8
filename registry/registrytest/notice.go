package registrytest

import (
	"fmt"
	"time"

	"afoot/registry"
)

// noticeCases: rule 13.
func noticeCases() []testCase {
	return []testCase{
		{name: "an end goes to the exact owner that started the task", run: noticeOwner},
		{name: "a reported task is not announced", run: noticeNotReported},
		{name: "unowned work notifies nobody", run: noticeUnowned},
		{name: "a later agent of the same name hears of its own work alone", run: noticeSuccessor},
		{name: "each of many ends is announced once", options: Options{MaxTasksPerOwner: 100}, run: noticeMany},
		{name: "a notice shows the end with all its bytes", run: noticeFacts},
		{name: "who listens later hears nothing of before", run: noticeLate},
	}
}

func noticeOwner(w *world) {
	agent, sibling := w.open(alice(), 0), w.open(alice(), 0)
	for _, c := range []registry.Caller{alice(), agent, sibling, bob()} {
		work := w.start(c, Script{})
		work.Complete("")
		n := w.heard(work, notice)
		w.is.Equal(work.Owner, n.Owner)
		w.is.Equal(c.Session, n.Owner.Session)
		w.notices(work, 1)
	}
}

func noticeNotReported(w *world) {
	killed := w.start(alice(), Script{Cancel: settlesKilled})
	w.kill(killed, "")
	waited := w.start(alice(), Script{})
	w.is.NoError(w.promised(waited, registry.ReadOptions{}).Confirm())
	w.pass(time.Hour)
	w.notices(killed, 0)
	w.notices(waited, 0)
}

func noticeUnowned(w *world) {
	work := w.start(nobody(), Script{})
	work.Complete("")
	w.tale(work, registry.ChangeRegistered, registry.ChangeSettled)
	held := w.start(nobody(), Script{})
	w.promised(held, registry.ReadOptions{}).Abandon()
	w.pass(time.Hour)
	w.tale(held, registry.ChangeRegistered, registry.ChangeSettled)
}

func noticeSuccessor(w *world) {
	ended := w.start(alice(), Script{})
	d := w.promised(ended, registry.ReadOptions{})
	live := w.start(alice(), Script{Cancel: settlesKilled})
	w.is.NoError(w.DisposeAgent(w.ctx, alice(), registry.DefaultAgent))
	successor := w.start(alice(), Script{})
	d.Abandon()
	live.Complete("late")
	w.pass(time.Hour)
	w.notices(ended, 0)
	w.notices(live, 0)
	successor.Complete("")
	w.notices(successor, 1)
	w.is.Equal(successor.Owner, w.heard(successor, notice).Owner)
}

func noticeMany(w *world) {
	works := make([]*Work, 60)
	for i := range works {
		works[i] = w.start(alice(), Script{})
	}
	for i, work := range works {
		go work.Complete(fmt.Sprint("exit code: ", i))
	}
	w.settled()
	for i, work := range works {
		w.tale(work, registry.ChangeRegistered, registry.ChangeSettled, notice)
		w.is.Equal(fmt.Sprint("exit code: ", i), w.heard(work, notice).Detail)
	}
}

func noticeFacts(w *world) {
	var seen registry.Snapshot
	var text string
	w.OnDone(registry.AllOwners(), func(n registry.Notice) {
		seen, _ = w.Get(w.ctx, alice(), n.Snapshot.ID)
		r, _ := w.Look(w.ctx, alice(), n.Snapshot.ID, 0, registry.LookOptions{})
		text = r.Text
	})
	work := w.start(alice(), Script{Label: "the label"})
	work.Output.Append("a\nb\n")
	work.Complete("exit code: 6")
	n := w.heard(work, notice)
	w.is.Equal(n, seen, "the end can be seen by who is told of it")
	w.is.Equal("a\nb\n", text)
	w.is.Equal("the label", n.Label)
	w.is.Equal("exit code: 6", n.Detail)
	w.is.EqualValues(4, n.OutputBytes)
	w.is.False(n.Reported)
}

func noticeLate(w *world) {
	work := w.start(alice(), Script{})
	work.Complete("")
	w.settled()
	late := w.listen(registry.AllOwners())
	w.pass(time.Hour)
	w.is.Empty(late.notices)
	w.is.Empty(late.changes)
}
