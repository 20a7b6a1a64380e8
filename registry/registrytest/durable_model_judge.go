package registrytest

import (
	"afoot/registry"
)

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
	m.is.False(s.Foreground && f.background, "%s is in the foreground again", id)
	m.is.True(s.Reported || !s.Foreground, "%s", id)
	// The output of a purge that could not be written may be gone before its record.
	m.is.True(f.wished || s.OutputBytes >= f.bytes, "%s: %d bytes are left of %d", id, s.OutputBytes, f.bytes)
	r, err := m.s.Look(m.ctx, f.caller, id, registry.AtCursor, registry.LookOptions{})
	m.is.NoError(err)
	m.is.GreaterOrEqual(r.Offset, f.cursor, "%s: what was read is unread", id)
	m.is.LessOrEqual(r.Offset, f.handed+r.Skipped, "%s: what was not read is read", id)
	notes := m.journal.Notes()[id]
	m.is.LessOrEqual(notes, 1, "%s was announced again", id)
	if s.Foreground {
		m.is.Zero(notes, "the end of %s was announced", id)
	}
	if !s.Reported && !s.Owner.Unowned() {
		m.is.Equal(1, notes, "the end of %s was swallowed", id)
	}
	m.told(s)
}
