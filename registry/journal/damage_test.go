package journal

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	sqlite3 "github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"afoot/registry"
)

func stateSize(t testing.TB, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	return info.Size()
}

// kept makes a closed journal with some tasks.
func kept(t *testing.T) string {
	t.Helper()
	path := at(t)
	j, err := Open(Config{Path: path})
	require.NoError(t, err)
	for n := range uint64(300) {
		j.Append(typical(n + 1))
	}
	shut(t, j)
	return path
}

func TestDamageIsFoundAndNothingChanged(t *testing.T) {
	edit := func(change func([]byte) []byte) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			t.Helper()
			b, err := os.ReadFile(path)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(path, change(b), 0o600))
		}
	}
	for name, c := range map[string]struct {
		spoil  func(*testing.T, string)
		reason string
	}{
		"empty":     {edit(func([]byte) []byte { return nil }), "it is cut to 0 bytes"},
		"cut short": {edit(func(b []byte) []byte { return b[:50] }), "it is cut to 50 bytes"},
		"cut":       {edit(func(b []byte) []byte { return b[:len(b)/2] }), ""},
		"header":    {edit(func(b []byte) []byte { return append(bytes.Repeat([]byte("x"), 100), b[100:]...) }), "it is not a database"},
		"zeros":     {edit(func(b []byte) []byte { return make([]byte, len(b)) }), ""},
		"pages": {edit(func(b []byte) []byte {
			for i := 5 * 4096; i < len(b); i += 4096 {
				copy(b[i:], bytes.Repeat([]byte{0xa5}, 64))
			}
			return b
		}), ""},
		"something else": {func(t *testing.T, path string) {
			t.Helper()
			require.NoError(t, os.Remove(path))
			c, err := sqlite3.Open(path)
			require.NoError(t, err)
			require.NoError(t, c.Exec("CREATE TABLE t(x); PRAGMA user_version = 1"))
			require.NoError(t, c.Close())
		}, "something else"},
		"log alone": {func(t *testing.T, path string) {
			t.Helper()
			require.NoError(t, os.Rename(path, path+walSuffix))
		}, "its database is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			path := kept(t)
			c.spoil(t, path)
			before, _ := os.ReadFile(path)
			_, err := Open(Config{Path: path})
			var damage *DamageError
			require.ErrorAs(t, err, &damage)
			require.ErrorContains(t, err, c.reason)
			for _, advice := range []string{path, `"afoot doctor"`, `"afoot backup"`, "move it"} {
				require.ErrorContains(t, err, advice)
			}
			after, _ := os.ReadFile(path)
			require.True(t, bytes.Equal(before, after), "nothing changed")
			if name == "log alone" {
				return
			}
			r, err := Inspect(path)
			require.True(t, err != nil || len(r.Problems) > 0)
			_, err = Repair(path)
			require.ErrorAs(t, err, &damage)
			after, _ = os.ReadFile(path)
			require.True(t, bytes.Equal(before, after), "nothing repaired")
		})
	}
}

func TestLinksAreRefused(t *testing.T) {
	for _, suffix := range []string{"", walSuffix, reserveSuffix} {
		path, target := kept(t), filepath.Join(t.TempDir(), "target")
		if suffix != "" {
			require.NoError(t, os.WriteFile(target, nil, 0o600))
		} else {
			require.NoError(t, os.Rename(path, target))
		}
		_ = os.Remove(path + suffix)
		require.NoError(t, os.Symlink(target, path+suffix))
		_, err := Open(Config{Path: path})
		require.ErrorContains(t, err, "is a link", "suffix %q", suffix)
		if suffix == "" {
			_, err = Inspect(path)
			require.ErrorContains(t, err, "is a link")
		}
	}
}

func TestWiderPermissionsAreTaken(t *testing.T) {
	path := kept(t)
	require.NoError(t, os.Chmod(path, 0o644))
	opened(t, Config{Path: path})
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
}

func TestMigratesForward(t *testing.T) {
	path := kept(t)
	steps := append(schema(),
		"CREATE TABLE later (id TEXT PRIMARY KEY) STRICT",
		"ALTER TABLE later ADD COLUMN url TEXT; INSERT INTO later VALUES ('a', 'b')")
	for range 2 { // the second finds nothing to do
		j, err := open(Config{Path: path}, nil, steps)
		require.NoError(t, err)
		require.Len(t, memory(t, j).Tasks, 300)
		version, rows := 0, 0
		require.NoError(t, j.do(t.Context(), func(c *db) (err error) {
			if version, err = c.number("user_version"); err != nil {
				return err
			}
			return c.query("SELECT url FROM later", func(*columns) { rows++ })
		}))
		require.Equal(t, len(steps), version)
		require.Equal(t, 1, rows)
		shut(t, j)
	}
	_, err := Open(Config{Path: path})
	var newer *VersionError
	require.ErrorAs(t, err, &newer)
	require.Equal(t, VersionError{Path: path, File: len(steps), Binary: len(schema())}, *newer)
	require.ErrorContains(t, err, fmt.Sprintf("version %d and this binary knows versions up to %d", len(steps), len(schema())))
	r, err := Inspect(path)
	require.ErrorAs(t, err, &newer)
	require.Equal(t, len(steps), r.Version)
	_, err = Repair(path)
	require.ErrorAs(t, err, &newer)
}

