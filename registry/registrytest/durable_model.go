package registrytest

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"afoot/registry"
)

// durableModel does anything, lets the process die between any two writes, and holds
// its successor against what was told, again and again.
func durableModel(t *testing.T, factory DurableFactory) {
	rapid.Check(t, func(rt *rapid.T) {
		var failure any // rapid fails by a panic on its own goroutine
		synctest.Test(t, func(t *testing.T) {
			m := &durables{
				t: t, dice: rt, is: require.New(witness{rt, t}),
				factory: func(j registry.Journal) Durable { return factory(t, Options{MaxTasksPerOwner: 100}, j) },
				tasks:   map[registry.ID]*durableTask{}, keys: map[string]registry.ID{}, agents: map[string]*durableAgent{},
				ending: map[registry.Caller]bool{},
			}
			defer func() {
				failure = recover()
				m.bury()
			}()
			m.run()
		})
		if failure != nil {
			panic(failure)
		}
	})
}

func (m *durables) run() {
	m.live(NewJournal(), NewProducer())
	for range rapid.IntRange(1, 4).Draw(m.dice, "deaths") {
		for range rapid.IntRange(1, 25).Draw(m.dice, "steps") {
			m.step()
			synctest.Wait()
		}
		m.next()
		m.judge()
	}
}

// witness fails a property and says why at once: a race may not come again when it is
// replayed.
type witness struct {
	*rapid.T
	t *testing.T
}

// Errorf is part of [require.TestingT].
func (w witness) Errorf(format string, args ...any) {
	w.t.Helper()
	w.t.Logf(format, args...)
	w.T.Errorf(format, args...)
}

// durables is what was told, and the process that told it.
type durables struct {
	t       *testing.T
	dice    *rapid.T
	is      *require.Assertions
	factory func(registry.Journal) Durable

	s       Durable
	journal *Journal
	jobs    *Producer
	ctx     context.Context
	leave   context.CancelFunc
	calls   sync.WaitGroup
	// failing says that nothing can be written: what is told then may be lost.
	failing bool

	mu     sync.Mutex // guards what was told
	tasks  map[registry.ID]*durableTask
	keys   map[string]registry.ID
	agents map[string]*durableAgent
	// ending are the callers whose agents were to be disposed since the last judgement:
	// a start under way goes with them.
	ending map[registry.Caller]bool
}

// durableTask is what is known of a task. Wishes are what was asked for, answered or
// not; the rest was told.
type durableTask struct {
	caller  registry.Caller
	agent   string
	wished  bool // to be purged
	purged  bool
	handed  int64
	end     *registry.Snapshot
	reports bool
	// background says that it was never, or is no longer, in the foreground.
	background bool
	cursor     int64
	bytes      int64
}

type durableAgent struct {
	caller        registry.Caller
	wished, ended bool
}

// live begins a process. Its listener keeps each end that it hears of once.
func (m *durables) live(j *Journal, jobs *Producer) {
	m.s, m.journal, m.jobs = m.factory(j), j, jobs
	m.fails(false)
	m.ctx, m.leave = context.WithCancel(context.Background())
	known := j.Notes()
	m.s.OnDone(registry.AllOwners(), func(n registry.Notice) {
		id := n.Snapshot.ID
		m.told(n.Snapshot)
		if known[id]++; known[id] == 1 {
			j.Append(Note{registry.TaskGone{ID: id}})
		}
	})
	m.s.OnChange(registry.AllOwners(), func(c registry.Change) {
		if c.Type != registry.ChangeOwnerGone && c.Type != registry.ChangeRemoved {
			m.told(c.Snapshot)
		}
	})
	m.s.AttachController("model", registry.AllOwners())
	m.s.AttachProducer(job, jobs)
	m.is.NoError(m.s.Load(m.ctx))
	synctest.Wait()
}

// bury ends what is left of a process.
func (m *durables) bury() {
	m.journal.Fail(nil)
	m.journal.Release()
	m.leave()
	m.jobs.Retire()
	_ = m.s.Close(context.Background())
	m.calls.Wait()
	synctest.Wait()
}

// next goes over to the next process: the last one has died, or was closed.
func (m *durables) next() {
	if rapid.IntRange(0, 4).Draw(m.dice, "closes") == 0 {
		m.journal.Fail(nil)
		m.journal.Release()
		m.fails(false)
		m.is.NoError(m.s.Close(m.ctx))
		m.is.Zero(m.journal.InLine())
		synctest.Wait()
	}
	lucky := rapid.IntRange(0, m.journal.InLine()).Draw(m.dice, "lucky")
	m.fails(true) // what the dead still say is nothing told
	j, jobs := m.journal.Die(lucky), m.jobs.Successor()
	m.bury()
	m.live(j, jobs)
}

func (m *durables) fails(is bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failing = is
}

// told notes a snapshot that somebody was shown.
func (m *durables) told(s registry.Snapshot) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failing {
		return
	}
	f := m.knownLocked(s)
	f.bytes = max(f.bytes, s.OutputBytes)
	f.background = f.background || !s.Foreground
	if s.Status.Terminal() && f.end == nil {
		f.end = &s
	}
	if s.Status == registry.StatusStopping || s.Status.Terminal() {
		f.reports = f.reports || s.Reported
	}
}

func (m *durables) knownLocked(s registry.Snapshot) *durableTask {
	f := m.tasks[s.ID]
	if f == nil {
		f = &durableTask{caller: registry.Caller{Session: s.Owner.Session}, agent: s.Owner.Agent}
		m.tasks[s.ID] = f
	}
	return f
}

// fact notes something that was told, if it could be written.
func (m *durables) fact(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.failing {
		f()
	}
}

// wish notes something that is asked for, and may come true from now on.
func (m *durables) wish(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	return slices.Sorted(maps.Keys(m))
}
