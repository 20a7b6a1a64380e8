package journal

import (
	"fmt"

	"afoot/registry"
)

// put writes one change.
func (c *db) put(row any) error {
	switch r := row.(type) {
	case registry.TaskRow:
		return c.putTask(r)
	case registry.TaskGone:
		if err := c.run("DELETE FROM outputs WHERE id = ?", string(r.ID)); err != nil {
			return err
		}
		return c.run("DELETE FROM tasks WHERE id = ?", string(r.ID))
	case registry.AgentRow:
		return c.run("INSERT OR REPLACE INTO agents VALUES (?, ?, ?, ?, ?, ?)",
			r.Owner.Session, r.Owner.Agent, r.Owner.Incarnation, r.Seq, r.Label, leaseColumn(r))
	case registry.AgentGone:
		return c.run("DELETE FROM agents WHERE session = ? AND agent = ? AND incarnation = ?",
			r.Owner.Session, r.Owner.Agent, r.Owner.Incarnation)
	case registry.KeyRow:
		return c.run("INSERT OR REPLACE INTO idempotency_keys VALUES (?, ?, ?, ?, ?, ?)",
			r.Session, r.Subject, r.Key, r.Fingerprint[:], string(r.ID), r.At)
	case registry.KeyGone:
		return c.run("DELETE FROM idempotency_keys WHERE session = ? AND subject = ? AND key = ?", r.Session, r.Subject, r.Key)
	case registry.CounterRow:
		return c.run("INSERT OR REPLACE INTO counters VALUES (?, ?)", string(r.Kind), r.Last)
	case setting:
		return c.run("INSERT OR REPLACE INTO settings VALUES (?, ?)", r.name, r.value)
	}
	return c.putNotice(row)
}

// leaseColumn is negative of an ending agent, whose lease is over: a column of its own would
// be another version of the schema, which older binaries refuse.
func leaseColumn(r registry.AgentRow) int64 {
	if r.Ending {
		return ^int64(r.Lease)
	}
	return int64(r.Lease)
}

func (c *db) putTask(r registry.TaskRow) error {
	s := r.Snapshot
	sql := "INSERT OR REPLACE INTO tasks VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21)"
	if r.Handle == nil { // as it was
		sql = `INSERT OR REPLACE INTO tasks VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19,
			coalesce(?20, (SELECT handle FROM tasks WHERE id = ?1)), ?21)`
	}
	err := c.run(sql,
		string(s.ID), r.Seq, string(s.Kind), s.Label, s.OutputLimitBytes,
		s.Owner.Session, s.Owner.Agent, s.Owner.Incarnation,
		string(s.Status), s.Detail, []byte(s.Result), s.StartedAt, s.FinishedAt,
		s.Reported, s.OutputBytes, s.DroppedBytes,
		r.Cursor, r.StderrCursor, r.Announced, []byte(r.Handle), s.Foreground)
	if err != nil {
		return err
	}
	if r.Output == "" {
		return c.run("DELETE FROM outputs WHERE id = ?", string(s.ID))
	}
	return c.run("INSERT INTO outputs VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET output = excluded.output WHERE output <> excluded.output",
		string(s.ID), r.Output)
}

func (c *db) putNotice(row any) error {
	switch r := row.(type) {
	case noticePut:
		return c.run("INSERT OR REPLACE INTO notices VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
			r.Session, r.Number, r.Key, r.Owner, r.Agent, r.Event, r.Data, r.Written, r.Held)
	case noticeWritten:
		return c.run("UPDATE notices SET written_at = ? WHERE session = ? AND number = ?", r.at, r.session, r.number)
	case noticeHeld:
		return c.run("UPDATE notices SET held = 1 WHERE session = ? AND number = ?", r.session, r.number)
	case noticeGone:
		return c.run("DELETE FROM notices WHERE session = ? AND number = ?", r.session, r.number)
	case sessionMark:
		return c.run(`INSERT INTO sessions VALUES (?, ?, ?)
			ON CONFLICT (session) DO UPDATE SET last = max(last, excluded.last), evicted = max(evicted, excluded.evicted)`,
			r.session, r.last, r.evicted)
	case sessionGone:
		return c.run("DELETE FROM sessions WHERE session = ?", r.session)
	case lostNotice:
		return c.run("INSERT OR REPLACE INTO lost_notices VALUES (?, ?, ?)", r.session, r.owner, r.agent)
	case lostGone:
		return c.run("DELETE FROM lost_notices WHERE session = ? AND owner = ?", r.session, r.owner)
	}
	if found, err := c.putWebhook(row); found {
		return err
	}
	return fmt.Errorf("no table for a %T", row)
}
