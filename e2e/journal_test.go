package e2e

import (
	"bytes"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// journal is where a daemon keeps its records.
func (d *daemon) journal() string { return filepath.Join(d.state, "journal.db") }

// journalFiles are the journal and what lies beside it.
func (d *daemon) journalFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(d.journal() + "*")
	require.NoError(t, err)
	return files
}

// J5: the journal's files are closed to others while it runs and after each end.
func TestJ5JournalIsClosedToOthers(t *testing.T) {
	t.Parallel()
	d := prepare(t)
	d.withUmask("0")
	closed := func() {
		files := d.journalFiles(t)
		require.Contains(t, files, d.journal())
		for _, path := range files {
			info, err := os.Lstat(path)
			require.NoError(t, err)
			require.Equal(t, fs.FileMode(0o600), info.Mode(), path)
		}
	}
	for _, end := range []func(){d.stop, func() { d.die(t) }} {
		d.again()
		c := d.as("j5")
		c.collected(t, "echo x")
		closed()
		end()
		closed()
	}
	// Wider ones are narrowed, not used as they are.
	for _, path := range d.journalFiles(t) {
		require.NoError(t, os.Chmod(path, 0o666))
	}
	d.again()
	closed()
}

// J5: a link at a place of the journal is not followed, also to what would be a
// journal.
func TestJ5LinkedJournal(t *testing.T) {
	t.Parallel()
	first := serve(t)
	first.as("j5").collected(t, "echo x")
	first.stop()
	whole, err := os.ReadFile(first.journal())
	require.NoError(t, err)
	for _, suffix := range []string{"", "-wal", "-reserve"} {
		d := prepare(t)
		require.NoError(t, os.Mkdir(d.state, 0o700))
		if suffix != "" {
			require.NoError(t, os.WriteFile(d.journal(), whole, 0o600))
		}
		require.NoError(t, os.Symlink(first.journal(), d.journal()+suffix))
		d.refuses(d.journal()+suffix, "link")
		now, err := os.ReadFile(first.journal())
		require.NoError(t, err)
		require.Equal(t, whole, now, "the link's target is unchanged")
	}
}

// A journal that can't be trusted stops the start, is left as it is, and the words say
// what can be done.
func TestDamagedJournal(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("damaged")
	c.ends(t, 5)
	d.stop()
	whole, err := os.ReadFile(d.journal())
	require.NoError(t, err)
	for name, harm := range map[string]func([]byte) []byte{
		"empty":           func([]byte) []byte { return nil },
		"cut":             func(b []byte) []byte { return b[:len(b)/2] },
		"cut to a header": func(b []byte) []byte { return b[:100] },
		"something else":  func(b []byte) []byte { return bytes.Repeat([]byte("not a database\n"), len(b)/15) },
		"zeros inside":    func(b []byte) []byte { return append(append(b[:4096:4096], make([]byte, 8192)...), b[12288:]...) },
	} {
		t.Run(name, func(t *testing.T) {
			harmed := harm(whole)
			require.NoError(t, os.WriteFile(d.journal(), harmed, 0o600))
			d.refuses(d.journal(), "damaged", "afoot doctor", "afoot backup")
			now, err := os.ReadFile(d.journal())
			require.NoError(t, err)
			require.True(t, bytes.Equal(harmed, now), "nothing is changed")
		})
	}
	// As it was, it works.
	require.NoError(t, os.WriteFile(d.journal(), whole, 0o600))
	d.again()
	require.Len(t, c.list(t, ""), 5)
	d.stop()

	// So does the advice: moved away, everything begins anew.
	for _, path := range d.journalFiles(t) {
		require.NoError(t, os.Rename(path, filepath.Join(d.work, filepath.Base(path))))
	}
	d.again()
	require.Empty(t, c.list(t, ""))
	require.Equal(t, "bash-1", c.start(t, "true").ID)
}

// An older binary on a newer journal refuses and says so.
func TestNewerJournal(t *testing.T) {
	t.Parallel()
	d := serve(t)
	d.as("newer").ends(t, 2)
	d.stop()
	whole, err := os.ReadFile(d.journal())
	require.NoError(t, err)
	newer := bytes.Clone(whole)
	newer[63]++ // the lowest byte of user_version in SQLite's header
	require.NoError(t, os.WriteFile(d.journal(), newer, 0o600))
	d.refuses(d.journal(), fmt.Sprintf("version %d", newer[63]), "newer binary")
	now, err := os.ReadFile(d.journal())
	require.NoError(t, err)
	require.Equal(t, newer, now)
}

