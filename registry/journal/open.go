package journal

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	sqlite3 "github.com/ncruces/go-sqlite3"
)

// The names of what lies beside the database.
const (
	walSuffix     = "-wal"
	rollSuffix    = "-journal"
	reserveSuffix = "-reserve"
	freshSuffix   = "-new"
)

// lookFor bounds the look for damage at an opening.
const lookFor = 2 * time.Second

// headerBytes is the least that a database can be.
const headerBytes = 100

// Open opens the journal at cfg.Path, or makes it. A journal of an older version is
// migrated. The errors are [*DamageError], [*VersionError], [ErrInUse], or what
// the system says.
func Open(cfg Config) (*Journal, error) { return open(cfg, nil, schema()) }

func open(cfg Config, over layer, steps []string) (*Journal, error) {
	path, err := filepath.Abs(cfg.Path)
	if err != nil {
		return nil, fmt.Errorf("the journal's path: %w", err)
	}
	cfg.Path = path
	d, err := newDisk(over)
	if err != nil {
		return nil, err
	}
	j := &Journal{
		cfg:      cfg,
		log:      cfg.Logger,
		settings: make(map[string]string),
		poke:     make(chan struct{}, 1),
		jobs:     make(chan func()),
		quit:     make(chan context.Context, 1),
		done:     make(chan struct{}),
	}
	if j.log == nil {
		j.log = slog.New(slog.DiscardHandler)
	}
	j.line.wake = make(chan struct{}, 1)
	j.line.rows = make(map[key]change)
	w := &j.writer
	w.disk = d
	w.reserve = reserve{path: path + reserveSuffix, log: path + walSuffix}
	if err := j.start(steps); err != nil {
		if w.db != nil {
			w.db.drop()
		}
		d.close()
		return nil, err
	}
	w.timer = time.NewTimer(time.Hour)
	w.timer.Stop()
	if err := w.reserve.take(reserveBytes); err != nil {
		w.space = storageError(err)
		j.tell()
	}
	go j.run()
	return j, nil
}

// start opens the database and reads the settings.
func (j *Journal) start(steps []string) error {
	path, w := j.cfg.Path, &j.writer
	there, err := inspectFiles(path)
	if err != nil {
		return err
	}
	if !there {
		if err := j.create(steps); err != nil {
			return err
		}
	}
	if w.db, err = connect(path, w.disk, j.cfg.Full); err != nil {
		return openError(path, err)
	}
	version, err := w.db.identify(path, steps)
	if err != nil {
		return err
	}
	if err := w.db.whole(path, lookFor, j.log); err != nil {
		return err
	}
	if err := w.db.migrate(version, steps); err != nil {
		return err
	}
	err = w.db.query("SELECT name, value FROM settings", func(row *columns) {
		name := row.text()
		j.settings[name] = row.text()
	})
	return openError(path, err)
}

// inspectFiles refuses what is no plain file, what is too short to be a database
// and a log without one; it says whether there is a database, and takes from
// others the right to read it.
func inspectFiles(path string) (there bool, err error) {
	for _, suffix := range []string{"", walSuffix, rollSuffix, reserveSuffix} {
		info, err := os.Lstat(path + suffix)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return false, err
		case !info.Mode().IsRegular():
			return false, fmt.Errorf("the journal's file %s is a %s: only a plain file will do", path+suffix, kind(info.Mode()))
		case suffix == "":
			if err := header(path, info.Size()); err != nil {
				return false, err
			}
		case suffix == walSuffix && !there && info.Size() > 0:
			return false, damaged(path, nil, "its database is missing and its log is not")
		}
		if info.Mode().Perm()&0o077 != 0 {
			if err := os.Chmod(path+suffix, 0o600); err != nil {
				return false, err
			}
		}
		there = there || suffix == ""
	}
	return there, nil
}

// header refuses what does not begin like a journal. SQLite would take an empty
// file for a new database, and make its own of somebody else's.
func header(path string, size int64) error {
	if size < headerBytes {
		return damaged(path, nil, "it is cut to %d bytes", size)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	var b [headerBytes]byte
	if _, err := io.ReadFull(f, b[:]); err != nil {
		return err
	}
	if !bytes.HasPrefix(b[:], []byte("SQLite format 3\x00")) {
		return damaged(path, nil, "it is not a database")
	}
	if binary.BigEndian.Uint32(b[68:]) != applicationID {
		return damaged(path, nil, "it is a database of something else")
	}
	return nil
}

func kind(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeSymlink != 0:
		return "link"
	case mode.IsDir():
		return "directory"
	}
	return "special file"
}

// create makes an empty journal under another name first, so that a database that
// is there is always a whole one.
func (j *Journal) create(steps []string) error {
	fresh := j.cfg.Path + freshSuffix
	for _, suffix := range []string{"", walSuffix, rollSuffix} {
		if err := os.Remove(fresh + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	c, err := connect(fresh, j.writer.disk, true)
	if err != nil {
		return fmt.Errorf("make the journal %s: %w", j.cfg.Path, err)
	}
	err = c.conn.Exec(fmt.Sprintf("PRAGMA application_id = %d", applicationID))
	if err == nil {
		err = c.migrate(0, steps)
	}
	if err == nil {
		err = c.checkpoint(sqlite3.CHECKPOINT_TRUNCATE)
	}
	if err = errors.Join(err, c.close()); err != nil {
		return fmt.Errorf("make the journal %s: %w", j.cfg.Path, err)
	}
	if err := os.Rename(fresh, j.cfg.Path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(j.cfg.Path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// whole looks for damage, but not for longer than bound.
func (c *db) whole(path string, bound time.Duration, log *slog.Logger) error {
	problems, err := c.problems(bound)
	switch {
	case errors.Is(err, sqlite3.INTERRUPT):
		log.Info("journal opened without a full check", "file", path, "after", bound)
	case err != nil:
		return openError(path, err)
	case len(problems) > 0:
		return damaged(path, nil, "%s", problems[0])
	}
	return nil
}

// problems gives what a quick check finds.
func (c *db) problems(bound time.Duration) (found []string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	before := c.conn.SetInterrupt(ctx)
	err = c.query("PRAGMA quick_check(10)", func(row *columns) {
		if line := row.text(); line != "ok" {
			found = append(found, line)
		}
	})
	c.conn.SetInterrupt(before)
	return found, err
}
