package registrytest

import (
	"fmt"
	"time"

	"pgregory.net/rapid"

	"afoot/registry"
)

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
		"start", "start", "start", "foreground", "keyed", "output", "output", "complete", "complete",
		"read", "read", "abandon", "explicit", "promote",
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
		m.calls.Go(func() { m.start(alice(), key, false) })
	case "start", "foreground":
		m.calls.Go(func() { m.start(caller, "", what == "foreground") })
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

func (m *durables) start(c registry.Caller, key string, foreground bool) {
	r := registry.StartRequest{
		Spec:           registry.Spec{Kind: job, Fields: m.jobs.Fields(Script{Cancel: settlesKilled})},
		IdempotencyKey: key, Foreground: foreground,
	}
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
	case "read", "abandon", "explicit", "promote":
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
	d, err := m.s.Read(m.ctx, f.caller, work.ID, registry.ReadOptions{Explicit: how == "explicit", Promote: how == "promote", LimitBytes: 4})
	if err != nil {
		return
	}
	end := d.Snapshot
	end.Reported = end.Foreground && end.Reported // else that comes with the confirm
	if how == "abandon" || how == "promote" && !end.Status.Terminal() {
		m.told(end)
		d.Abandon()
		return
	}
	m.told(end)
	m.wish(func() { f.handed = max(f.handed, d.NextOffset) })
	_ = d.Confirm()
	if how == "explicit" {
		err = m.s.Ack(m.ctx, f.caller, work.ID, d.NextOffset)
	} else { // what a confirm brings about counts once somebody was told of it
		_, err = m.s.Get(m.ctx, f.caller, work.ID)
	}
	if err != nil {
		return
	}
	m.fact(func() {
		f.cursor = max(f.cursor, d.NextOffset)
		f.reports = f.reports || how != "explicit" && end.Status.Terminal()
	})
}
