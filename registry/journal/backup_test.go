package journal

import (
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"afoot/registry"
)

func fingerprint(s string) []byte {
	sum := sha256.Sum256([]byte(s))
	return sum[:]
}

func TestBackupWhileWritten(t *testing.T) {
	j := opened(t, Config{Path: at(t)})
	for n := range uint64(3000) {
		j.Append(typical(n + 1))
	}
	synced(t, j)
	stop, ended := make(chan struct{}), make(chan struct{})
	begun := j.Stats().Commits
	go func() {
		defer close(ended)
		for n := uint64(3001); ; n++ {
			select {
			case <-stop:
				return
			default:
				_ = j.Sync(t.Context(), j.Append(typical(n), registry.AgentRow{Seq: n, Owner: registry.Owner{Incarnation: n}}))
			}
		}
	}()
	dir := t.TempDir()
	to := filepath.Join(dir, "copy")
	require.Eventually(t, func() bool { return j.Stats().Commits > begun }, 20*time.Second, time.Millisecond)
	for again := 1; ; again++ {
		commits := j.Stats().Commits
		require.NoError(t, j.Backup(t.Context(), to))
		if j.Stats().Commits > commits {
			break
		}
		require.Less(t, again, 20, "writing goes on")
		require.NoError(t, os.Remove(to))
	}
	close(stop)
	<-ended

	info, err := os.Stat(to)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing else is left")
	before, err := os.ReadFile(to)
	require.NoError(t, err)
	require.ErrorIs(t, j.Backup(t.Context(), to), fs.ErrExist)
	after, err := os.ReadFile(to)
	require.NoError(t, err)
	require.Equal(t, fingerprint(string(before)), fingerprint(string(after)))

	r, err := Inspect(to)
	require.NoError(t, err)
	require.Empty(t, r.Problems)
	m := memory(t, opened(t, Config{Path: to}))
	require.GreaterOrEqual(t, len(m.Tasks), 3000)
	require.Len(t, m.Agents, len(m.Tasks)-3000, "no half unit")
}

// A copy holds older numbers than were shown by then: its ids are not those of the
// journal.
func TestBackupHasNoEpoch(t *testing.T) {
	j := opened(t, Config{Path: at(t)})
	j.Notices().SetEpoch("first")
	j.SetSetting("other", "kept")
	synced(t, j, task(1))
	dir := t.TempDir()
	to := filepath.Join(dir, "copy")
	require.NoError(t, j.Backup(t.Context(), to))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing else is left")
	require.Equal(t, "first", j.Notices().Epoch())
	again := opened(t, Config{Path: to})
	require.Empty(t, again.Notices().Epoch())
	other, _ := again.Setting("other")
	require.Equal(t, "kept", other)
	require.Len(t, memory(t, again).Tasks, 1)
}

func TestBackupFailsClean(t *testing.T) {
	j := opened(t, Config{Path: at(t)})
	synced(t, j, task(1))
	require.ErrorIs(t, j.Backup(t.Context(), "/nowhere/at/all"), fs.ErrNotExist)
	dir := t.TempDir()
	require.NoError(t, os.Symlink("/nowhere", filepath.Join(dir, "link")))
	require.ErrorIs(t, j.Backup(t.Context(), filepath.Join(dir, "link")), fs.ErrExist)
	synced(t, j, task(2))
	require.NoError(t, j.Backup(t.Context(), filepath.Join(dir, "copy")))
}

// A connection that is given up takes the backup with it, and nothing else.
func TestBackupMeetsTrouble(t *testing.T) {
	j, layer, _ := troubled(t)
	for n := range uint64(3000) {
		j.Append(typical(n + 1))
	}
	synced(t, j)
	dir := t.TempDir()
	var mine *db
	d, err := newDisk(nil)
	require.NoError(t, err)
	defer d.close()
	require.NoError(t, j.do(t.Context(), func(c *db) (err error) {
		mine = c
		if c.backup, err = c.conn.BackupInit("main", uri(filepath.Join(dir, "copy"), d)); err != nil {
			return err
		}
		_, err = c.backup.Step(5)
		return err
	}))
	layer.set(failWith(errors.New("boom"), "write"))
	require.ErrorContains(t, j.Sync(t.Context(), j.Append(task(1))), "boom")
	layer.set(nil)
	j.Poke()
	require.Eventually(t, func() bool { return j.Check() == nil }, 20*time.Second, time.Millisecond)
	var now *db
	require.NoError(t, j.do(t.Context(), func(c *db) error { now = c; return nil }))
	require.NotSame(t, mine, now)
	require.Nil(t, now.backup)
	require.NoError(t, j.Backup(t.Context(), filepath.Join(dir, "again")))
}
