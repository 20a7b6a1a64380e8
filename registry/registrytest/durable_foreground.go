package registrytest

import (
	"time"

	"afoot/registry"
)

// keptForegroundCases: what outlives the process of tasks that a call waits for.
func keptForegroundCases() []durableCase {
	bound := Options{TeardownTimeout: 8 * time.Second}
	return []durableCase{
		{name: "live work has failed, and its owner is told: the call that waited has no answer", run: keptForegroundLive},
		{name: "its end stays reported", run: keptForegroundEnded},
		{name: "promoted work that was live has failed and is told of once", run: keptPromotedLive},
		{name: "the end of promoted work that was not read is due", run: keptPromotedEnded},
		{name: "a promotion is not answered before it is written", run: keptPromotedUnwritten},
		{name: "a promotion that can't be written is answered all the same", run: keptPromotedTrouble},
		{name: "a repeated start gives the same task", run: keptForegroundKey},
		{name: "the daemon's end lets go of it, so that its owner is told after the next start", options: bound, run: shutdownForeground},
		{name: "the daemon's end lets go of what its caller waits for", options: bound, run: shutdownForegroundWaited},
		{name: "work that does not end in time is let go of too", options: bound, run: shutdownForegroundForced},
		{name: "the next image lets go of it: no call outlives a hand-over", run: moveForeground},
		{name: "an end in the moment of a hand-over is told", run: moveForegroundEnds},
		{name: "a wait that a hand-over ends promotes, and the next image tells of the end", run: movePromotes},
	}
}

func keptForegroundLive(w *durableWorld) {
	work := w.foreground(alice(), Script{})
	work.Output.Append("abc")
	w = w.die(0)
	s := w.get(work)
	w.is.Equal(registry.StatusFailed, s.Status)
	w.is.Equal(registry.DetailLost, s.Detail)
	w.is.False(s.Foreground)
	w.is.False(s.Reported)
	w.whole(work, registry.ChangeSettled, notice)
	w.is.Equal(s, w.heard(work, registry.ChangeSettled))
	w.is.Equal("abc", w.take(w.of(work)).Text)
	w = w.die(0)
	w.pass(time.Hour)
	w.whole(work)
}

func keptForegroundEnded(w *durableWorld) {
	work := w.foreground(alice(), Script{})
	work.Complete("exit code: 0")
	w.settled()
	w = w.told(work)
	w.is.True(w.get(work).Reported)
	w.is.True(w.get(work).Foreground)
	w.pass(time.Hour)
	w.whole(work)
}

func keptPromotedLive(w *durableWorld) {
	work := w.foreground(alice(), Script{})
	work.Output.Append("abc")
	d := w.letGo(work)
	w.is.Equal("abc", d.Text)
	w = w.die(0)
	s := w.get(work)
	w.is.Equal(registry.DetailLost, s.Detail)
	w.is.False(s.Foreground)
	w.is.False(s.Reported)
	w.whole(work, registry.ChangeSettled, notice)
	w.is.Equal("abc", w.take(w.of(work)).Text, "it was not confirmed")
	w = w.die(0)
	w.pass(time.Hour)
	w.whole(work)
}

func keptPromotedEnded(w *durableWorld) {
	work := w.foreground(alice(), Script{})
	w.is.NoError(w.letGo(work).Confirm())
	w.promised(work, registry.ReadOptions{})
	w = w.told(work)
	w.is.False(w.get(work).Reported)
	w.whole(work, notice)
}

func keptPromotedUnwritten(w *durableWorld) {
	for _, o := range []registry.ReadOptions{{Promote: true}, {Promote: true, Wait: time.Second}} {
		for lucky := range 2 {
			work, other := w.foreground(alice(), Script{}), w.start(alice(), Script{})
			if o.Wait > 0 {
				w.hold(work) // so that it is out of turn
			}
			w.journal.Hold()
			go other.Complete("") // what listeners hear of it is waited for by that one
			w.settled()
			c := w.reading(work, o)
			w.pass(o.Wait)
			w.is.False(c.returned())
			w = w.die(1 + lucky)
			w.is.False(w.get(work).Foreground)
			w.notices(work, 1)
		}
	}
}

