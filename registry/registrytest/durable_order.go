package registrytest

import (
	"context"
	"sync/atomic"
	"time"

	"afoot/registry"
)

// writeOrderCases: no answer and no announcement comes before what it tells is
// written.
func writeOrderCases() []durableCase {
	return []durableCase{
		{name: "a start", run: orderStart},
		{name: "looks at a task, and lists", run: orderLooks},
		{name: "a read; its confirm waits for nobody", run: orderRead},
		{name: "a read holds its notice first, whoever waits for the disk", run: orderHeld},
		{name: "a read before the notice is written makes one only if it is lost", run: orderLate},
		{name: "a wait, which is released first", run: orderWait},
		{name: "a kill", run: orderKill},
		{name: "an ack", run: orderAck},
		{name: "a purge, and whoever is told of it", run: orderPurge},
		{name: "an eviction", options: Options{RetainCount: 1}, run: orderEviction},
		{name: "an agent and its end", run: orderAgent},
		{name: "the listeners", run: orderListeners},
		{name: "nothing is written with a lock held", run: orderNoLock},
		{name: "what was written costs no wait", run: orderFast},
		{name: "no answer waits for what comes behind it", run: orderBehind},
		{name: "a caller who leaves is let go, and the start goes on", run: orderLeaves},
	}
}

// waits asserts that a call returns only when the journal has written.
func waits[T any](w *durableWorld, f func(ctx context.Context) (T, error)) T {
	w.t.Helper()
	c := begin(w.ctx, f)
	w.pass(time.Minute)
	w.is.False(c.returned(), "an answer came before what it tells was written")
	w.journal.Write(100)
	w.settled()
	w.is.True(c.returned(), "the answer did not come when it was written")
	got, err := c.result()
	w.is.NoError(err)
	return got
}

// unwritten leaves the end of a task in line.
func (w *durableWorld) unwritten() *Work {
	work := w.start(alice(), Script{})
	work.Output.Append("abc")
	w.journal.Hold()
	go work.Complete("")
	w.settled()
	return work
}

func orderStart(w *durableWorld) {
	w.journal.Hold()
	got := waits(w, func(ctx context.Context) (registry.Started, error) { return w.Start(ctx, alice(), w.request(Script{})) })
	w.is.Equal(got.Snapshot.ID, w.journal.Stored().Tasks[0].Snapshot.ID)
	w.is.EqualValues(1, w.journal.Stored().Counters[0].Last)
}

func orderLooks(w *durableWorld) {
	work := w.unwritten()
	w.is.Equal(registry.StatusCompleted, waits(w, func(ctx context.Context) (registry.Snapshot, error) {
		return w.Get(ctx, alice(), work.ID)
	}).Status)
	w.journal.Release()
	work = w.unwritten()
	waits(w, func(ctx context.Context) (registry.Description, error) { return w.Describe(ctx, alice(), work.ID) })
	w.journal.Release()
	w.unwritten()
	waits(w, func(ctx context.Context) (registry.List, error) { return w.List(ctx, alice(), registry.ListOptions{}) })
	w.journal.Release()
	work = w.unwritten()
	w.is.True(waits(w, func(ctx context.Context) (registry.Read, error) {
		return w.Look(ctx, alice(), work.ID, 0, registry.LookOptions{Wait: time.Second})
	}).EOF)
}

func orderRead(w *durableWorld) {
	work := w.unwritten()
	d := waits(w, func(ctx context.Context) (*registry.Delivery, error) {
		return w.Read(ctx, alice(), work.ID, registry.ReadOptions{})
	})
	w.settled()
	w.journal.Write(100)
	c := begin(w.ctx, func(context.Context) (struct{}, error) { return struct{}{}, d.Confirm() })
	w.settled()
	w.is.True(c.returned(), "the caller has its answer: nobody waits for the disk")
	w.is.NotContains(w.log.story(work.ID), registry.ChangeReported)
	w.journal.Write(100)
	w.settled()
	w.is.EqualValues(3, w.journal.Stored().Tasks[0].Cursor)
	w.is.True(w.journal.Stored().Tasks[0].Snapshot.Reported)
}