func TestFailedMigrationChangesNothing(t *testing.T) {
	path := kept(t)
	_, err := open(Config{Path: path}, nil, append(schema(), "CREATE TABLE a (x)", "CREATE TABLE b (x); nonsense"))
	require.ErrorContains(t, err, fmt.Sprintf("to version %d", len(schema())+2))
	r, err := Inspect(path)
	var newer *VersionError
	require.ErrorAs(t, err, &newer)
	require.Equal(t, len(schema())+1, r.Version, "each step stands alone")
	j, err := open(Config{Path: path}, nil, append(schema(), "CREATE TABLE a (x)", "CREATE TABLE b (x)"))
	require.NoError(t, err)
	shut(t, j)
}

// Released steps never change: their files are out there.
func TestReleasedStepsStand(t *testing.T) {
	require.Equal(t, "4196af", hex.EncodeToString(fingerprint(schema()[0]))[:6])
}

// An older journal knows no task that a call waited for.
func TestOlderTasksAreBackground(t *testing.T) {
	path := at(t)
	j, err := open(Config{Path: path}, nil, []string{version1})
	require.NoError(t, err)
	require.NoError(t, j.do(t.Context(), func(c *db) error {
		return c.run("INSERT INTO tasks VALUES ('bash-1', 1, 'bash', 'x', 0, 'one', 'default', 1, 'running', '', NULL, 5, NULL, 0, 0, 0, 0, 0, 0, NULL)")
	}))
	shut(t, j)
	j = opened(t, Config{Path: path})
	got := memory(t, j).Tasks
	require.Len(t, got, 1)
	require.False(t, got[0].Snapshot.Foreground)
	got[0].Snapshot.Foreground = true
	synced(t, j, got[0])
	require.Equal(t, got, memory(t, j).Tasks)
}

func TestLeftOverCreation(t *testing.T) {
	path := at(t)
	require.NoError(t, os.WriteFile(path+freshSuffix, []byte("half"), 0o600))
	require.NoError(t, os.WriteFile(path+freshSuffix+walSuffix, []byte("half"), 0o600))
	j := opened(t, Config{Path: path})
	synced(t, j, task(1))
	require.NoFileExists(t, path+freshSuffix)
	require.NoFileExists(t, path+freshSuffix+walSuffix)
}

func TestInspect(t *testing.T) {
	path := at(t)
	_, err := Inspect(path)
	require.ErrorIs(t, err, os.ErrNotExist)
	j, err := Open(Config{Path: path})
	require.NoError(t, err)
	for n := range uint64(300) {
		synced(t, j, typical(n+1), registry.CounterRow{Kind: "bash", Last: n + 1})
	}
	look := func(inUse bool, path string) Report {
		t.Helper()
		before := files(t, path)
		r, err := Inspect(path)
		require.NoError(t, err)
		require.Empty(t, r.Problems)
		require.Equal(t, before, files(t, path), "nothing changed")
		require.Equal(t, inUse, r.InUse)
		require.Equal(t, len(schema()), r.Version)
		require.Equal(t, int64(300), r.Rows["tasks"])
		require.Equal(t, int64(1), r.Rows["counters"])
		return r
	}
	r := look(true, path)
	require.True(t, r.Reserve)
	require.Positive(t, r.Log)
	dead := copied(t, path, t.TempDir())
	require.Positive(t, look(false, dead).Log)
	done, err := Repair(dead)
	require.NoError(t, err)
	require.Len(t, done, 1)
	require.ErrorContains(t, fmt.Errorf("%s", done[0]), "worked the log")
	require.Zero(t, look(false, dead).Log)
	done, err = Repair(dead)
	require.NoError(t, err)
	require.Empty(t, done)
	_, err = Repair(path)
	require.ErrorIs(t, err, ErrInUse)
	shut(t, j)
	require.Zero(t, look(false, path).Log)
}

// A journal that is being written is never taken for a damaged one.
func TestInspectWhileWritten(t *testing.T) {
	path := at(t)
	j := opened(t, Config{Path: path})
	stop := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for n := uint64(1); ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			r := typical(n % 500)
			r.Output = string(make([]byte, n*37%20_000))
			_ = j.Sync(t.Context(), j.Append(r))
			if n%50 == 0 {
				_ = j.do(t.Context(), func(c *db) error { return c.checkpoint(sqlite3.CHECKPOINT_PASSIVE) })
			}
		}
	}()
	settled := 0
	for range 40 {
		r, err := Inspect(path)
		require.NoError(t, err)
		require.Empty(t, r.Problems)
		if !r.Unsettled {
			settled++
		}
	}
	require.Positive(t, settled)
	close(stop)
	<-ended
}

func files(t testing.TB, path string) map[string]string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	require.NoError(t, err)
	state := make(map[string]string)
	for _, name := range names {
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		info, err := os.Stat(name)
		require.NoError(t, err)
		state[name] = fmt.Sprintf("%x %s", fingerprint(string(b)), info.ModTime().Format(time.RFC3339Nano))
	}
	return state
}
