package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	sqlite3 "github.com/ncruces/go-sqlite3"

	"afoot/registry"
)

// lostSuffix begins the names under which a damaged journal is kept.
const lostSuffix = "-lost"

// startsPerFrame bounds how many tasks can begin with what is in one frame of a log.
const startsPerFrame = 64

// AcceptLoss goes on with what can be had of a journal whose log is damaged, and says
// what it did; where the log is whole it does nothing. What was there is kept beside it.
// The caller sees to it that nobody opens the journal meanwhile.
//
// What was given up may have been told, so the epoch goes, and every counter, that of
// each named kind in any case, is set beyond what can have been shown.
func AcceptLoss(path string, kinds ...registry.Kind) (done []string, err error) {
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	if there, err := inspectFiles(path); err != nil || !there {
		return nil, err
	}
	var damage *DamageError
	if err := wholeLog(path); err == nil || !errors.As(err, &damage) || !damage.Log {
		return nil, err
	}
	log, err := walkLog(path + walSuffix)
	if err != nil {
		return nil, err
	}
	alone, err := better(path)
	if err != nil {
		return nil, err
	}
	fresh := path + freshSuffix
	if _, err := sweep(path); err != nil {
		return nil, err
	}
	err = copyFile(path, fresh)
	if err == nil && !alone {
		err = copyFile(path+walSuffix, fresh+walSuffix)
	}
	if err == nil {
		err = goOn(fresh, uint64(log.gone+1)*startsPerFrame, kinds)
	}
	if err != nil {
		_, sweepErr := sweep(path)
		return nil, errors.Join(fmt.Errorf("go on with the journal %s: %w", path, err), sweepErr)
	}
	aside, err := keepAside(path)
	if err != nil {
		return nil, err
	}
	done = append(done, "what was there is kept as "+aside+" and "+aside+walSuffix)
	// In this order: a new database with the damaged log is refused as well.
	if err := os.Rename(fresh, path); err != nil {
		return done, err
	}
	if err := os.Remove(path + walSuffix); err != nil {
		return done, err
	}
	kept := fmt.Sprintf("the first %d frames of its log were worked in, and the rest given up", log.frames)
	if alone {
		kept = "its log was given up"
	}
	return append(done, kept), syncDir(filepath.Dir(path))
}

// better says whether the database alone is to be gone on with: the first frames of a log
// that was moved into it would take pages back.
func better(path string) (alone bool, err error) {
	with, withErr := weigh(path, false)
	without, withoutErr := weigh(path, true)
	switch {
	case errors.Is(withErr, ErrInUse):
		return false, withErr
	case withErr == nil && withoutErr == nil:
		return without > with, nil
	case withErr == nil:
		return false, nil
	}
	return true, withoutErr
}

// weigh says how far the numbers of a sound journal have come.
func weigh(path string, alone bool) (weight uint64, err error) {
	c, err := look(path, alone)
	if err != nil {
		return 0, openError(path, err)
	}
	defer c.disk.close()
	defer c.drop()
	if used, err := c.inUse(); err != nil {
		return 0, err
	} else if used {
		return 0, fmt.Errorf("%w: %s", ErrInUse, path)
	}
	version, err := c.identify(path, schema())
	if err != nil {
		return 0, err
	}
	if known := len(schema()); version != known {
		return 0, fmt.Errorf("the journal %s has version %d, and this is about version %d", path, version, known)
	}
	var problem string
	err = c.query("PRAGMA integrity_check(1)", func(row *columns) { problem = row.text() })
	if err == nil && problem != "ok" {
		err = damaged(path, nil, "%s", problem)
	}
	if err != nil {
		return 0, openError(path, err)
	}
	for _, sql := range []string{
		"SELECT coalesce(sum(last), 0) FROM counters",
		"SELECT coalesce(sum(last), 0) FROM sessions",
		"SELECT coalesce(max(seq), 0) FROM tasks",
		"SELECT coalesce(max(seq), 0) FROM agents",
	} {
		if err := c.query(sql, func(row *columns) { weight += row.uint() }); err != nil {
			return 0, openError(path, err)
		}
	}
	return weight, nil
}

// goOn makes a journal of what its files have, with numbers that are that far ahead.
func goOn(path string, ahead uint64, kinds []registry.Kind) error {
	d, err := newDisk(nil)
	if err != nil {
		return err
	}
	defer d.close()
	c, err := connectAnyway(path, d, true)
	if err != nil {
		return err
	}
	m, err := c.memory()
	if err == nil {
		err = c.run("BEGIN IMMEDIATE")
	}
	for _, counter := range raised(&m, ahead, kinds) {
		if err == nil {
			err = c.put(counter)
		}
	}
	if err == nil {
		err = c.run("DELETE FROM settings WHERE name = ?", epochSetting)
	}
	if err == nil {
		err = c.run("COMMIT")
	}
	if err == nil {
		err = c.checkpoint(sqlite3.CHECKPOINT_TRUNCATE)
	}
	if err != nil {
		c.drop()
		return err
	}
	return c.close()
}

// raised gives the counters, that far beyond what is known.
func raised(m *registry.Memory, ahead uint64, kinds []registry.Kind) []registry.CounterRow {
	last := map[registry.Kind]uint64{"": 0}
	for _, kind := range kinds {
		last[kind] = 0
	}
	for _, c := range m.Counters {
		last[c.Kind] = max(last[c.Kind], c.Last)
	}
	for i := range m.Tasks {
		last[""] = max(last[""], m.Tasks[i].Seq)
		if kind, n, ok := m.Tasks[i].Snapshot.ID.Parse(); ok {
			last[kind] = max(last[kind], n)
		}
	}
	for _, a := range m.Agents {
		last[""] = max(last[""], a.Seq)
		if kind, n, ok := registry.ID(a.Owner.Agent).Parse(); ok {
			last[kind] = max(last[kind], n)
		}
	}
	rows := make([]registry.CounterRow, 0, len(last))
	for kind, n := range last {
		rows = append(rows, registry.CounterRow{Kind: kind, Last: n + ahead})
	}
	return rows
}

// keepAside gives a journal's files further names, and says the first.
func keepAside(path string) (aside string, err error) {
	for n := 1; ; n++ {
		aside = path + lostSuffix
		if n > 1 {
			aside += fmt.Sprintf("-%d", n)
		}
		err = os.Link(path+walSuffix, aside+walSuffix)
		if err == nil {
			return aside, os.Link(path, aside)
		}
		if !errors.Is(err, fs.ErrExist) {
			return "", err
		}
	}
}

// copyFile copies a file to one that is not there yet.
func copyFile(from, to string) error {
	in, err := os.OpenFile(from, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // nothing was written
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}
