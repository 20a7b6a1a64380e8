package output

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestAFileThatWasCutShortIsNeverZeros(t *testing.T) {
	log := newLog(t, newStore(t, 0))
	feed(t, log, []byte("hello"))
	require.NoError(t, os.Truncate(path(log), 2))
	_, err := log.Page(0, 10)
	require.ErrorIs(t, err, ErrDamaged)
	feed(t, log, []byte("world"))
	require.Equal(t, errCut.Error(), log.Loss())
	page, err := log.Page(0, 10)
	require.NoError(t, err)
	require.Equal(t, Page{Text: "world", Offset: 5, NextOffset: 10, Dropped: 5}, page)
	log.End()
	require.Equal(t, "world", text(t, log, 10))
}

func TestAFileThatVanishedIsMadeAgain(t *testing.T) {
	log := newLog(t, newStore(t, 0))
	feed(t, log, []byte("hello"))
	reader, err := log.Open()
	require.NoError(t, err)
	defer func() { require.NoError(t, reader.Close()) }()
	require.NoError(t, os.Remove(path(log)))
	require.Equal(t, "hello", text(t, log, 10), "the open file still has it")
	feed(t, log, []byte("world"))
	require.Equal(t, errVanished.Error(), log.Loss())
	require.Equal(t, "world", text(t, log, 10))
	_, err = reader.ReadAt(make([]byte, 5), 0)
	require.ErrorIs(t, err, ErrDropped, "that was another file")
	got := make([]byte, 5)
	_, err = reader.ReadAt(got, 5)
	require.NoError(t, err)
	require.Equal(t, "world", string(got))
	require.Nil(t, reader.File())
	log.End()
	require.Equal(t, "world", text(t, log, 10))
	require.NoError(t, log.Remove())
	require.NoFileExists(t, path(log))
}

// removeAll removes a directory in which files are made ahead meanwhile.
func removeAll(t *testing.T, dir string) {
	t.Helper()
	require.Eventually(t, func() bool { return os.RemoveAll(dir) == nil }, 20*time.Second, time.Millisecond)
}

func TestADirectoryThatVanishedIsMadeAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "output")
	store, err := NewStore(Config{Dir: dir})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	before := newLog(t, store)
	feed(t, before, []byte("before"))
	ended := newLog(t, store)
	feed(t, ended, []byte("ended"))
	ended.End()
	removeAll(t, filepath.Dir(dir))

	for range 2 * spareCount { // those that were made ahead are gone too
		log := newLog(t, store)
		feed(t, log, []byte("after"))
		log.End()
		require.Equal(t, "after", text(t, log, 10))
		require.FileExists(t, path(log))
	}
	page, err := ended.Page(0, 10)
	require.NoError(t, err)
	require.Equal(t, Page{Offset: 5, NextOffset: 5, Dropped: 5, End: true}, page)
	require.Equal(t, "before", text(t, before, 10))
	feed(t, before, []byte(", on"))
	before.End()
	require.Equal(t, ", on", text(t, before, 10))
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
}

// TestADirectoryThatCantBeMadeAgain: running work keeps what it prints as long as
// it can be asked for it.
func TestADirectoryThatCantBeMadeAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "output")
	store, err := NewStore(Config{Dir: dir})
	require.NoError(t, err)
	log := newLog(t, store)
	feed(t, log, []byte("a"))
	// Who makes files ahead would make the directory again.
	require.Eventually(t, func() bool { return !store.spares.lacks() }, 20*time.Second, time.Millisecond)
	removeAll(t, dir)
	require.NoError(t, os.WriteFile(dir, nil, 0o600))
	feed(t, log, []byte("b"))
	require.Equal(t, "ab", text(t, log, 10))
	for range 2 * spareCount {
		if _, err = store.Create(); err != nil {
			break
		}
	}
	require.ErrorIs(t, err, unix.ENOTDIR)
	log.End()
	page, err := log.Page(0, 10)
	require.NoError(t, err)
	require.Equal(t, Page{Offset: 2, NextOffset: 2, Dropped: 2, End: true}, page)
	require.NoError(t, os.Remove(dir))
	next := newLog(t, store)
	feed(t, next, []byte("c"))
	require.Equal(t, "c", text(t, next, 10))
	next.End()
	require.NoError(t, store.Close())
}

// TestWhatIsMissingOfAnEndedLogIsTold: a read ends, and says what is gone.
func TestWhatIsMissingOfAnEndedLogIsTold(t *testing.T) {
	for _, c := range []struct {
		name  string
		bound int64
		harm  func(path string) error
		kept  string
	}{
		{"removed", 0, os.Remove, ""},
		{"emptied", 0, func(path string) error { return os.Truncate(path, 0) }, ""},
		{"cut", 0, func(path string) error { return os.Truncate(path, 21) }, "000000000\n000000001\n0"},
		{"cut, written round", 64 << 10, func(path string) error { return os.Truncate(path, 5000) }, ""},
		{"a directory instead", 0, func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			store := newStore(t, c.bound)
			log := newLog(t, store)
			feed(t, log, numbered(20_000))
			log.End()
			require.NoError(t, c.harm(path(log)))
			for range 2 {
				require.Equal(t, c.kept, text(t, log, 8<<20))
				page, err := log.Page(int64(len(c.kept)), 10)
				require.NoError(t, err)
				require.Equal(t, Page{Offset: 200_000, NextOffset: 200_000, Dropped: 200_000 - int64(len(c.kept)), End: true}, page)
				require.EqualValues(t, len(c.kept), store.Total())
				require.NotEmpty(t, log.Loss())
				reader, err := log.Open()
				require.NoError(t, err)
				first, next, _ := reader.Bounds()
				require.EqualValues(t, len(c.kept), next-first)
				require.NoError(t, reader.Close())
			}
			_ = log.Remove() // the directory is not ours to remove
			require.Zero(t, store.Total())
		})
	}
}
