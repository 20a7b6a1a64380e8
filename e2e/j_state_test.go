package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// modes checks that everything in the state directory is closed to others.
func modes(t *testing.T, root string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		switch {
		case info.IsDir():
			require.Equal(t, fs.FileMode(0o700), info.Mode().Perm(), rel)
		case info.Mode().IsRegular():
			require.Equal(t, fs.FileMode(0o600), info.Mode().Perm(), rel)
			files = append(files, rel)
		default:
			require.Zero(t, info.Mode().Perm()&0o077, rel)
		}
		return nil
	})
	require.NoError(t, err)
	return files
}

// withUmask makes the daemon start under a umask.
func (d *daemon) withUmask(mask string) {
	d.argv = []string{"bash", "-c", "umask " + mask + `; exec "$0" serve`, binary}
}

func TestJ5ModesWhateverTheUmask(t *testing.T) {
	t.Parallel()
	for _, mask := range []string{"0", "022", "077", "0177"} {
		t.Run(mask, func(t *testing.T) {
			t.Parallel()
			d := prepare(t)
			d.unset("AFOOT_JWT_SECRET_FILE")
			d.withUmask(mask)
			d.launch()
			d.ready()
			out, errs, code := d.command("token", "--session", "j5", "--ttl", "1h")
			require.Equal(t, 0, code, errs)
			c := d.with(strings.TrimSpace(out))
			c.finish(t, c.start(t, "echo x").ID)
			live := c.start(t, "echo y; sleep 705")
			c.says(t, live.ID, "y")
			require.NotEmpty(t, modes(t, d.state))
			d.stop()
			modes(t, d.state)
		})
	}
}

// A state directory that was opened to others by somebody is not used as it is.
func TestJ5OpenStateDirectory(t *testing.T) {
	t.Parallel()
	d := prepare(t)
	require.NoError(t, os.Mkdir(d.state, 0o700))
	require.NoError(t, os.Chmod(d.state, 0o777))
	d.launch()
	if d.waitExitOrReady() {
		require.NotZero(t, d.cmd.ProcessState.ExitCode())
		return
	}
	modes(t, d.state)
}

// waitExitOrReady says true if the daemon ended and false if it is ready.
func (d *daemon) waitExitOrReady() bool {
	d.t.Helper()
	ended := false
	eventually(d.t, waitStart, "daemon is ready or has ended", func() bool {
		select {
		case <-d.exited:
			ended = true
			return true
		default:
		}
		res, err := d.http.Get("http://" + d.addr + "/readyz")
		if err != nil {
			return false
		}
		_ = res.Body.Close()
		return true
	})
	return ended
}

