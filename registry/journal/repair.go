package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	sqlite3 "github.com/ncruces/go-sqlite3"
)

// Repair does what is safe for a journal that nobody has open, and says what it
// did: permissions that are too wide, the rest of a creation that was cut short, a
// log that was not worked in. It never touches a damaged or newer journal, and never
// drops a row. The errors are those of [Open]; what was done before stays done.
func Repair(path string) (done []string, err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if done, err = narrow(path); err != nil {
		return done, err
	}
	there, err := inspectFiles(path)
	if err != nil || !there {
		return done, err
	}
	d, err := newDisk(nil)
	if err != nil {
		return done, err
	}
	defer d.close()
	log, _ := os.Lstat(path + walSuffix)
	c, err := connect(path, d, true)
	if err != nil {
		return done, openError(path, err)
	}
	if _, err = c.identify(path, schema()); err == nil {
		err = c.whole(path, inspectFor, slog.New(slog.DiscardHandler))
	}
	if err != nil {
		c.drop()
		return done, err
	}
	// It is held here now, and so is what a creation left.
	left, err := sweep(path)
	done = append(done, left...)
	if err != nil {
		c.drop()
		return done, err
	}
	if err := c.checkpoint(sqlite3.CHECKPOINT_TRUNCATE); err != nil {
		c.drop()
		return done, openError(path, err)
	}
	if log != nil && log.Size() > 0 {
		done = append(done, fmt.Sprintf("worked the log of %d bytes into the journal", log.Size()))
	}
	return done, openError(path, c.close())
}

// narrow takes the files' permissions for others away.
func narrow(path string) (done []string, err error) {
	for _, suffix := range []string{"", walSuffix, reserveSuffix} {
		info, err := os.Lstat(path + suffix)
		if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o077 == 0 {
			continue
		}
		if err := os.Chmod(path+suffix, 0o600); err != nil {
			return done, err
		}
		done = append(done, fmt.Sprintf("took the right to read %s from others", path+suffix))
	}
	return done, nil
}

// sweep removes what a creation that was cut short has left.
func sweep(path string) (done []string, err error) {
	for _, suffix := range []string{"", walSuffix, rollSuffix} {
		name := path + freshSuffix + suffix
		switch err := os.Remove(name); {
		case err == nil:
			done = append(done, fmt.Sprintf("removed %s, which a creation had left", name))
		case !errors.Is(err, fs.ErrNotExist):
			return done, err
		}
	}
	return done, nil
}
