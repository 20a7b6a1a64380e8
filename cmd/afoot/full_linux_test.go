package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// smallDisk puts the state directory on a file system of that many bytes.
func (r *rig) smallDisk(size string) {
	r.t.Helper()
	require.NoError(r.t, os.MkdirAll(r.state, 0o700))
	err := unix.Mount("tmpfs", r.state, "tmpfs", 0, "size="+size+",mode=0700")
	if errors.Is(err, unix.EPERM) {
		r.t.Skip("mounting needs the rights of root")
	}
	require.NoError(r.t, err)
	r.t.Cleanup(func() { _ = unix.Unmount(r.state, unix.MNT_DETACH) })
}

// fill takes all room there is, and gives it back.
func (r *rig) fill() (free func()) {
	r.t.Helper()
	path := filepath.Join(r.state, "somebody-elses")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(r.t, err)
	block := make([]byte, 4096)
	for err == nil {
		_, err = f.Write(block)
	}
	require.ErrorIs(r.t, err, unix.ENOSPC)
	require.NoError(r.t, f.Close())
	var st unix.Statfs_t
	require.NoError(r.t, unix.Statfs(r.state, &st))
	require.Zero(r.t, st.Bavail)
	return func() { require.NoError(r.t, os.Remove(path)) }
}

// A daemon starts on a disk without a free byte, tells what it knows, refuses work, and
// heals.
func TestStartsOnAFullDisk(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end  func(r *rig)
		tear []string // of the state, as if it had never been written
	}{
		"after an orderly end": {end: (*rig).stop},
		"after a sudden end": {end: func(r *rig) {
			require.NoError(r.t, r.daemon.Process.Kill())
			require.Error(r.t, r.ended(r.soon()))
		}},
		"after a sudden end without anything to write over": {end: func(r *rig) {
			require.NoError(r.t, r.daemon.Process.Kill())
			require.Error(r.t, r.ended(r.soon()))
		}, tear: []string{remainsName, listenName, controlName, lockName, journalName + "-reserve"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.smallDisk("8m")
			r.serve()
			require.Equal(t, "one\n", r.ok("run", "--", "echo one"))
			r.ok("run", "-d", "--", "sleep 381")
			c.end(r)
			for _, name := range c.tear {
				require.NoError(t, os.Remove(filepath.Join(r.state, name)))
			}
			free := r.fill()
			defer func() {
				if t.Failed() {
					t.Log(r.out.String())
				}
			}()
			r.serve()
			if c.tear != nil {
				require.Contains(t, r.out.String(), remainsName+" file: write")
				require.Contains(t, r.out.String(), listenName+" file: write")
			}
			told := *r // by name: its address may not be written
			told.env = append(slices.Clone(r.env), "AFOOT_TOKEN="+strings.TrimSpace(r.ok("token", "--session", "local")))
			require.Contains(t, told.ok("ls", "--addr", r.address()), "bash-1")
			require.Equal(t, "one\n", told.ok("logs", "--addr", r.address(), "bash-1"))
			_, stderr, code := told.afoot("run", "--addr", r.address(), "--", "echo two")
			require.NotEqual(t, exitOK, code)
			require.Contains(t, stderr, "no space left on device")

			free()
			r.eventually("it takes work again", func() bool {
				stdout, _, code := r.afoot("run", "--", "echo three")
				return code == exitOK && stdout == "three\n"
			})
			r.eventually("what was not written is", func() bool {
				text, err := os.ReadFile(filepath.Join(r.state, remainsName))
				return err == nil && len(text) > 0
			})

			// The watchdog works all the same.
			mark := fmt.Sprintf("393.%d", r.daemon.Process.Pid)
			free = r.fill()
			_, _, _ = r.afoot("run", "-d", "--", "sleep "+mark) // perhaps there is no room
			free()
			r.eventually("it is up", func() bool {
				if len(alive(t, mark)) > 0 {
					return true
				}
				_, _, _ = r.afoot("run", "-d", "--", "sleep "+mark)
				return false
			})
			require.NoError(t, r.daemon.Process.Signal(syscall.SIGKILL))
			require.Error(t, r.ended(r.soon()))
			r.eventually("its tasks end with it", func() bool { return len(alive(t, mark)) == 0 })
		})
	}
}

// address is where the daemon says that it listens.
func (r *rig) address() string {
	r.t.Helper()
	listens := regexp.MustCompile(`afoot listens on (\S+)`).FindStringSubmatch(r.out.String())
	require.Len(r.t, listens, 2)
	return listens[1]
}
