package auth

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// withUmask runs f under a umask; it is the process's, so no such test is parallel.
func withUmask(t *testing.T, mask int, f func()) {
	t.Helper()
	old := syscall.Umask(mask)
	defer syscall.Umask(old)
	f()
}

func mode(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Lstat(path)
	require.NoError(t, err)
	return info.Mode()
}

func TestJ5EnsureSecretUnderAnyUmask(t *testing.T) {
	for _, mask := range []int{0, 0o022, 0o177} {
		dir := filepath.Join(t.TempDir(), "state")
		path := filepath.Join(dir, "secret")
		if mask == 0o177 { // Such a umask would take the directory's own rights too.
			require.NoError(t, os.Mkdir(dir, 0o700))
		}
		withUmask(t, mask, func() {
			created, err := EnsureSecret(path)
			require.NoError(t, err)
			require.True(t, created)
			require.NoError(t, RotateSecret(path, time.Hour))
		})
		require.Equal(t, fs.ModeDir|0o700, mode(t, dir))
		require.Equal(t, fs.FileMode(0o600), mode(t, path))
		require.Equal(t, fs.FileMode(0o600), mode(t, path+".previous"))
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Len(t, entries, 2, "no draft is left")
	}
}

func TestEnsureSecretMakesOneAndKeepsIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b", "secret")
	secrets := make([]string, 20)
	creators := make([]bool, len(secrets))
	var wg sync.WaitGroup
	for i := range secrets {
		wg.Go(func() {
			created, err := EnsureSecret(path)
			if err != nil {
				t.Error(err)
				return
			}
			creators[i] = created
			secret, err := LoadSecret(path)
			if err != nil {
				t.Error(err)
			}
			secrets[i] = string(secret)
		})
	}
	wg.Wait()
	made := 0
	for i := range secrets {
		require.Equal(t, secrets[0], secrets[i])
		if creators[i] {
			made++
		}
	}
	require.Equal(t, 1, made, "one made it, all use it")
	require.Len(t, secrets[0], 64, "32 random bytes in hex")

	other := filepath.Join(t.TempDir(), "secret")
	_, err := EnsureSecret(other)
	require.NoError(t, err)
	second, err := LoadSecret(other)
	require.NoError(t, err)
	require.NotEqual(t, secrets[0], string(second))
}

func TestSecretIsTrimmedTextOrAllBytes(t *testing.T) {
	text := strings.Repeat("k", 32)
	binary := strings.Repeat("\xfe", 31) + "\n"
	tests := map[string]struct{ file, secret string }{
		"text":                     {text, text},
		"text with an end of line": {text + "\r\n", text},
		"text with space around":   {" \t" + text + " \n", text},
		"binary that ends in LF":   {binary, binary},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "secret")
			require.NoError(t, os.WriteFile(path, []byte(tt.file), 0o600))
			secret, err := LoadSecret(path)
			require.NoError(t, err)
			require.Equal(t, tt.secret, string(secret))
		})
	}
}

// TestJ3BadSecretFilesAreRefused: by LoadSecret, by New and by EnsureSecret, with
// the file's name and a remedy, and the file stays as it was.
func TestJ3BadSecretFilesAreRefused(t *testing.T) {
	good := []byte(strings.Repeat("k", 40))
	write := func(data []byte, perm os.FileMode) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			t.Helper()
			require.NoError(t, os.WriteFile(path, data, 0o600))
			require.NoError(t, os.Chmod(path, perm))
		}
	}
	tests := map[string]struct {
		make func(*testing.T, string)
		says string
	}{
		"empty":            {write(nil, 0o600), "is empty: remove it"},
		"only white space": {write([]byte(" \n\n"), 0o600), "is empty"},
		"31 bytes":         {write(good[:31], 0o600), "31 bytes and needs at least 32"},
		"short with space": {write([]byte(strings.Repeat(" ", 40)+"abc"), 0o600), "3 bytes"},
		"readable by all":  {write(good, 0o604), "(mode 0604): run chmod 600"},
		"readable, group":  {write(good, 0o640), "(mode 0640): run chmod 600"},
		"writable by all":  {write(good, 0o602), "run chmod 600"},
		"too large":        {write(make([]byte, maxSecret+1), 0o600), "larger than"},
		"a link": {func(t *testing.T, path string) {
			t.Helper()
			write(good, 0o600)(t, path+".real")
			require.NoError(t, os.Symlink(path+".real", path))
		}, "is a link: name the file itself"},
		"a dangling link": {func(t *testing.T, path string) {
			t.Helper()
			require.NoError(t, os.Symlink(path+".nowhere", path))
		}, "is a link"},
		"a directory": {func(t *testing.T, path string) { t.Helper(); require.NoError(t, os.Mkdir(path, 0o700)) }, "not a regular file"},
		"a FIFO":      {func(t *testing.T, path string) { t.Helper(); require.NoError(t, unix.Mkfifo(path, 0o600)) }, "not a regular file"},
		"of a stranger": {func(t *testing.T, path string) {
			t.Helper()
			if os.Geteuid() != 0 {
				t.Skip("only root can give a file away")
			}
			write(good, 0o600)(t, path)
			require.NoError(t, os.Chown(path, 12345, -1))
		}, "belongs to another user (uid 12345)"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "secret")
			tt.make(t, path)
			before := mode(t, path)
			_, load := LoadSecret(path)
			_, build := New(Config{SecretFile: path})
			_, ensure := EnsureSecret(path)
			for _, err := range []error{load, build, ensure, RotateSecret(path, time.Hour)} {
				require.ErrorContains(t, err, path)
				require.ErrorContains(t, err, tt.says)
				require.NotContains(t, err.Error(), "kkk", "no part of a secret is told")
			}
			require.Equal(t, before, mode(t, path))
			require.NoFileExists(t, path+".nowhere", "nothing is written through a link")
			require.NoFileExists(t, path+previousSuffix)
		})
	}
	missing := filepath.Join(t.TempDir(), "secret")
	_, err := New(Config{SecretFile: missing})
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, missing)
	_, err = New(Config{})
	require.ErrorContains(t, err, "AFOOT_JWT_SECRET_FILE")
}

