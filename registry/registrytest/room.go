package registrytest

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"afoot/registry"
)

// roomCases: before each start somebody is asked whether there is room for its
// output, and ended, reported tasks give way to it.
func roomCases() []testCase {
	return []testCase{
		{name: "each start asks for room once", roomed: true, run: roomAsked},
		{name: "a start without room is refused and leaves no trace", roomed: true, run: roomRefused},
		{name: "the oldest reported ends go one by one until there is room", roomed: true, run: roomOneByOne},
		{name: "the oldest go, whoever owns them", roomed: true, run: roomAnyOwner},
		{name: "live, unreported and lingering tasks do not go for room", roomed: true, run: roomSpares},
		{name: "what has gone meanwhile makes its task go", roomed: true, run: roomLeftGone},
		{name: "a task with an answer on its way does not go for room", roomed: true, run: roomBusy},
		{name: "a start that is refused anyway makes no room", roomed: true, options: Options{MaxTasksPerOwner: 1}, run: roomNotNeeded},
		{name: "a replay needs no room", roomed: true, run: roomReplay},
		{name: "a panic refuses the start and removes nothing", roomed: true, run: roomPanics},
		{name: "who is asked may call the service", roomed: true, run: roomForeign},
		{name: "room can be made at any time", roomed: true, run: roomMade},
	}
}

// roomRaceCases: several who need room at once.
func roomRaceCases() []testCase {
	return []testCase{
		{name: "two starts that race for room remove no more than is needed", roomed: true, run: roomTwoStarts},
		{name: "a start waits for what retention has in hand", roomed: true, run: roomSweep},
		{name: "a start may leave while it waits for its turn", roomed: true, run: roomLeaves},
		{name: "starts and the making of room go together", roomed: true, run: roomStorm},
	}
}

// store is who is asked for room. The zero store has room always.
type store struct {
	mu    sync.Mutex
	asked int
	says  func() error
}

func (s *store) room() error {
	s.mu.Lock()
	s.asked++
	says := s.says
	s.mu.Unlock()
	if says == nil {
		return nil
	}
	return says()
}

func (s *store) say(says func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.says = says
}

func (s *store) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

func full() error { return registry.Errorf(registry.CodeInsufficientStorage, "the store is full") }

// wants makes the store refuse until so many discards of works.
func (s *store) wants(n int, works ...*Work) {
	s.say(func() error {
		got := 0
		for _, work := range works {
			got += work.Discards()
		}
		if got < n {
			return full()
		}
		return nil
	})
}

func roomAsked(w *world) {
	w.start(alice(), Script{})
	w.start(bob(), Script{})
	w.is.Equal(2, w.store.count())
}

func roomRefused(w *world) {
	w.store.say(full)
	w.refused(w.tryStart(alice()), registry.CodeInsufficientStorage)
	w.is.Zero(w.jobs.Starts())
	w.store.say(nil)
	w.is.Equal(registry.ID("job-1"), w.start(alice(), Script{}).ID)
	w.is.Len(w.ids(alice(), registry.ListOptions{}), 1)
}

func roomOneByOne(w *world) {
	works := []*Work{w.reads(alice(), Script{}), w.reads(alice(), Script{}), w.reads(alice(), Script{})}
	w.store.wants(2, works...)
	before := w.store.count()
	w.start(alice(), Script{})
	w.evicted(works[:2]...)
	w.kept(works[2])
	w.is.LessOrEqual(w.store.count()-before, 4)
	w.tale(works[0], registry.ChangeRegistered, registry.ChangeSettled, registry.ChangeReported, registry.ChangeEvicted)
}

func roomAnyOwner(w *world) {
	agent := w.open(alice(), 0)
	works := []*Work{w.reads(bob(), Script{}), w.reads(agent, Script{}), w.reads(nobody(), Script{}), w.reads(alice(), Script{})}
	for n := range works {
		w.store.wants(n+1, works...)
		w.start(alice(), Script{})
		w.evicted(works[:n+1]...)
		w.kept(works[n+1:]...)
	}
}

func roomSpares(w *world) {
	var alive atomic.Bool
	alive.Store(true)
	live, stopping := w.start(alice(), Script{}), w.start(alice(), Script{})
	w.kill(stopping, "")
	unread, lingers := w.ends(alice(), Script{}), w.reads(alice(), lingering(&alive))
	w.store.say(full)
	for range 3 {
		w.refused(w.tryStart(alice()), registry.CodeInsufficientStorage)
	}
	w.kept(live, stopping, unread, lingers)
	w.take(unread)
	w.refused(w.tryStart(alice()), registry.CodeInsufficientStorage)
	w.evicted(unread)
	w.kept(live, stopping, lingers)
}

func roomLeftGone(w *world) {
	var alive atomic.Bool
	alive.Store(true)
	lingers := w.reads(alice(), lingering(&alive))
	w.store.wants(1, lingers)
	w.refused(w.tryStart(alice()), registry.CodeInsufficientStorage)
	alive.Store(false)
	w.start(alice(), Script{})
	w.evicted(lingers)
}

func roomBusy(w *world) {
	a := w.reads(alice(), Script{})
	b := w.reads(alice(), Script{})
	d := w.hold(a)
	w.takeExplicit(b)
	w.store.wants(2, a, b)
	w.refused(w.tryStart(alice()), registry.CodeInsufficientStorage)
	w.kept(a, b)
	w.is.NoError(d.Confirm())
	w.ack(b, 3)
	w.start(alice(), Script{})
	w.evicted(a, b)
}

