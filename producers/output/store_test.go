package output

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestStoreMakesItsDirectoryPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	store, err := NewStore(Config{Dir: dir})
	require.NoError(t, err)
	log, err := store.Create()
	require.NoError(t, err)
	require.NoError(t, log.WriteAside([]byte("x")))
	log.End()
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	for _, suffix := range []string{logSuffix, asideSuffix} {
		info, err = os.Stat(filepath.Join(dir, store.name(log.seq, suffix)))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	}
	require.NoError(t, store.Close())
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 2, "files that were made ahead go with the store")

	require.NoError(t, os.Chmod(dir, 0o755))
	store, err = NewStore(Config{Dir: dir})
	require.NoError(t, err)
	info, err = os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	require.NoError(t, store.Close())
}

func TestStoreRefusesAForeignPlace(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.NoError(t, os.Symlink(t.TempDir(), link))
	for _, path := range []string{file, link} {
		_, err := NewStore(Config{Dir: path})
		require.Error(t, err, path)
	}
	_, err := NewStore(Config{Dir: dir, MaxBytes: -1})
	require.Error(t, err)
	if os.Geteuid() != 0 {
		return
	}
	foreign := filepath.Join(dir, "foreign")
	require.NoError(t, os.Mkdir(foreign, 0o755))
	require.NoError(t, os.Chown(foreign, 12345, 12345))
	_, err = NewStore(Config{Dir: foreign})
	require.ErrorContains(t, err, "another user")
	info, err := os.Stat(foreign)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o755), info.Mode().Perm(), "what is refused stays as it was")
}

func TestStoreNeverFollowsAPlantedLink(t *testing.T) {
	store := newStore(t, 0)
	target := filepath.Join(t.TempDir(), "target")
	require.NoError(t, os.WriteFile(target, []byte("mine"), 0o600))
	for n := range uint64(3) { // the files that are made ahead take names too
		require.NoError(t, os.Symlink(target, filepath.Join(store.dir.Name(), store.name(n+1, logSuffix))))
	}
	_, err := store.Create()
	require.ErrorIs(t, err, os.ErrExist)

	store.seq.Store(3)
	log := newLog(t, store)
	feed(t, log, []byte("hello"))
	log.End()
	require.NoError(t, os.Remove(path(log)))
	require.NoError(t, os.Symlink(target, path(log)))
	page, err := log.Page(0, 10)
	require.NoError(t, err)
	require.Equal(t, Page{Offset: 5, NextOffset: 5, Dropped: 5, End: true}, page, "a link is no file of ours")
	content, err := os.ReadFile(target)
	require.NoError(t, err)
	require.Equal(t, "mine", string(content))
}

func TestAnUnusedFileServesAnotherLog(t *testing.T) {
	store := newStore(t, 0)
	empty := newLog(t, store)
	seq := empty.seq
	empty.End()
	require.Empty(t, text(t, empty, 10))
	reader, err := empty.Open()
	require.NoError(t, err)
	n, err := reader.ReadAt(make([]byte, 1), 0)
	require.Equal(t, []any{0, io.EOF}, []any{n, err})
	require.NoError(t, reader.Close())

	// The files made ahead come before it.
	again := newLog(t, store)
	for deadline := time.Now().Add(20 * time.Second); again.seq != seq && time.Now().Before(deadline); {
		again = newLog(t, store)
	}
	require.Equal(t, seq, again.seq)
	feed(t, again, []byte("hello"))
	require.NoError(t, empty.Remove())
	again.End()
	require.Equal(t, "hello", text(t, again, 10))
	require.Empty(t, text(t, empty, 10))
}

func TestAFileThatWasShownServesNoOther(t *testing.T) {
	store := newStore(t, 0)
	shown := newLog(t, store)
	reader, err := shown.Open()
	require.NoError(t, err)
	defer func() { require.NoError(t, reader.Close()) }()
	seq := shown.seq
	shown.End()
	for range 3 * spareCount {
		require.NotEqual(t, seq, newLog(t, store).seq)
	}
}

func TestCreateTellsAFullDisk(t *testing.T) {
	dir := fullDisk(t, 64<<10)
	store, err := NewStore(Config{Dir: dir})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	first, err := store.Create()
	require.NoError(t, err)
	first.End()
	ballast := filepath.Join(dir, "ballast")
	_ = os.WriteFile(ballast, make([]byte, 1<<20), 0o600) // as much as fits
	for range 2 * spareCount {
		if _, err = store.Create(); err != nil {
			break
		}
	}
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.NoError(t, os.Remove(ballast))
	next, err := store.Create()
	require.NoError(t, err)
	next.End()
}
