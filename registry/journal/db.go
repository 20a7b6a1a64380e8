package journal

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	sqlite3 "github.com/ncruces/go-sqlite3"
)

// walLimit is what the write-ahead log is cut to when it begins anew, in bytes.
const walLimit = 4 << 20

// cacheKiB is what of the database is kept in memory. Rows are hardly ever read, and
// those that are written lie together, for they are new.
const cacheKiB = 512

// busyWait bounds how long an opening waits for a process that is just ending.
const busyWait = 2 * time.Second

// db is an open database. It belongs to one goroutine.
type db struct {
	conn  *sqlite3.Conn
	disk  *disk
	stmts map[string]*sqlite3.Stmt
	// pages is the length of the write-ahead log.
	pages int
	// backup, when not nil, is on its way.
	backup *sqlite3.Backup
}

func uri(path string, d *disk) string {
	u := url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: "vfs=" + d.name}
	return u.String()
}

// connect opens what is at path, or makes it; a log that has lost something is refused.
func connect(path string, d *disk, sync bool) (*db, error) {
	if err := wholeLog(path); err != nil {
		return nil, err
	}
	return connectAnyway(path, d, sync)
}

// connectAnyway is connect, and drops what is lost.
func connectAnyway(path string, d *disk, sync bool) (*db, error) {
	d.forget()
	conn, err := sqlite3.OpenFlags(uri(path, d), sqlite3.OPEN_READWRITE|sqlite3.OPEN_CREATE|sqlite3.OPEN_URI)
	if err != nil {
		return nil, d.why(err)
	}
	c := &db{conn: conn, disk: d, stmts: make(map[string]*sqlite3.Stmt)}
	level := "normal"
	if sync {
		level = "full"
	}
	if err = conn.BusyTimeout(busyWait); err == nil {
		// The lock is taken with the first use and kept from then on.
		err = conn.Exec(fmt.Sprintf(`PRAGMA locking_mode = exclusive; PRAGMA temp_store = memory; PRAGMA cache_size = -%d;
			PRAGMA journal_mode = wal; PRAGMA synchronous = %s; PRAGMA journal_size_limit = %d;
			BEGIN IMMEDIATE; COMMIT`, cacheKiB, level, walLimit))
	}
	conn.WALHook(func(_ *sqlite3.Conn, _ string, pages int) error {
		c.pages = pages
		return nil
	})
	if err != nil {
		err = d.why(err)
		c.drop()
		return nil, err
	}
	return c, nil
}

// close writes the log into the database, removes it, and ends the connection.
func (c *db) close() error {
	c.end()
	return c.disk.why(c.conn.Close())
}

// drop ends the connection and leaves the files as they are.
func (c *db) drop() {
	_, _ = c.conn.Config(sqlite3.DBCONFIG_NO_CKPT_ON_CLOSE, true)
	c.end()
	_ = c.conn.Close() // what is on disk counts
}

func (c *db) end() {
	c.disk.forget()
	_ = c.endBackup() // ended before it was done, it has failed already
	for _, st := range c.stmts {
		_ = st.Close() // it gives the error of the last run again
	}
	clear(c.stmts)
}

func (c *db) endBackup() error {
	b := c.backup
	c.backup = nil
	return b.Close()
}

// write writes a batch as one transaction.
func (c *db) write(batch map[key]change) (err error) {
	c.disk.forget()
	if err := c.run("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	defer func() {
		if err != nil && !c.conn.GetAutocommit() {
			_ = c.conn.Exec("ROLLBACK") // the first error counts
		}
	}()
	for _, ch := range batch {
		if err := c.put(ch.row); err != nil {
			return err
		}
	}
	return c.run("COMMIT")
}

// checkpoint moves the log into the database.
func (c *db) checkpoint(mode sqlite3.CheckpointMode) error {
	c.disk.forget()
	n, moved, err := c.conn.WALCheckpoint("main", mode)
	if err != nil {
		return c.disk.why(err)
	}
	if n == moved {
		c.pages = 0 // the next write begins it anew
	}
	return nil
}

// run runs a statement, which is kept, with the given arguments: string, int64,
// uint64, bool, []byte or time.Time, of which empty bytes and the zero time are
// stored as NULL.
func (c *db) run(sql string, args ...any) error {
	st, err := c.prepare(sql, args)
	if err != nil {
		return c.disk.why(err)
	}
	return c.disk.why(st.Exec())
}

// query calls row for each row.
func (c *db) query(sql string, row func(*columns)) error {
	st, err := c.prepare(sql, nil)
	if err != nil {
		return c.disk.why(err)
	}
	for st.Step() {
		row(&columns{st: st})
	}
	err = st.Err()
	return c.disk.why(errors.Join(err, st.Reset()))
}

func (c *db) prepare(sql string, args []any) (*sqlite3.Stmt, error) {
	st := c.stmts[sql]
	if st == nil {
		var err error
		if st, _, err = c.conn.Prepare(sql); err != nil {
			return nil, err
		}
		c.stmts[sql] = st
	}
	for i, arg := range args {
		if err := bind(st, i+1, arg); err != nil {
			return nil, err
		}
	}
	return st, nil
}

func bind(st *sqlite3.Stmt, i int, arg any) error {
	switch a := arg.(type) {
	case string:
		return st.BindText(i, a)
	case int64:
		return st.BindInt64(i, a)
	case uint64:
		return st.BindInt64(i, int64(a)) // the same 64 bits
	case bool:
		return st.BindBool(i, a)
	case []byte:
		if len(a) == 0 {
			return st.BindNull(i)
		}
		return st.BindBlob(i, a)
	case time.Time:
		if a.IsZero() {
			return st.BindNull(i)
		}
		return st.BindInt64(i, a.UnixNano())
	}
	return fmt.Errorf("no column type for a %T", arg)
}

// columns reads a row from left to right.
type columns struct {
	st *sqlite3.Stmt
	i  int
}

func (c *columns) next() int {
	c.i++
	return c.i - 1
}

func (c *columns) text() string { return c.st.ColumnText(c.next()) }
func (c *columns) int() int64   { return c.st.ColumnInt64(c.next()) }
func (c *columns) uint() uint64 { return uint64(c.int()) }
func (c *columns) bool() bool   { return c.st.ColumnBool(c.next()) }
func (c *columns) bytes() []byte {
	i := c.next()
	if c.st.ColumnType(i) == sqlite3.NULL {
		return nil
	}
	return c.st.ColumnBlob(i, nil)
}

func (c *columns) time() time.Time {
	i := c.next()
	if c.st.ColumnType(i) == sqlite3.NULL {
		return time.Time{}
	}
	return time.Unix(0, c.st.ColumnInt64(i)).UTC()
}