func TestJ5BadDirectoriesAreRefused(t *testing.T) {
	tests := map[string]struct {
		make func(t *testing.T, dir string)
		says string
	}{
		"a link": {func(t *testing.T, dir string) {
			t.Helper()
			require.NoError(t, os.Mkdir(dir+".real", 0o700))
			require.NoError(t, os.Symlink(dir+".real", dir))
		}, "not a link"},
		"a dangling link": {func(t *testing.T, dir string) { t.Helper(); require.NoError(t, os.Symlink(dir+".real", dir)) }, "not a link"},
		"a file":          {func(t *testing.T, dir string) { t.Helper(); require.NoError(t, os.WriteFile(dir, nil, 0o600)) }, "directory"},
		"open to all": {func(t *testing.T, dir string) {
			t.Helper()
			require.NoError(t, os.Mkdir(dir, 0o700))
			require.NoError(t, os.Chmod(dir, 0o777))
		}, "run chmod 700"},
		"of a stranger": {func(t *testing.T, dir string) {
			t.Helper()
			if os.Geteuid() != 0 {
				t.Skip("only root can give a directory away")
			}
			require.NoError(t, os.Mkdir(dir, 0o700))
			require.NoError(t, os.Chown(dir, 12345, -1))
		}, "belongs to another user (uid 12345)"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			tt.make(t, dir)
			_, err := EnsureSecret(filepath.Join(dir, "secret"))
			require.ErrorContains(t, err, dir)
			require.ErrorContains(t, err, tt.says)
			require.NoFileExists(t, filepath.Join(dir+".real", "secret"))
			require.NoFileExists(t, filepath.Join(dir, "secret"))
		})
	}
	sticky := filepath.Join(t.TempDir(), "tmp")
	require.NoError(t, os.Mkdir(sticky, 0o700))
	require.NoError(t, os.Chmod(sticky, fs.ModeSticky|0o777))
	_, err := EnsureSecret(filepath.Join(sticky, "secret"))
	require.NoError(t, err, "in a sticky directory nobody else can replace our file")
}

// TestRotateKeepsOldOnesNoLongerThanAsked reads what rotations leave on disk.
func TestRotateKeepsOldOnesNoLongerThanAsked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	_, err := EnsureSecret(path)
	require.NoError(t, err)
	previous := func() []oldSecret {
		old, err := loadPrevious(path + previousSuffix)
		require.NoError(t, err)
		return old
	}
	first, err := LoadSecret(path)
	require.NoError(t, err)

	require.NoError(t, RotateSecret(path, time.Hour))
	second, err := LoadSecret(path)
	require.NoError(t, err)
	require.NotEqual(t, first, second)
	require.Len(t, previous(), 1)
	require.Equal(t, first, previous()[0].Secret)
	require.WithinDuration(t, time.Now().Add(time.Hour), previous()[0].NotAfter, time.Minute)

	require.NoError(t, RotateSecret(path, 2*time.Hour))
	require.Len(t, previous(), 2)
	require.Equal(t, second, previous()[0].Secret)
	require.Equal(t, first, previous()[1].Secret)
	require.WithinDuration(t, time.Now().Add(time.Hour), previous()[1].NotAfter, time.Minute, "a second rotation doesn't prolong the first")

	require.NoError(t, RotateSecret(path, 10*time.Minute))
	require.Len(t, previous(), 3)
	for _, o := range previous() {
		require.WithinDuration(t, time.Now().Add(10*time.Minute), o.NotAfter, time.Minute, "a short rotation shortens all")
	}

	require.NoError(t, RotateSecret(path, 0))
	require.NoFileExists(t, path+previousSuffix, "keep 0 ends all")
	requireKind(t, KindInvalid, RotateSecret(path, -1))

	for range maxPrevious + 3 {
		require.NoError(t, RotateSecret(path, time.Hour))
	}
	require.Len(t, previous(), maxPrevious)
}

func TestRetireAfterARotationThatWasCutShort(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	current, older, expired := []byte("current"), []byte("older"), []byte("expired")
	old := []oldSecret{{current, now.Add(time.Minute)}, {older, now.Add(time.Minute)}, {expired, now}}
	got := retire(current, old, now, time.Hour)
	require.Equal(t, []oldSecret{{current, now.Add(time.Hour).UTC()}, {older, now.Add(time.Minute)}}, got)
}

// TestParallelRotationsLoseNoSecret: every secret that was current at some time
// is kept.
func TestParallelRotationsLoseNoSecret(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	_, err := EnsureSecret(path)
	require.NoError(t, err)
	var wg sync.WaitGroup
	for range maxPrevious {
		wg.Go(func() {
			if err := RotateSecret(path, time.Hour); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	old, err := loadPrevious(path + previousSuffix)
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, o := range old {
		seen[string(o.Secret)] = true
	}
	require.Len(t, seen, maxPrevious)
}
