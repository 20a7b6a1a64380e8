package registrytest

import (
	"context"
	"time"

	"afoot/registry"
)

// keptCases: what somebody was told is still so.
func keptCases() []durableCase {
	return []durableCase{
		{name: "an end with all its facts", run: keptEnd},
		{name: "an end that came before the work was published", run: keptEarlyEnd},
		{name: "the cursor of a confirmed read", run: keptCursor},
		{name: "the cursors of both streams", run: keptCursors},
		{name: "an abandoned read moves nothing", run: keptAbandoned},
		{name: "an ack, in part and in whole", run: keptAck},
		{name: "an ack whose answer was lost can be repeated", run: keptAckAgain},
		{name: "an ack that comes behind the end of the service", run: keptAckLate},
		{name: "what was handed out and not acked is unread", run: keptUnacked},
		{name: "a reported end, however it was reported", run: keptReported},
		{name: "a final output", run: keptFinal},
		{name: "ids are never given out twice", run: keptIDs},
		{name: "a removed task is gone, also the newest", run: keptGone},
		{name: "an evicted task is gone", options: Options{RetainCount: 2}, run: keptEvicted},
		{name: "bounds of number hold at once, in the order of the ends", options: Options{RetainCount: 5}, run: keptCount},
		{name: "bounds of age hold at once, and go on", options: Options{RetainAge: time.Hour}, run: keptAge},
		{name: "the order of a list and the places of its pages", run: keptOrder},
		{name: "sizes never go back below what was told", run: keptSizes},
		{name: "the handle of the end", run: keptHandle},
		{name: "a handle behind any number of rows without one", run: keptHandleLong},
	}
}

// told asserts that a task looks after a death as it did before.
func (w *durableWorld) told(works ...*Work) *durableWorld {
	w.t.Helper()
	var before []registry.Snapshot
	for _, work := range works {
		before = append(before, w.get(work))
	}
	next := w.die(0)
	for i, work := range works {
		next.is.Equal(before[i], next.get(work))
	}
	return next
}

func keptEnd(w *durableWorld) {
	limit := int64(1000)
	r := w.request(Script{})
	r.Spec.OutputLimitBytes = &limit
	started, err := w.Start(w.ctx, alice(), r)
	w.is.NoError(err)
	work := w.jobs.Work(started.Snapshot.ID)
	work.Output.Append("abcdef")
	work.Output.Drop(2)
	w.pass(time.Minute)
	work.Settle(registry.Outcome{Status: registry.StatusKilled, Detail: "signal: SIGKILL", Result: []byte(`{"signal":"SIGKILL"}`)})
	broken := w.start(nobody(), Script{})
	broken.Break(errBoom)
	w.pass(time.Minute)
	w.told(work, broken).told(work, broken)
}

func keptEarlyEnd(w *durableWorld) {
	work := w.start(alice(), Script{Start: func(_ context.Context, work *Work) error {
		work.Output.Append("abc")
		work.Complete("at once")
		time.Sleep(time.Second) // its start is published behind its end
		return nil
	}})
	s := w.get(work)
	w.is.False(s.FinishedAt.Before(s.StartedAt))
	w = w.told(work)
	w.is.Equal("abc", w.take(work).Text)
}

func keptCursor(w *durableWorld) {
	work := w.start(alice(), Script{})
	work.Output.Append("abc")
	w.take(work)
	work.Output.Append("def")
	w = w.die(0)
	r := w.take(work)
	w.is.Equal("def", r.Text)
	w.is.EqualValues(3, r.Offset)
	w = w.die(0)
	w.is.Empty(w.take(work).Text)
	w.is.True(w.get(work).Reported)
}

func keptCursors(w *durableWorld) {
	work := w.split("abc", "error")
	w.takeOf(work, registry.StreamStderr)
	w = w.die(0)
	w.pieces(w.take(work), "abc", "")
}

func keptAbandoned(w *durableWorld) {
	work := w.start(alice(), Script{})
	work.Output.Append("abc")
	w.hold(work).Abandon()
	d := w.hold(work)
	w = w.die(0)
	d.Abandon()
	w.is.Equal("abc", w.take(work).Text)
}

func keptAck(w *durableWorld) {
	work := w.start(alice(), Script{})
	work.Output.Append("abcdef")
	w.takeExplicit(work)
	w.ack(work, 4)
	w = w.die(0)
	r := w.takeExplicit(work)
	w.is.Equal("ef", r.Text)
	w.ack(work, r.NextOffset)
	w = w.die(0)
	w.is.True(w.get(work).Reported)
	w.is.Empty(w.take(work).Text)
}

