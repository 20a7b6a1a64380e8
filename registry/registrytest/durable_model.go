package registrytest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

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
	cursor  int64
	bytes   int64
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

// step does one thing, and does not wait until it is done.
func (m *durables) step() {
	callers := []registry.Caller{alice(), bob(), nobody()}
	m.mu.Lock()
	for _, id := range sortedKeys(m.agents) {
		callers = append(callers, m.agents[id].caller)
	}
	ids := sortedKeys(m.tasks)
	m.mu.Unlock()
	caller := rapid.SampledFrom(callers).Draw(m.dice, "caller")
	var id registry.ID
	if len(ids) > 0 {
		id = rapid.SampledFrom(ids).Draw(m.dice, "task")
	}
	what := rapid.SampledFrom([]string{
		"start", "start", "start", "keyed", "output", "output", "complete", "complete", "read", "read", "abandon", "explicit",
		"kill", "purge", "get", "list", "open", "dispose", "hold", "release", "write", "write", "fail", "heal", "time",
	}).Draw(m.dice, "what")
	switch what {
	case "hold":
		m.journal.Hold()
	case "release":
		m.journal.Release()
	case "write":
		m.journal.Write(rapid.IntRange(1, 5).Draw(m.dice, "calls"))
	case "fail", "heal":
		m.fails(what == "fail")
		m.journal.Fail(map[bool]error{true: errBoom}[what == "fail"])
	case "time":
		time.Sleep(time.Minute)
	case "keyed":
		key := fmt.Sprint("key ", rapid.IntRange(1, 3).Draw(m.dice, "key"))
		m.calls.Go(func() { m.start(alice(), key) })
	case "start":
		m.calls.Go(func() { m.start(caller, "") })
	case "list", "open":
		m.calls.Go(func() { m.ofCaller(what, caller) })
	case "dispose":
		m.calls.Go(func() { m.dispose(caller) })
	default:
		if work := m.jobs.Work(id); work != nil {
			f := m.tasks[id]
			m.calls.Go(func() { m.ofTask(what, work, f) })
		}
	}
}

func (m *durables) start(c registry.Caller, key string) {
	r := registry.StartRequest{Spec: registry.Spec{Kind: job, Fields: m.jobs.Fields(Script{Cancel: settlesKilled})}, IdempotencyKey: key}
	started, err := m.s.Start(m.ctx, c, r)
	if err != nil {
		return
	}
	m.told(started.Snapshot)
	m.wish(func() { // it is never told before it is written
		m.knownLocked(started.Snapshot)
		if key == "" {
			return
		}
		if was := m.keys[key]; was != "" && was != started.Snapshot.ID {
			witness{m.dice, m.t}.Errorf("key %s: %s and %s", key, was, started.Snapshot.ID)
		}
		m.keys[key] = started.Snapshot.ID
	})
}

func (m *durables) ofCaller(what string, c registry.Caller) {
	if what == "list" {
		l, _ := m.s.List(m.ctx, c, registry.ListOptions{})
		for _, s := range l.Tasks {
			m.told(s)
		}
		return
	}
	a, err := m.s.OpenAgent(m.ctx, c, registry.AgentOptions{})
	if err != nil {
		return
	}
	m.wish(func() {
		if m.agents[a.ID] != nil {
			witness{m.dice, m.t}.Errorf("agent %s came twice", a.ID)
		}
		m.agents[a.ID] = &durableAgent{caller: registry.Caller{Session: c.Session, Agent: a.ID}}
	})
}

func (m *durables) dispose(c registry.Caller) {
	if c.Agent == "" {
		c.Agent = registry.DefaultAgent
	}
	mine := func(f *durableTask) bool { return f.caller.Session == c.Session && f.agent == c.Agent }
	var disposed []*durableTask
	m.wish(func() {
		m.ending[c] = true
		if a := m.agents[c.Agent]; a != nil {
			a.wished = true
		}
		for _, f := range m.tasks {
			f.wished = f.wished || mine(f)
			if f.wished && c.Agent != registry.DefaultAgent {
				disposed = append(disposed, f)
			}
		}
	})
	if err := m.s.DisposeAgent(m.ctx, c, c.Agent); err != nil {
		return
	}
	m.fact(func() {
		if a := m.agents[c.Agent]; a != nil {
			a.ended = true
		}
		for _, f := range disposed {
			f.purged = f.purged || mine(f)
		}
	})
}