func roomNotNeeded(w *world) {
	a := w.reads(alice(), Script{})
	w.start(alice(), Script{})
	w.store.wants(1, a)
	w.refused(w.tryStart(alice()), registry.CodeLimitReached)
	_, err := w.Start(w.ctx, bob(), registry.StartRequest{Spec: registry.Spec{Kind: "none"}})
	w.refused(err, registry.CodeInvalid)
	_, err = w.Start(w.ctx, bob(), w.request(Script{Prepare: func(context.Context) error {
		return registry.Errorf(registry.CodeInvalid, "no")
	}}))
	w.refused(err, registry.CodeInvalid)
	w.kept(a)
}

func roomReplay(w *world) {
	r := w.keyed("k", 1, Script{})
	w.same(alice(), r, "job-1", false)
	w.store.say(full)
	w.same(alice(), r, "job-1", true)
	other := w.keyed("other", 1, Script{})
	_, err := w.Start(w.ctx, alice(), other)
	w.refused(err, registry.CodeInsufficientStorage)
	w.store.say(nil)
	w.same(alice(), other, "job-2", false)
}

func roomPanics(w *world) {
	a := w.reads(alice(), Script{})
	w.store.say(func() error { panic("room") })
	w.refused(w.tryStart(alice()), registry.CodeInternal)
	w.kept(a)
	w.store.say(nil)
	w.start(alice(), Script{})
}

func roomForeign(w *world) {
	a := w.reads(alice(), Script{})
	w.store.say(func() error {
		_, err := w.Get(w.ctx, alice(), a.ID)
		if err == nil {
			return full()
		}
		return nil
	})
	w.start(alice(), Script{})
	w.evicted(a)
}

// makeRoom asks the service to make room, if it can do that.
func (w *world) makeRoom() {
	if s, can := w.Service.(interface{ MakeRoom() }); can {
		s.MakeRoom()
	} else {
		w.t.Skip("this service makes no room by itself")
	}
}

func roomMade(w *world) {
	w.makeRoom()
	a, b := w.reads(alice(), Script{}), w.reads(bob(), Script{})
	unread := w.ends(alice(), Script{})
	w.makeRoom()
	w.kept(a, b, unread)
	w.store.wants(1, a)
	w.makeRoom()
	w.evicted(a)
	w.kept(b, unread)
	w.store.say(full)
	w.makeRoom()
	w.evicted(b)
	w.kept(unread)
}

func roomTwoStarts(w *world) {
	works := []*Work{w.reads(alice(), Script{}), w.reads(alice(), Script{}), w.reads(alice(), Script{})}
	g := w.gate()
	w.store.say(func() error {
		g.pass()
		if works[0].Discards() == 0 {
			return full()
		}
		return nil
	})
	one, two := w.starting(alice(), w.request(Script{})), w.starting(bob(), w.request(Script{}))
	g.open()
	for _, c := range []*call[registry.Started]{one, two} {
		_, err := c.result()
		w.is.NoError(err)
	}
	w.evicted(works[0])
	w.kept(works[1:]...)
}

// inHand is a read end that a sweep has taken out and asks about.
func (w *world) inHand() (*Work, *gate) {
	g, begun := w.gate(), newGate()
	a := w.reads(alice(), Script{
		Leftovers: func(string) <-chan struct{} { return nil },
		Left: func() bool {
			begun.open()
			g.pass()
			return false
		},
	})
	w.pass(24 * time.Hour)
	begun.pass()
	return a, g
}

func roomSweep(w *world) {
	a, g := w.inHand()
	w.store.wants(1, a)
	c := w.starting(alice(), w.request(Script{}))
	w.is.False(c.returned())
	g.open()
	_, err := c.result()
	w.is.NoError(err)
	w.evicted(a)
}

func roomLeaves(w *world) {
	a, g := w.inHand()
	w.store.say(full)
	c := w.starting(alice(), w.request(Script{}))
	c.leave()
	_, err := c.result()
	w.is.ErrorIs(err, context.Canceled)
	g.open()
	w.evicted(a)
	w.store.say(nil)
	w.is.Equal(registry.ID("job-2"), w.start(alice(), Script{}).ID)
}

// roomStorm: a store of five places.
func roomStorm(w *world) {
	var used atomic.Int64
	script := Script{
		Start: func(context.Context, *Work) error {
			used.Add(1)
			return nil
		},
		Discard: func(*Work) error {
			used.Add(-1)
			return nil
		},
	}
	w.store.say(func() error {
		if used.Load() >= 5 {
			return full()
		}
		return nil
	})
	var actors sync.WaitGroup
	for _, c := range []registry.Caller{alice(), bob(), nobody()} {
		actors.Go(func() {
			for range 30 {
				started, err := w.Start(w.ctx, c, w.request(script))
				if registry.CodeOf(err) == registry.CodeInsufficientStorage {
					continue
				}
				work := w.jobs.Work(started.Snapshot.ID)
				if _, _, killed := w.Kill(w.ctx, c, work.ID, ""); err != nil || killed != nil {
					w.t.Errorf("start: %v, kill: %v", err, killed)
				}
				work.Complete("")
			}
		})
	}
	actors.Go(func() {
		for range 30 {
			w.makeRoom()
		}
	})
	actors.Wait()
	w.settled()
	left := len(w.ids(alice(), registry.ListOptions{})) + len(w.ids(bob(), registry.ListOptions{})) - len(w.ids(nobody(), registry.ListOptions{}))
	w.is.EqualValues(left, used.Load(), "what is kept is what has records")
	w.is.LessOrEqual(left, 7)
}