func keptAckAgain(w *durableWorld) {
	live, ended := w.start(alice(), Script{}), w.start(alice(), Script{})
	for _, work := range []*Work{live, ended} {
		work.Output.Append("abc")
	}
	ended.Complete("")
	for _, work := range []*Work{live, ended} {
		w.takeExplicit(work)
		w.ack(work, 3)
	}
	w = w.die(0)
	w.ack(live, 3)
	w.ack(ended, 3)
	w.is.False(w.get(live).Reported, "that it died was never handed out")
	w.is.True(w.get(ended).Reported)
}

func keptUnacked(w *durableWorld) {
	work, r := w.unacked()
	w = w.die(0)
	w.refused(w.Ack(w.ctx, alice(), work.ID, r.NextOffset), registry.CodeConflict)
	w.is.Equal("abc", w.take(work).Text)
	w.notices(work, 1)
}

func keptReported(w *durableWorld) {
	read, waited, killed, acked := w.start(alice(), Script{}), w.start(alice(), Script{}), w.start(alice(), Script{}), w.start(alice(), Script{})
	for _, work := range []*Work{read, killed} {
		work.Complete("")
	}
	w.take(read)
	w.is.NoError(w.promised(waited, registry.ReadOptions{}).Confirm())
	w.kill(killed, "")
	w.ack(acked, w.promised(acked, registry.ReadOptions{Explicit: true}).NextOffset)
	all := []*Work{read, waited, killed, acked}
	w = w.told(all...)
	for _, work := range all {
		w.is.True(w.get(work).Reported)
		w.tale(work)
	}
}

func keptFinal(w *durableWorld) {
	for _, fails := range []bool{false, true} {
		s := Script{Final: true}
		if fails {
			s.Handle = func(*Work) error { return errBoom }
		}
		work := w.start(alice(), s)
		work.Settle(registry.Outcome{Status: registry.StatusCompleted, Output: "all of it"})
		w = w.told(work)
		r := w.take(work)
		w.is.Equal("all of it", r.Text)
		w.is.True(r.EOF)
	}
}

func keptIDs(w *durableWorld) {
	a, b := w.attempt(alice()), w.attempt(alice())
	w.end(b, nil)
	w.end(a, errBoom)
	w.open(alice(), 0)
	w = w.die(0)
	w.codes(registry.CodeGone, "job-1")
	w.codes(registry.CodeUnknownTask, "job-3")
	w.same(alice(), w.request(Script{}), "job-3", false)
	w.is.Equal("agent-2", w.open(alice(), 0).Agent)
}

func keptGone(w *durableWorld) {
	w.ends(alice(), Script{})
	newest := w.ends(alice(), Script{})
	seq := w.journal.Stored().Tasks[1].Seq
	w.is.NoError(w.Purge(w.ctx, alice(), newest.ID))
	w = w.die(0)
	w.codes(registry.CodeGone, newest.ID)
	next := w.start(alice(), Script{})
	w.is.Equal(registry.ID("job-3"), next.ID)
	w.is.Greater(w.journal.Stored().Tasks[1].Seq, seq)
}

func keptEvicted(w *durableWorld) {
	var works []*Work
	for range 4 {
		works = append(works, w.ends(alice(), Script{}))
	}
	w.evicted(works[:2]...)
	_, err := w.Get(w.ctx, alice(), works[0].ID)
	w.refused(err, registry.CodeGone)
	w = w.die(0)
	w.codes(registry.CodeGone, works[0].ID, works[1].ID)
	w.kept(works[2:]...)
	w.evicted()
}

func keptCount(w *durableWorld) {
	var works []*Work
	for range 5 {
		works = append(works, w.start(alice(), Script{}))
	}
	for _, i := range []int{3, 1, 0} {
		works[i].Complete("")
		w.pass(tick)
	}
	w.c.options.RetainCount = 3
	w = w.die(0)
	w.evicted(w.of(works[3]), w.of(works[1]))
	w.kept(works[0], works[2], works[4])
	for _, i := range []int{3, 1} {
		w.notices(works[i], 0) // it was heard before
	}
}

