package main

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func modeOf(t *testing.T, path string) os.FileMode {
	t.Helper()
	info, err := os.Lstat(path)
	require.NoError(t, err)
	return info.Mode().Perm()
}

// umask is for the whole process: no test here is parallel.
func umask(t *testing.T, mask int) {
	t.Helper()
	before := syscall.Umask(mask)
	t.Cleanup(func() { syscall.Umask(before) })
}

func TestJ5StateDirIsPrivateWhateverTheUmask(t *testing.T) {
	for _, mask := range []int{0, 0o077, 0o777 &^ 0o700} {
		umask(t, mask)
		path := filepath.Join(t.TempDir(), "a", "b")
		dir, err := openStateDir(path + "/")
		require.NoError(t, err)
		lock, err := lockStateDir(dir)
		require.NoError(t, err)
		require.NoError(t, ListenInfo{PID: os.Getpid()}.write(path))
		require.Equal(t, os.FileMode(0o700), modeOf(t, path))
		require.Equal(t, os.FileMode(0o600), modeOf(t, filepath.Join(path, lockName)))
		require.Equal(t, os.FileMode(0o600), modeOf(t, filepath.Join(path, listenName)))
		require.NoError(t, lock.Close())
		require.NoError(t, dir.Close())
	}
}

func TestStateDirThatWasOpen(t *testing.T) {
	umask(t, 0)
	t.Run("empty is closed", func(t *testing.T) {
		path := t.TempDir()
		require.NoError(t, os.Chmod(path, 0o777))
		dir, err := openStateDir(path)
		require.NoError(t, err)
		require.NoError(t, dir.Close())
		require.Equal(t, os.FileMode(0o700), modeOf(t, path))
	})
	t.Run("used before is closed", func(t *testing.T) {
		path := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(path, lockName), nil, 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(path, "secret"), nil, 0o600))
		require.NoError(t, os.Chmod(path, 0o755))
		dir, err := openStateDir(path)
		require.NoError(t, err)
		require.NoError(t, dir.Close())
		require.Equal(t, os.FileMode(0o700), modeOf(t, path))
	})
	t.Run("somebody's things are left alone", func(t *testing.T) {
		path := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(path, "thesis.tex"), nil, 0o644))
		require.NoError(t, os.Chmod(path, 0o755))
		_, err := openStateDir(path)
		require.ErrorContains(t, err, path)
		require.Equal(t, os.FileMode(0o755), modeOf(t, path))
	})
}

func TestJ5PlantedLinks(t *testing.T) {
	t.Run("state directory", func(t *testing.T) {
		root := t.TempDir()
		target := filepath.Join(root, "target")
		require.NoError(t, os.Mkdir(target, 0o755))
		link := filepath.Join(root, "state")
		require.NoError(t, os.Symlink(target, link))
		for _, path := range []string{link, link + "/", link + "/."} {
			_, err := openStateDir(path)
			require.ErrorContains(t, err, "symbolic link")
		}
		require.Equal(t, os.FileMode(0o755), modeOf(t, target))
		left, err := os.ReadDir(target)
		require.NoError(t, err)
		require.Empty(t, left)
	})
	t.Run("dangling", func(t *testing.T) {
		root := t.TempDir()
		link := filepath.Join(root, "state")
		require.NoError(t, os.Symlink(filepath.Join(root, "nowhere"), link))
		_, err := openStateDir(link)
		require.Error(t, err)
		require.NoDirExists(t, filepath.Join(root, "nowhere"))
	})
	t.Run("file", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "state")
		require.NoError(t, os.WriteFile(path, []byte("x"), 0o600))
		_, err := openStateDir(path)
		require.Error(t, err)
	})
	for _, name := range []string{lockName, listenName} {
		t.Run(name, func(t *testing.T) {
			path := t.TempDir()
			dir, err := openStateDir(path)
			require.NoError(t, err)
			defer func() { require.NoError(t, dir.Close()) }()
			target := filepath.Join(t.TempDir(), "target")
			require.NoError(t, os.WriteFile(target, []byte("precious"), 0o644))
			require.NoError(t, os.Symlink(target, filepath.Join(path, name)))
			_, lockErr := lockStateDir(dir)
			writeErr := ListenInfo{}.write(path)
			if name == lockName {
				require.Error(t, lockErr)
			} else {
				require.NoError(t, writeErr, "the link itself is replaced")
			}
			text, err := os.ReadFile(target)
			require.NoError(t, err)
			require.Equal(t, "precious", string(text))
			require.Equal(t, os.FileMode(0o644), modeOf(t, target))
		})
	}
}

func TestJ5StateDirOfSomebodyElse(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a directory away")
	}
	path := t.TempDir()
	require.NoError(t, os.Chmod(path, 0o700))
	require.NoError(t, os.Chown(path, 12345, 12345))
	_, err := openStateDir(path)
	require.ErrorContains(t, err, "12345")
	require.NoError(t, os.Chown(path, 0, 0))
}

func TestK2SecondDaemonIsRefused(t *testing.T) {
	dir, err := openStateDir(t.TempDir())
	require.NoError(t, err)
	defer func() { require.NoError(t, dir.Close()) }()
	first, err := lockStateDir(dir)
	require.NoError(t, err)
	_, err = lockStateDir(dir)
	require.ErrorContains(t, err, "process "+strconv.Itoa(os.Getpid()))
	require.ErrorContains(t, err, dir.Name())
	require.NoError(t, first.Close())
	second, err := lockStateDir(dir)
	require.NoError(t, err, "a lock ends with its holder")
	require.NoError(t, second.Close())
}

func TestLockRefusesWhatIsNoFile(t *testing.T) {
	dir, err := openStateDir(t.TempDir())
	require.NoError(t, err)
	defer func() { require.NoError(t, dir.Close()) }()
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir.Name(), lockName), 0o600))
	_, err = lockStateDir(dir)
	require.ErrorContains(t, err, "plain file")
}

func TestListenInfoBelongsToItsWriter(t *testing.T) {
	dir := t.TempDir()
	_, err := readListenInfo(dir)
	require.ErrorIs(t, err, os.ErrNotExist)
	info := ListenInfo{PID: os.Getpid(), Addr: "127.0.0.1:1", URL: "http://127.0.0.1:1", SecretFile: "/s"}
	require.NoError(t, info.write(dir))
	got, err := readListenInfo(dir)
	require.NoError(t, err)
	require.Equal(t, info, got)
	require.NoError(t, removeListenInfo(dir))
	require.NoFileExists(t, filepath.Join(dir, listenName))

	info.PID++
	require.NoError(t, info.write(dir))
	require.NoError(t, removeListenInfo(dir))
	require.FileExists(t, filepath.Join(dir, listenName), "somebody else's")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1, "no drafts stay behind")
}
