package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// backupPages is how much of a backup is copied between two transactions.
const backupPages = 64

// Backup writes the journal as it is at its end into a new file with mode 0600,
// which appears when it is whole; one that is there is never replaced. Writing goes
// on meanwhile. What is in line at the call is in it, unless there is trouble.
func (j *Journal) Backup(ctx context.Context, path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("back up to %s: %w", path, fs.ErrExist)
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.part")
	if err != nil {
		return fmt.Errorf("back up to %s: %w", path, err)
	}
	part := f.Name()
	defer func() {
		_ = os.Remove(part) // by the other name it is whole, or it is nothing
		_ = os.Remove(part + rollSuffix)
		_ = os.Remove(part + walSuffix)
	}()
	if err := f.Close(); err != nil {
		return fmt.Errorf("back up to %s: %w", path, err)
	}
	if err := j.copyTo(ctx, part); err != nil {
		return fmt.Errorf("back up to %s: %w", path, err)
	}
	if err := unmark(part); err != nil {
		return fmt.Errorf("back up to %s: %w", path, err)
	}
	// A link, unlike a rename, never replaces.
	if err := os.Link(part, path); err != nil {
		return fmt.Errorf("back up to %s: %w", path, err)
	}
	return syncDir(filepath.Dir(path))
}

// copyTo copies the database in steps, between which the writer goes on.
func (j *Journal) copyTo(ctx context.Context, path string) error {
	d, err := newDisk(nil)
	if err != nil {
		return err
	}
	defer d.close()
	first := func(c *db) (err error) {
		if c.backup != nil {
			return errors.New("another backup is on its way")
		}
		c.backup, err = c.conn.BackupInit("main", uri(path, d))
		return d.why(err)
	}
	// Rows in line at the call are written before the first step.
	if err := j.Sync(ctx, j.Append()); err != nil && ctx.Err() != nil {
		return err
	}
	var mine *db
	err = j.do(ctx, func(c *db) error {
		mine = c
		return first(c)
	})
	if err != nil {
		return err
	}
	for done := false; !done && err == nil; {
		err = j.do(ctx, func(c *db) (err error) {
			if c != mine || c.backup == nil {
				return errors.New("the journal was opened anew meanwhile")
			}
			done, err = c.backup.Step(backupPages)
			return d.why(err)
		})
	}
	end := j.do(context.WithoutCancel(ctx), func(c *db) error {
		if c != mine || c.backup == nil {
			return nil
		}
		return d.why(c.endBackup())
	})
	return errors.Join(err, end)
}

// unmark takes the epoch out of a copy.
func unmark(path string) error {
	d, err := newDisk(nil)
	if err != nil {
		return err
	}
	defer d.close()
	c, err := connect(path, d, true)
	if err != nil {
		return err
	}
	err = c.run("DELETE FROM settings WHERE name = ?", epochSetting)
	return errors.Join(err, c.close())
}