// Without a state directory everything works in memory, and nothing is left.
func TestMemoryAlone(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"in order", "killed"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			scratch := t.TempDir()
			d := serve(t, "AFOOT_STATE_DIR=memory:", "TMPDIR="+scratch)
			c := d.as("memory")
			events := c.subscribe(t, "", "")
			live := c.start(t, `echo up; sleep 975`).ID
			c.says(t, live, "up")
			require.Equal(t, "much\n", c.read(t, c.collected(t, "echo much"), "offset=0").Text)
			ended := c.start(t, `seq 1 100000; exit 3`).ID
			eventually(t, 20*time.Second, "its notice", func() bool { return slices.Contains(ids(t, events.all("task.done")), ended) })
			body := startBody("echo once")
			for _, status := range []int{http.StatusCreated, http.StatusOK} {
				require.Equal(t, status, c.do(t, http.MethodPost, "/tasks", body, "Idempotency-Key: m").status)
			}
			if how == "killed" {
				d.die(t)
			} else {
				d.stop()
			}
			require.NoDirExists(t, d.state)
			require.NoDirExists(t, filepath.Join(d.dir, "memory:"))
			eventually(t, orphaned, "nothing is left", func() bool {
				entries, err := os.ReadDir(scratch)
				return err == nil && len(entries) == 0 && len(d.alive()) == 0
			})
			d.again()
			require.Empty(t, c.list(t, ""))
			again := c.subscribe(t, "", events.all("task.done")[0].id)
			require.Equal(t, "gap", again.await(t, 5*time.Second, 1, "gap", "task.done")[0].name)
		})
	}
}

// A copy that was made under full use is a whole journal: all that was answered before
// is in it.
func TestBackup(t *testing.T) {
	t.Parallel()
	d := serve(t, "AFOOT_MAX_TASKS_PER_OWNER=40")
	c := d.as("backup")
	events := c.subscribe(t, "", "")
	known := c.ends(t, 3)
	live := c.start(t, `echo up; sleep 977`).ID
	c.says(t, live, "up")
	first := events.done(t, 3)[0]
	reported := c.collected(t, "echo reported")
	var facts []snapshot
	for _, id := range append(known, reported) {
		facts = append(facts, c.get(t, id))
	}
	file := filepath.Join(d.work, "copy")
	var g errgroup.Group
	for range 4 {
		g.Go(func() error {
			for range 15 {
				if a, err := c.call(t.Context(), http.MethodPost, "/tasks?wait=true", startBody("true")); err != nil || a.status != http.StatusCreated {
					return fmt.Errorf("%s: %w", a, err)
				}
			}
			return nil
		})
	}
	_, errs, code := d.command("backup", file)
	require.NoError(t, g.Wait())
	require.Equal(t, 0, code, errs)
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode())
	_, errs, code = d.command("backup", file)
	require.NotZero(t, code, "a file that is there is left alone")
	require.Contains(t, errs, file)
	require.Equal(t, "running", c.get(t, live).Status)
	shown := c.start(t, "true").ID
	require.NotEmpty(t, shown)

	other := prepare(t)
	require.NoError(t, os.Mkdir(other.state, 0o700))
	require.NoError(t, os.Rename(file, other.journal()))
	other.launch()
	other.ready()
	oc := other.as("backup")
	for _, s := range facts {
		now := oc.get(t, s.ID)
		s.DroppedBytes = now.DroppedBytes // the output is not in it, which is told
		require.True(t, s.same(now), "%+v is now %+v", s, now)
		require.Equal(t, s.Reported, now.Reported)
		o := oc.read(t, s.ID, "offset=0")
		require.True(t, o.EOF)
		require.Equal(t, s.OutputBytes, o.DroppedBytes+int64(len(o.Text)))
	}
	wasLost(t, oc.get(t, live))
	// Numbers may have been given since to other ends: ids of before are of another epoch.
	again := oc.subscribe(t, "", first.id)
	require.Equal(t, "gap", again.await(t, 5*time.Second, 1, "gap", "task.done")[0].name)
	eventually(t, 10*time.Second, "notice of the lost one", func() bool { return slices.Contains(ids(t, again.all("task.done")), live) })
	require.Len(t, again.all("gap"), 1)
	require.Equal(t, "running", c.get(t, live).Status, "the first goes on")
}