// orderHeld: nobody is told of an end by a notice while an answer carries it, though the
// end of another task, or the confirm of another read, is not written yet.
func orderHeld(w *durableWorld) {
	read := func(work *Work) *registry.Delivery {
		d := waits(w, func(ctx context.Context) (*registry.Delivery, error) {
			return w.Read(ctx, alice(), work.ID, registry.ReadOptions{})
		})
		w.is.Equal(1, w.log.count(work.ID, registry.ChangeHeld))
		return d
	}
	one, two := w.ends(alice(), Script{}), w.ends(alice(), Script{})
	w.notices(one, 1)
	w.notices(two, 1)
	w.unwritten()
	d := read(one)
	w.is.NoError(d.Confirm())
	w.settled()
	w.is.NoError(read(two).Confirm())
	w.journal.Release()
}

func orderLate(w *durableWorld) {
	for n, end := range []func(*registry.Delivery){
		func(d *registry.Delivery) { w.is.NoError(d.Confirm()) },
		(*registry.Delivery).Abandon,
	} {
		work := w.unwritten()
		d := waits(w, func(ctx context.Context) (*registry.Delivery, error) {
			return w.Read(ctx, alice(), work.ID, registry.ReadOptions{})
		})
		w.notices(work, 0)
		w.journal.Release()
		end(d)
		w.notices(work, n)
	}
}

func orderWait(w *durableWorld) {
	work := w.start(alice(), Script{})
	wait := w.reading(work, registry.ReadOptions{Wait: time.Hour})
	look := w.looking(work, 0, time.Hour)
	w.journal.Hold()
	go work.Complete("")
	w.pass(time.Second)
	w.is.False(wait.returned())
	w.is.False(look.returned())
	w.is.Equal([]registry.ChangeType{registry.ChangeRegistered}, w.log.story(work.ID))
	w.journal.Write(100)
	w.settled()
	w.is.True(look.returned())
	d := w.delivered(wait)
	w.is.True(d.Snapshot.Status.Terminal())
	w.tale(work, registry.ChangeRegistered, registry.ChangeSettled)
	w.journal.Release()
	w.is.NoError(d.Confirm())
}

func orderKill(w *durableWorld) {
	work := w.start(alice(), Script{})
	w.unwritten() // whoever gives events to the listeners waits already
	s := waits(w, func(ctx context.Context) (registry.Snapshot, error) {
		_, s, err := w.Kill(ctx, alice(), work.ID, "")
		return s, err
	})
	w.is.Equal(registry.StatusStopping, s.Status)
	w.is.True(w.journal.Stored().Tasks[0].Snapshot.Reported)
	w.journal.Release()
	work.Complete("")
	ended := w.ends(alice(), Script{})
	w.unwritten()
	waits(w, func(ctx context.Context) (struct{}, error) {
		_, _, err := w.Kill(ctx, alice(), ended.ID, "")
		return struct{}{}, err
	})
}

func orderAck(w *durableWorld) {
	work, r := w.unacked()
	w.unwritten()
	waits(w, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, w.Ack(ctx, alice(), work.ID, r.NextOffset)
	})
	w.is.True(w.journal.Stored().Tasks[0].Snapshot.Reported)
}

func orderPurge(w *durableWorld) {
	work := w.ends(alice(), Script{})
	w.unwritten()
	c := begin(w.ctx, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, w.Purge(ctx, alice(), work.ID)
	})
	w.settled()
	get := begin(w.ctx, func(ctx context.Context) (registry.Snapshot, error) { return w.Get(ctx, alice(), work.ID) })
	list := begin(w.ctx, func(ctx context.Context) (registry.List, error) {
		return w.List(ctx, alice(), registry.ListOptions{})
	})
	w.pass(time.Minute)
	w.is.False(c.returned())
	w.is.False(get.returned(), "told that it is gone, which it may not be")
	w.is.False(list.returned(), "a list without it was shown")
	w.is.Zero(work.Discards(), "its record may come back")
	w.journal.Write(100)
	w.settled()
	_, err := get.result()
	w.refused(err, registry.CodeGone)
	w.is.True(c.returned())
	w.is.True(list.returned())
	w.is.Equal(1, work.Discards())
}

func orderAgent(w *durableWorld) {
	w.journal.Hold()
	a := waits(w, func(ctx context.Context) (registry.Agent, error) {
		return w.OpenAgent(ctx, alice(), registry.AgentOptions{})
	})
	w.is.Equal(a.ID, w.journal.Stored().Agents[0].Owner.Agent)
	go func() { _, _ = w.OpenAgent(w.ctx, alice(), registry.AgentOptions{}) }()
	w.settled()
	w.is.Len(waits(w, func(ctx context.Context) ([]registry.Agent, error) { return w.ListAgents(ctx, alice()) }), 2)
	waits(w, func(ctx context.Context) (struct{}, error) { return struct{}{}, w.DisposeAgent(ctx, alice(), a.ID) })
	w.is.Len(w.journal.Stored().Agents, 1)
}

