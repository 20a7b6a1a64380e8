package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	sqlite3 "github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"
)

// Report is what a look at a journal finds.
type Report struct {
	Path string
	// Version is the file's schema version and Binary the newest one known here.
	Version, Binary int
	// Size and Log are the lengths of the database and of its write-ahead log.
	Size, Log int64
	// Mode is the database's permissions.
	Mode fs.FileMode
	// InUse says that a process has the journal open, Reserve that space is held.
	InUse, Reserve bool
	// Unsettled says that what was found is worth nothing, because the database
	// changed under every look; nothing is then said of rows and problems.
	Unsettled bool
	// Rows counts what is kept, by table.
	Rows map[string]int64
	// Problems is what is wrong; empty for a sound journal.
	Problems []string
}

// inspectFor bounds the check, and tries how often a journal in use may change
// under it.
const (
	inspectFor   = 30 * time.Second
	inspectTries = 5
)

// Inspect looks at the journal without changing or locking anything, also while it
// is in use. The error is [fs.ErrNotExist] if there is none, a [*DamageError] if
// it cannot be read at all, a [*VersionError] if it is a newer one; the report then
// has what could be found. A sound journal may still have a log to be worked in,
// which is normal after a sudden end.
func Inspect(path string) (r Report, err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return r, err
	}
	for range inspectTries {
		before := stateOf(path)
		r, err = inspect(path)
		if stateOf(path) == before || (err == nil && len(r.Problems) == 0) {
			return r, err
		}
	}
	if damage := (*DamageError)(nil); errors.As(err, &damage) || err == nil {
		r.Unsettled, r.Rows, r.Problems = true, nil, nil
		return r, nil
	}
	return r, err
}

// state tells whether a database was written, or its log begun anew.
type state struct {
	size    int64
	written time.Time
	log     [32]byte
}

func stateOf(path string) (s state) {
	if info, err := os.Stat(path); err == nil {
		s.size, s.written = info.Size(), info.ModTime()
	}
	if f, err := os.Open(path + walSuffix); err == nil {
		_, _ = f.ReadAt(s.log[:], 0) // an empty log has no header
		_ = f.Close()
	}
	return s
}

func inspect(path string) (r Report, err error) {
	r = Report{Path: path, Binary: len(schema()), Rows: make(map[string]int64)}
	info, err := os.Lstat(path)
	if err != nil {
		return r, err
	}
	if !info.Mode().IsRegular() {
		return r, fmt.Errorf("the journal's file %s is a %s: only a plain file will do", path, kind(info.Mode()))
	}
	r.Size, r.Mode = info.Size(), info.Mode().Perm()
	if info, err := os.Lstat(path + walSuffix); err == nil {
		r.Log = info.Size()
	}
	if info, err := os.Lstat(path + reserveSuffix); err == nil {
		r.Reserve = info.Size() == reserveBytes
	}
	if err := header(path, r.Size); err != nil {
		return r, err
	}
	if err := wholeLog(path); err != nil {
		return r, err
	}
	c, err := look(path, false)
	if err != nil {
		return r, openError(path, err)
	}
	defer c.disk.close()
	defer c.drop()
	if r.InUse, err = c.inUse(); err != nil {
		return r, err
	}
	if r.Version, err = c.identify(path, schema()); err != nil {
		return r, err
	}
	if r.Problems, err = c.problems(inspectFor); errors.Is(err, sqlite3.INTERRUPT) {
		r.Problems = append(r.Problems, "the check was not done after "+inspectFor.String())
	} else if err != nil {
		return r, openError(path, err)
	}
	return r, openError(path, c.count(r.Rows))
}

// look opens a database for one long look, with its log or as if there was none.
func look(path string, alone bool) (*db, error) {
	d, err := newDisk(nil)
	if err != nil {
		return nil, err
	}
	d.looking, d.alone = true, alone
	conn, err := sqlite3.OpenFlags(uri(path, d), sqlite3.OPEN_READONLY|sqlite3.OPEN_URI)
	if err != nil {
		err = d.why(err)
		d.close()
		return nil, err
	}
	c := &db{conn: conn, disk: d, stmts: make(map[string]*sqlite3.Stmt)}
	err = errors.Join(
		conn.Exec("PRAGMA locking_mode = exclusive"), // so that the log's index is on the heap
		conn.Exec("PRAGMA temp_store = memory"),
		conn.Exec("BEGIN; SELECT count(*) FROM sqlite_schema"),
	)
	if err != nil {
		c.drop()
		d.close()
		return nil, err
	}
	return c, nil
}

// count counts the rows of every table.
func (c *db) count(rows map[string]int64) error {
	var tables []string
	err := c.query("SELECT name FROM sqlite_schema WHERE type = 'table'", func(row *columns) {
		tables = append(tables, row.text())
	})
	for _, t := range tables {
		if err != nil {
			break
		}
		err = c.query("SELECT count(*) FROM "+sqlite3.QuoteIdentifier(t), func(row *columns) { rows[t] = row.int() })
	}
	return err
}

// inUse asks for the lock that an open journal holds, and lets it go again.
func (c *db) inUse() (bool, error) {
	main := c.disk.main
	// The layer's codes have a type of their own; their words are the same.
	if err := main.Lock(vfs.LOCK_SHARED); err != nil && err.Error() == sqlite3.BUSY.Error() {
		return true, nil
	} else if err != nil {
		return false, err
	}
	return false, main.Unlock(vfs.LOCK_NONE)
}