func keptPromotedTrouble(w *durableWorld) {
	work := w.foreground(alice(), Script{})
	w.journal.Fail(errBoom)
	w.is.NoError(w.letGo(work).Confirm())
	w.journal.Fail(nil)
	work.Complete("")
	w.notices(work, 1)
	w = w.told(work)
	w.is.False(w.get(work).Foreground)
}

func keptForegroundKey(w *durableWorld) {
	r := w.keyed("k", 1, Script{})
	r.Foreground = true
	w.same(alice(), r, "job-1", false)
	w = w.die(0)
	w.same(alice(), r, "job-1", true)
	w.is.False(w.get(w.of(w.jobs.Work("job-1"))).Foreground)
}

func shutdownForeground(w *durableWorld) {
	work, ended := w.foreground(alice(), Script{Cancel: settlesKilled}), w.foreground(alice(), Script{})
	ended.Complete("")
	w.settled()
	w = w.reopen()
	s := w.get(work)
	w.is.Equal(registry.StatusKilled, s.Status)
	w.is.Equal(registry.DetailShutdown, s.Detail)
	w.is.False(s.Foreground)
	w.is.False(s.Reported)
	w.whole(work, notice)
	w.whole(ended)
	w.is.True(w.get(ended).Foreground)
}

func shutdownForegroundWaited(w *durableWorld) {
	work := w.foreground(alice(), Script{})
	work.Output.Append("abc")
	waiting := w.reading(work, registry.ReadOptions{Wait: time.Hour, Promote: true})
	closing := w.closing()
	d := w.delivered(waiting)
	w.is.False(d.Snapshot.Foreground)
	w.is.False(d.Snapshot.Status.Terminal())
	w.is.NoError(d.Confirm())
	work.Settle(registry.Outcome{Status: registry.StatusKilled})
	_, err := closing.result()
	w.is.NoError(err)
	w = w.reopen()
	w.is.False(w.get(work).Foreground)
	w.whole(work, notice)
}

func shutdownForegroundForced(w *durableWorld) {
	work := w.foreground(alice(), Script{})
	w = w.reopen()
	w.is.Equal(registry.StatusFailed, w.get(work).Status)
	w.is.False(w.get(work).Foreground)
	w.whole(work, notice)
}

func moveForeground(w *durableWorld) {
	work := w.foreground(alice(), Script{})
	work.Output.Append("abc")
	was := w.get(work)
	w = w.exec()
	was.Foreground = false
	w.is.Equal(was, w.get(work))
	w.is.Equal("abc", w.take(w.of(work)).Text)
	w = w.die(0)
	w.is.False(w.get(work).Foreground)
	w.whole(work, registry.ChangeSettled, notice)
}

func moveForegroundEnds(w *durableWorld) {
	work := w.foreground(alice(), Script{})
	atOnce := w.foreground(alice(), Script{Adopt: func(work *Work) error {
		work.Complete("at once")
		return nil
	}})
	w = w.exec()
	work.Complete("")
	w.settled()
	for _, work := range []*Work{work, atOnce} {
		w.whole(work, registry.ChangeSettled, notice)
		w.is.False(w.get(work).Foreground)
		w.is.False(w.get(work).Reported)
	}
}

func movePromotes(w *durableWorld) {
	work := w.foreground(alice(), Script{})
	waiting := w.reading(work, registry.ReadOptions{Wait: time.Hour, Promote: true})
	w.is.NoError(w.mover().HandOver(w.ctx))
	d := w.delivered(waiting) // it may come, and be written, behind the hand-over
	w.is.False(d.Snapshot.Foreground)
	w.is.NoError(d.Confirm())
	w.is.Zero(w.journal.InLine())
	w = w.arrive(w.moved())
	work.Complete("")
	w.whole(work, registry.ChangeSettled, notice)
	w.is.False(w.get(work).Foreground)
}