// orderEviction: no record comes back whose output was given back.
func orderEviction(w *durableWorld) {
	old := w.ends(bob(), Script{})
	last := w.start(bob(), Script{})
	agent := w.open(alice(), 0)
	owned := w.ends(agent, Script{})
	w.unwritten()
	go last.Complete("")
	d := w.disposing(alice(), agent.Agent)
	w.pass(time.Minute)
	w.is.False(d.returned())
	w.is.Zero(old.Discards())
	w.is.Zero(owned.Discards())
	w.journal.Release()
	w.journal.Write(100)
	w.evicted(old)
	w.is.Equal(1, owned.Discards())
	w.is.True(d.returned())
}

func orderListeners(w *durableWorld) {
	work := w.unwritten()
	w.pass(time.Hour)
	w.is.Equal([]registry.ChangeType{registry.ChangeRegistered}, w.log.story(work.ID))
	w.journal.Write(100)
	w.tale(work, registry.ChangeRegistered, registry.ChangeSettled, notice)
	w.is.False(w.journal.Stored().Tasks[0].Announced, "it is kept behind what the listeners keep")
	w.journal.Write(100)
	w.is.True(w.journal.Stored().Tasks[0].Announced)
}

// orderNoLock has the journal call the service while it writes: with a lock held that
// would block for ever.
func orderNoLock(w *durableWorld) {
	work, agent := w.start(alice(), Script{Cancel: settlesKilled}), w.open(alice(), 0)
	var inside atomic.Bool
	var calls atomic.Int32
	w.journal.OnSync(func() {
		if !inside.CompareAndSwap(false, true) {
			return
		}
		calls.Add(1)
		_, _ = w.Get(w.ctx, alice(), work.ID)
		_, _ = w.List(w.ctx, alice(), registry.ListOptions{})
		_, _ = w.Look(w.ctx, alice(), work.ID, 0, registry.LookOptions{})
		_, _ = w.ListAgents(w.ctx, alice())
		_ = w.tryStart(bob())
		_, _ = w.OpenAgent(w.ctx, bob(), registry.AgentOptions{})
		inside.Store(false)
	})
	w.take(work)
	work.Output.Append("abc")
	w.take(work)
	w.takeExplicit(work)
	w.kill(work, "")
	other := w.ends(agent, Script{})
	w.ack(other, w.takeExplicit(other).NextOffset)
	w.is.NoError(w.Purge(w.ctx, alice(), work.ID))
	w.is.NoError(w.DisposeAgent(w.ctx, alice(), agent.Agent))
	w.is.GreaterOrEqual(calls.Load(), int32(6))
	w.jobs.Retire()
	w.is.NoError(w.Close(w.ctx))
}

func orderFast(w *durableWorld) {
	work := w.reads(alice(), Script{})
	w.journal.Delay(time.Minute)
	before := time.Now()
	w.get(work)
	w.ids(alice(), registry.ListOptions{})
	w.look(work, 0, registry.LookOptions{})
	w.take(work)
	w.kill(work, "")
	w.is.Zero(time.Since(before), "a wait for what was written")
	w.start(alice(), Script{})
	w.is.Equal(time.Minute, time.Since(before))
}

// orderBehind: who gives an event to the listeners is not kept for the next one.
func orderBehind(w *durableWorld) {
	work := w.start(alice(), Script{})
	w.journal.Hold()
	c := w.starting(alice(), w.request(Script{}))
	go work.Complete("")
	w.settled()
	w.is.False(c.returned())
	w.journal.Write(1)
	w.settled()
	w.is.True(c.returned())
	w.notices(work, 0)
	w.journal.Write(100)
	w.notices(work, 1)
}

func orderLeaves(w *durableWorld) {
	work := w.unwritten()
	c := begin(w.ctx, func(ctx context.Context) (registry.Snapshot, error) { return w.Get(ctx, alice(), work.ID) })
	s := w.starting(alice(), w.request(Script{}))
	c.leave()
	s.leave()
	w.settled()
	w.is.True(c.returned())
	w.is.False(s.returned())
	w.journal.Release()
	w.journal.Write(100)
	_, err := s.result()
	w.is.NoError(err)
}