func keptAge(w *durableWorld) {
	old := w.ends(alice(), Script{})
	w.pass(40 * time.Minute)
	young := w.ends(alice(), Script{})
	next := w.journal.Die(100)
	jobs := w.jobs.Successor()
	w.pass(30 * time.Minute)
	w = newDurableWorld(w.t, w.factory, w.c, next, jobs)
	w.evicted(w.of(old))
	w.kept(young)
	w.pass(31 * time.Minute)
	w.evicted(w.of(young))
}

func keptOrder(w *durableWorld) {
	var ids []registry.ID
	for i := range 5 {
		ids = append(ids, w.start([]registry.Caller{alice(), nobody()}[i%2], Script{}).ID)
	}
	l, err := w.List(w.ctx, alice(), registry.ListOptions{Limit: 2})
	w.is.NoError(err)
	w = w.die(0)
	ids = append(ids, w.start(alice(), Script{}).ID)
	w.is.Equal(ids, w.ids(alice(), registry.ListOptions{}))
	w.is.Equal(ids[2:], w.ids(alice(), registry.ListOptions{After: l.Next}))
}

func keptSizes(w *durableWorld) {
	work := w.start(alice(), Script{})
	work.Output.Append("abcdef")
	w.is.EqualValues(6, w.take(work).NextOffset)
	work.Output.mu.Lock()
	work.Output.kept = work.Output.kept[:2] // the machine died
	work.Output.mu.Unlock()
	w = w.die(0)
	s := w.get(work)
	w.is.EqualValues(6, s.OutputBytes)
	w.is.EqualValues(4, s.DroppedBytes)
	r := w.look(work, 0, registry.LookOptions{})
	w.is.Equal("ab", r.Text)
	w.is.False(r.EOF, "what is missing is still to come")
	r = w.look(work, r.NextOffset, registry.LookOptions{Wait: time.Hour})
	w.is.EqualValues(6, r.Offset)
	w.is.EqualValues(4, r.Skipped)
	w.is.True(r.EOF)
	r = w.take(work)
	w.is.Empty(r.Text)
	w.is.True(r.EOF)
}

// keptHandle: a run is asked again at its end, which may be before it is published.
func keptHandle(w *durableWorld) {
	asked := map[registry.ID]int{}
	s := Script{Handle: func(work *Work) error {
		asked[work.ID]++
		work.Output.mu.Lock()
		defer work.Output.mu.Unlock()
		if !work.Output.ended {
			return errBoom
		}
		return nil
	}}
	work := w.start(alice(), s)
	w.is.Equal(1, asked[work.ID])
	work.Complete("")
	w.is.Equal(2, asked[work.ID])
	w.is.NotEmpty(w.journal.Stored().Tasks[0].Handle)

	between := w.start(alice(), Script{Handle: func(work *Work) error {
		asked[work.ID]++
		if asked[work.ID] > 1 {
			return nil
		}
		work.Complete("while it was asked")
		return errBoom
	}})
	w.is.Equal(2, asked[between.ID])
	w.is.NotEmpty(w.journal.Stored().Tasks[1].Handle)
}

// keptHandleLong: what somebody does with a task never takes its handle away.
func keptHandleLong(w *durableWorld) {
	work := w.start(alice(), Script{})
	work.Output.Append("abc")
	steps := []func(*durableWorld){
		func(w *durableWorld) { w.takeExplicit(work) },
		func(w *durableWorld) { w.ack(work, 2) },
		func(w *durableWorld) { w.take(work) },
		func(w *durableWorld) { w.kill(work, "") },
		func(*durableWorld) { work.Complete("") },
		func(w *durableWorld) { w.take(work) },
		func(w *durableWorld) { w.kill(w.of(work), "") },
	}
	for i, step := range steps {
		step(w)
		w.settled()
		w.is.NotEmpty(w.journal.Stored().Tasks[0].Handle, "after step %d", i)
	}
	for range 3 {
		w = w.die(0)
		w.is.Equal("abc", w.look(work, 0, registry.LookOptions{}).Text)
		w.is.NotEmpty(w.journal.Stored().Tasks[0].Handle)
	}
}

func keptAckLate(w *durableWorld) {
	work, r := w.unacked()
	w.is.NoError(w.Close(w.ctx))
	w.is.NoError(w.Ack(w.ctx, alice(), work.ID, r.NextOffset))
	w = w.die(0)
	w.is.True(w.get(work).Reported)
	w.notices(work, 0)
}
