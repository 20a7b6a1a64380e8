package output

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

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
	log.End()
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	info, err = entries[0].Info()
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	require.NoError(t, store.Close())

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
	planted := filepath.Join(store.dir.Name(), store.name(1, logSuffix))
	require.NoError(t, os.Symlink(target, planted))
	_, err := store.Create()
	require.ErrorIs(t, err, os.ErrExist)

	log := newLog(t, store)
	feed(t, log, []byte("hello"))
	log.End()
	path := filepath.Join(store.dir.Name(), store.name(log.seq, logSuffix))
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Symlink(target, path))
	_, err = log.Page(0, 10)
	require.ErrorIs(t, err, ErrDamaged)
	content, err := os.ReadFile(target)
	require.NoError(t, err)
	require.Equal(t, "mine", string(content))
}
