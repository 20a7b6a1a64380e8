package journal

import (
	"cmp"
	"context"
	"slices"
	"time"

	"afoot/registry"
)

// Load implements [registry.Journal].
func (j *Journal) Load(ctx context.Context) (registry.Memory, error) {
	var m registry.Memory
	err := j.do(ctx, func(c *db) (err error) {
		m, err = c.memory()
		return err
	})
	return m, err
}

func (c *db) memory() (m registry.Memory, err error) {
	if m.Tasks, err = c.tasks(); err != nil {
		return m, err
	}
	err = c.query("SELECT session, agent, incarnation, seq, label, lease FROM agents", func(row *columns) {
		owner := registry.Owner{Session: row.text(), Agent: row.text(), Incarnation: row.uint()}
		a := registry.AgentRow{Owner: owner, Seq: row.uint(), Label: row.text(), Lease: time.Duration(row.int())}
		if a.Ending = a.Lease < 0; a.Ending { // see leaseColumn
			a.Lease = ^a.Lease
		}
		m.Agents = append(m.Agents, a)
	})
	if err != nil {
		return m, err
	}
	err = c.query("SELECT session, subject, key, fingerprint, task, at FROM idempotency_keys", func(row *columns) {
		k := registry.KeyRow{Session: row.text(), Subject: row.text(), Key: row.text()}
		copy(k.Fingerprint[:], row.bytes())
		k.ID, k.At = registry.ID(row.text()), row.time()
		m.Keys = append(m.Keys, k)
	})
	if err != nil {
		return m, err
	}
	err = c.query("SELECT kind, last FROM counters", func(row *columns) {
		m.Counters = append(m.Counters, registry.CounterRow{Kind: registry.Kind(row.text()), Last: row.uint()})
	})
	slices.SortFunc(m.Tasks, func(a, b registry.TaskRow) int { return cmp.Compare(a.Seq, b.Seq) })
	slices.SortFunc(m.Agents, func(a, b registry.AgentRow) int { return cmp.Compare(a.Seq, b.Seq) })
	slices.SortStableFunc(m.Keys, func(a, b registry.KeyRow) int { return a.At.Compare(b.At) })
	return m, err
}

func (c *db) tasks() (tasks []registry.TaskRow, err error) {
	err = c.query(`SELECT tasks.id, seq, kind, label, output_limit, session, agent, incarnation,
			status, detail, result, started_at, finished_at, reported, output_bytes, dropped_bytes,
			cursor, stderr_cursor, announced, handle, foreground, coalesce(output, '')
		FROM tasks LEFT JOIN outputs ON outputs.id = tasks.id`, func(row *columns) {
		var t registry.TaskRow
		s := &t.Snapshot
		s.ID, t.Seq = registry.ID(row.text()), row.uint()
		s.Kind, s.Label, s.OutputLimitBytes = registry.Kind(row.text()), row.text(), row.int()
		s.Owner.Session, s.Owner.Agent, s.Owner.Incarnation = row.text(), row.text(), row.uint()
		s.Status, s.Detail, s.Result = registry.Status(row.text()), row.text(), row.bytes()
		s.StartedAt, s.FinishedAt = row.time(), row.time()
		s.Reported, s.OutputBytes, s.DroppedBytes = row.bool(), row.int(), row.int()
		t.Cursor, t.StderrCursor, t.Announced = row.int(), row.int(), row.bool()
		t.Handle, s.Foreground, t.Output = row.bytes(), row.bool(), row.text()
		tasks = append(tasks, t)
	})
	return tasks, err
}