func TestJ5PlantedLinks(t *testing.T) {
	t.Parallel()
	// What a daemon makes in its state directory, by looking.
	scout := prepare(t)
	scout.unset("AFOOT_JWT_SECRET_FILE")
	scout.launch()
	scout.ready()
	out, errs, code := scout.command("token", "--session", "j5", "--ttl", "1h")
	require.Equal(t, 0, code, errs)
	c := scout.with(strings.TrimSpace(out))
	c.finish(t, c.start(t, "echo x").ID)
	names := modes(t, scout.state)
	require.NotEmpty(t, names)
	scout.stop()
	require.NoError(t, filepath.WalkDir(scout.state, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && path != scout.state {
			rel, relErr := filepath.Rel(scout.state, path)
			require.NoError(t, relErr)
			names = append(names, rel)
		}
		return err
	}))

	t.Run("the state directory", func(t *testing.T) {
		for _, dangling := range []bool{false, true} {
			d := prepare(t)
			target := filepath.Join(t.TempDir(), "target")
			if !dangling {
				require.NoError(t, os.Mkdir(target, 0o755))
			}
			require.NoError(t, os.Symlink(target, d.state))
			d.refuses(d.state)
			if dangling {
				require.NoFileExists(t, target)
				require.NoDirExists(t, target)
				continue
			}
			entries, err := os.ReadDir(target)
			require.NoError(t, err)
			require.Empty(t, entries)
			info, err := os.Stat(target)
			require.NoError(t, err)
			require.Equal(t, fs.FileMode(0o755), info.Mode().Perm())
		}
	})

	// Names of captured output are different ones each time: a few stand for all.
	logs := 0
	names = slices.DeleteFunc(names, func(name string) bool {
		if filepath.Dir(name) == "." {
			return false
		}
		logs++
		return logs > 2
	})

	content := []byte(strings.Repeat("precious ", 10))
	for _, name := range names {
		for _, kind := range []string{"link", "dangling link", "link to a directory", "hard link"} {
			t.Run(kind+" at "+name, func(t *testing.T) {
				t.Parallel()
				d := prepare(t)
				d.unset("AFOOT_JWT_SECRET_FILE")
				require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(d.state, name)), 0o700))
				dir := t.TempDir()
				target := filepath.Join(dir, "target")
				plant := os.Symlink
				switch kind {
				case "link":
					require.NoError(t, os.WriteFile(target, content, 0o600))
				case "hard link":
					require.NoError(t, os.WriteFile(target, content, 0o600))
					plant = os.Link
				case "link to a directory":
					require.NoError(t, os.Mkdir(target, 0o755))
				}
				require.NoError(t, plant(target, filepath.Join(d.state, name)))
				d.launch()
				if !d.waitExitOrReady() {
					out, _, code := d.command("token", "--session", "j5", "--ttl", "1h")
					if code == 0 {
						d.with(strings.TrimSpace(out)).do(t, "POST", "/tasks?wait=true", startBody("echo x"))
					}
					d.stop()
				} else {
					require.NotZero(t, d.cmd.ProcessState.ExitCode())
				}
				switch kind {
				case "link":
					data, err := os.ReadFile(target)
					require.NoError(t, err)
					require.Equal(t, content, data, "the link's target is unchanged")
				case "hard link":
					if name == "secret" || name == "lock" || name == "listen" {
						return // a file of ours with another name beside it
					}
				case "dangling link":
					require.NoFileExists(t, target, "nothing is made through a link")
					require.NoDirExists(t, target, "nothing is made through a link")
				case "link to a directory":
					entries, err := os.ReadDir(target)
					require.NoError(t, err)
					require.Empty(t, entries, "nothing is made behind a link")
					info, err := os.Stat(target)
					require.NoError(t, err)
					require.Equal(t, fs.FileMode(0o755), info.Mode().Perm())
				}
			})
		}
	}
}

func TestJ5StateDirectoryOfSomebodyElse(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can give a directory away")
	}
	for _, mode := range []fs.FileMode{0o700, 0o755, 0o777} {
		d := prepare(t)
		require.NoError(t, os.Mkdir(d.state, 0o700))
		require.NoError(t, os.Chmod(d.state, mode))
		require.NoError(t, os.Chown(d.state, 12345, 12345))
		d.refuses(d.state)
		entries, err := os.ReadDir(d.state)
		require.NoError(t, err)
		require.Empty(t, entries)
	}
}

func TestJ5StateDirectoryIsAFile(t *testing.T) {
	t.Parallel()
	d := prepare(t)
	require.NoError(t, os.WriteFile(d.state, []byte("mine"), 0o600))
	d.refuses(d.state)
	data, err := os.ReadFile(d.state)
	require.NoError(t, err)
	require.Equal(t, "mine", string(data))
}

func TestK2TwoDaemonsOnOneStateDirectory(t *testing.T) {
	t.Parallel()
	first := serve(t)
	c := first.as("k2")
	live := c.start(t, "echo up; sleep 707")
	c.says(t, live.ID, "up")
	second := prepare(t)
	second.env = append(second.env, "AFOOT_STATE_DIR="+first.state)
	second.refuses(first.state)
	require.Equal(t, "running", c.get(t, live.ID).Status)
	require.Equal(t, "up\n", c.read(t, live.ID, "").Text, "the first goes on")

	// An end by force leaves no lock behind.
	first.kill()
	second.launch()
	second.ready()
	second.stop()
	require.Equal(t, 0, second.cmd.ProcessState.ExitCode())
	require.Equal(t, syscall.SIGKILL, first.cmd.ProcessState.Sys().(syscall.WaitStatus).Signal())
}
