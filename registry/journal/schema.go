package journal

import (
	"errors"
	"fmt"
)

// applicationID marks the file as a journal: "Afot".
const applicationID = 0x41666f74

// schema gives the steps to the newest version; step i leads from version i to
// i+1. A step that was released never changes.
func schema() []string {
	return []string{version1, version2, version3, version4}
}

const version1 = `
CREATE TABLE tasks (
	id TEXT PRIMARY KEY, seq INTEGER NOT NULL, kind TEXT NOT NULL, label TEXT NOT NULL, output_limit INTEGER NOT NULL,
	session TEXT NOT NULL, agent TEXT NOT NULL, incarnation INTEGER NOT NULL,
	status TEXT NOT NULL, detail TEXT NOT NULL, result BLOB, started_at INTEGER, finished_at INTEGER,
	reported INTEGER NOT NULL, output_bytes INTEGER NOT NULL, dropped_bytes INTEGER NOT NULL,
	cursor INTEGER NOT NULL, stderr_cursor INTEGER NOT NULL, announced INTEGER NOT NULL, handle BLOB
) STRICT, WITHOUT ROWID;
-- Final output lies apart: a task's row changes often, and its output only once.
CREATE TABLE outputs (id TEXT PRIMARY KEY, output TEXT NOT NULL) STRICT;
CREATE TABLE agents (
	session TEXT NOT NULL, agent TEXT NOT NULL, incarnation INTEGER NOT NULL,
	seq INTEGER NOT NULL, label TEXT NOT NULL, lease INTEGER NOT NULL,
	PRIMARY KEY (session, agent, incarnation)
) STRICT, WITHOUT ROWID;
CREATE TABLE idempotency_keys (
	session TEXT NOT NULL, subject TEXT NOT NULL, key TEXT NOT NULL,
	fingerprint BLOB NOT NULL, task TEXT NOT NULL, at INTEGER,
	PRIMARY KEY (session, subject, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE counters (kind TEXT PRIMARY KEY, last INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE notices (
	session TEXT NOT NULL, number INTEGER NOT NULL,
	key TEXT NOT NULL, owner TEXT NOT NULL, agent TEXT NOT NULL, event TEXT NOT NULL, data BLOB, written_at INTEGER,
	PRIMARY KEY (session, number)
) STRICT, WITHOUT ROWID;
CREATE TABLE sessions (session TEXT PRIMARY KEY, last INTEGER NOT NULL, evicted INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE lost_notices (
	session TEXT NOT NULL, owner TEXT NOT NULL, agent TEXT NOT NULL,
	PRIMARY KEY (session, owner)
) STRICT, WITHOUT ROWID;
CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
`

// version2: tasks that a call waits for.
const version2 = `ALTER TABLE tasks ADD COLUMN foreground INTEGER NOT NULL DEFAULT 0`

// version4: notices that are held back.
const version4 = `ALTER TABLE notices ADD COLUMN held INTEGER NOT NULL DEFAULT 0`

// number gives what a pragma of one number says.
func (c *db) number(pragma string) (n int, err error) {
	err = c.query("PRAGMA "+pragma, func(row *columns) { n = int(row.int()) })
	return n, err
}

// identify says the journal's version, and whether these steps lead to it.
func (c *db) identify(path string, steps []string) (version int, err error) {
	if version, err = c.number("user_version"); err != nil {
		return 0, openError(path, err)
	}
	switch {
	case version > len(steps):
		return version, &VersionError{Path: path, File: version, Binary: len(steps)}
	case version < 1:
		return version, damaged(path, nil, "it has no version")
	}
	return version, nil
}

// migrate takes the steps from version on, each as one transaction.
func (c *db) migrate(version int, steps []string) error {
	for ; version < len(steps); version++ {
		err := c.conn.Exec(fmt.Sprintf("BEGIN IMMEDIATE; %s; PRAGMA user_version = %d; COMMIT", steps[version], version+1))
		if err != nil {
			err = c.disk.why(err)
			if !c.conn.GetAutocommit() {
				err = errors.Join(err, c.conn.Exec("ROLLBACK"))
			}
			return fmt.Errorf("migrate the journal to version %d: %w", version+1, err)
		}
	}
	return nil
}