func (m *durables) ofTask(what string, work *Work, f *durableTask) {
	switch what {
	case "output":
		work.Output.mu.Lock()
		if !work.Output.ended {
			work.Output.kept = append(work.Output.kept, "abcdef"...)
			work.Output.releaseLocked()
		}
		work.Output.mu.Unlock()
	case "complete":
		work.Complete("done")
	case "read", "abandon", "explicit":
		m.read(what, work, f)
	case "kill":
		if _, s, err := m.s.Kill(m.ctx, f.caller, work.ID, ""); err == nil {
			m.told(s)
		}
	case "purge":
		m.wish(func() { f.wished = true })
		if err := m.s.Purge(m.ctx, f.caller, work.ID); err == nil {
			m.fact(func() { f.purged = true })
		}
	case "get":
		s, err := m.s.Get(m.ctx, f.caller, work.ID)
		if err == nil {
			m.told(s)
		} else if registry.CodeOf(err) == registry.CodeGone {
			m.fact(func() { f.purged = true })
		}
	}
}

func (m *durables) read(how string, work *Work, f *durableTask) {
	d, err := m.s.Read(m.ctx, f.caller, work.ID, registry.ReadOptions{Explicit: how == "explicit", LimitBytes: 4})
	if err != nil {
		return
	}
	if how == "abandon" {
		d.Abandon()
		return
	}
	end := d.Snapshot
	end.Reported = false // that comes with the confirm
	m.told(end)
	m.wish(func() { f.handed = max(f.handed, d.NextOffset) })
	_ = d.Confirm()
	if how == "explicit" {
		if err := m.s.Ack(m.ctx, f.caller, work.ID, d.NextOffset); err != nil {
			return
		}
	}
	m.fact(func() {
		f.cursor = max(f.cursor, d.NextOffset)
		f.reports = f.reports || how == "read" && end.Status.Terminal()
	})
}

// judge holds a process that has just begun against all that was told.
func (m *durables) judge() {
	m.journal.Write(1000)
	for _, c := range []registry.Caller{alice(), bob(), nobody()} {
		l, err := m.s.List(m.ctx, c, registry.ListOptions{})
		m.is.NoError(err)
		for _, s := range l.Tasks {
			m.told(s)
		}
	}
	for _, id := range sortedKeys(m.tasks) {
		m.judgeTask(id, m.tasks[id])
	}
	clear(m.ending)
	for id, a := range m.agents {
		release, err := m.s.Act(m.ctx, a.caller)
		if err == nil {
			release()
		}
		m.is.True(a.wished || err == nil, "agent %s: %v", id, err)
		m.is.True(!a.ended || registry.CodeOf(err) == registry.CodeGone, "agent %s was disposed: %v", id, err)
	}
	for key, id := range m.keys {
		r := registry.StartRequest{Spec: registry.Spec{Kind: job}, IdempotencyKey: key}
		started, err := m.s.Start(m.ctx, alice(), r)
		if registry.CodeOf(err) == registry.CodeGone {
			m.is.True(m.tasks[id].wished, "key %s", key)
			continue
		}
		m.is.NoError(err)
		m.is.Equal(registry.Started{Snapshot: started.Snapshot, Replayed: true}, started)
		m.is.Equal(id, started.Snapshot.ID)
	}
}

func (m *durables) judgeTask(id registry.ID, f *durableTask) {
	s, err := m.s.Get(m.ctx, f.caller, id)
	if f.purged || err != nil {
		m.is.Equal(registry.CodeGone, registry.CodeOf(err), "%s: %+v", id, f)
		f.wished = f.wished || m.ending[registry.Caller{Session: f.caller.Session, Agent: f.agent}]
		m.is.True(f.wished, "%s is gone: %+v", id, f)
		m.is.LessOrEqual(m.journal.Notes()[id], 1)
		f.purged = true
		return
	}
	m.is.True(s.Status.Terminal(), "%s is %s", id, s.Status)
	m.is.Contains([]string{"done", "signal: SIGTERM", registry.DetailLost, registry.DetailShutdown}, s.Detail)
	if f.end != nil {
		m.is.Equal([]any{f.end.Status, f.end.Detail, f.end.FinishedAt}, []any{s.Status, s.Detail, s.FinishedAt}, "%s", id)
	}
	m.is.True(s.Reported || !f.reports, "%s is not reported any more", id)
	// The output of a purge that could not be written may be gone before its record.
	m.is.True(f.wished || s.OutputBytes >= f.bytes, "%s: %d bytes are left of %d", id, s.OutputBytes, f.bytes)
	r, err := m.s.Look(m.ctx, f.caller, id, registry.AtCursor, registry.LookOptions{})
	m.is.NoError(err)
	m.is.GreaterOrEqual(r.Offset, f.cursor, "%s: what was read is unread", id)
	m.is.LessOrEqual(r.Offset, f.handed+r.Skipped, "%s: what was not read is read", id)
	notes := m.journal.Notes()[id]
	m.is.LessOrEqual(notes, 1, "%s was announced again", id)
	if !s.Reported && !s.Owner.Unowned() {
		m.is.Equal(1, notes, "the end of %s was swallowed", id)
	}
	m.told(s)
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	return slices.Sorted(maps.Keys(m))
}
