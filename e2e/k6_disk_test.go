package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// mount mounts for the length of the test, or skips it where that is not allowed.
func mount(t *testing.T, source, target, kind string, flags uintptr, data string) {
	t.Helper()
	err := syscall.Mount(source, target, kind, flags, data)
	if errors.Is(err, syscall.EPERM) {
		t.Skip("mounting needs the rights of root")
	}
	require.NoError(t, err)
	t.Cleanup(func() { _ = syscall.Unmount(target, syscall.MNT_DETACH) })
}

// onSmallDisk starts a daemon whose state directory is a file system of 4 MB.
func onSmallDisk(t *testing.T, env ...string) *daemon {
	t.Helper()
	d := prepare(t, env...)
	require.NoError(t, os.Mkdir(d.state, 0o700))
	mount(t, "tmpfs", d.state, "tmpfs", 0, "size=4m,mode=0700")
	d.launch()
	d.ready()
	return d
}

// fill takes all room that is left in the state directory, and gives it back.
func (d *daemon) fill(t *testing.T) (free func()) {
	t.Helper()
	path := filepath.Join(d.state, "somebody-elses")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	for block := make([]byte, 64<<10); len(block) > 0; {
		if _, err := f.Write(block); err != nil {
			require.ErrorIs(t, err, syscall.ENOSPC)
			block = block[:len(block)/2]
		}
	}
	require.NoError(t, f.Close())
	return func() { require.NoError(t, os.Remove(path)) }
}

// outcome runs a command that writes its own idea of its end to a file elsewhere.
func (d *daemon) outcome(t *testing.T, c *client, command string, more ...fields) (s snapshot, rc string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rc")
	id := c.start(t, command+fmt.Sprintf("; rc=$?; echo $rc >'%s'; echo rc=$rc", path), more...).ID
	s = c.over(t, id)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return s, strings.TrimSpace(string(data))
}

// told checks that a loss is told: in numbers that add up, and with its reason.
func (c *client) told(t *testing.T, s snapshot, reason string) {
	t.Helper()
	require.Equal(t, "completed", s.Status)
	require.Equal(t, 0, s.exitCode())
	require.True(t, strings.HasPrefix(s.Detail, "exit code: 0"), s.Detail)
	require.Contains(t, s.Detail, reason)
	require.Positive(t, s.DroppedBytes)
	require.LessOrEqual(t, s.DroppedBytes, s.OutputBytes)
	require.Contains(t, c.d.logTail(1<<20), reason)
	o := c.read(t, s.ID, "offset=0&limit_bytes=100")
	require.Equal(t, s.DroppedBytes, o.DroppedBytes)
}

// K6: a full disk ends neither the work nor the daemon.
func TestK6FullDisk(t *testing.T) {
	t.Parallel()
	const reason = "no space left on device"
	d := onSmallDisk(t)
	c := d.as("k6")
	s, rc := d.outcome(t, c, `head -c 5000000 /dev/zero`)
	require.Equal(t, "0", rc)
	require.Equal(t, int64(5000005), s.OutputBytes)
	c.told(t, s, reason)

	// Then: it works, or there is honestly no room.
	c.mayStart(t, `echo hi`, "hi\n")
	c.purge(t, s.ID)
	_, text := c.finish(t, c.start(t, `echo again`).ID)
	require.Equal(t, "again\n", text)
	for _, s := range c.list(t, "") {
		if s.Label == "echo again" {
			require.Equal(t, "exit code: 0", s.Detail)
			require.Zero(t, s.DroppedBytes)
		}
	}
}

// mayStart starts a command, which is answered 507 or runs as ever.
func (c *client) mayStart(t *testing.T, command, text string) {
	t.Helper()
	a := c.do(t, http.MethodPost, "/tasks?wait=true", startBody(command))
	if a.status != http.StatusCreated {
		require.NotEmpty(t, a.refused(t, http.StatusInsufficientStorage, "insufficient_storage"))
		return
	}
	var o output
	a.into(t, &o)
	require.Equal(t, 0, o.Snapshot.exitCode())
	if o.Snapshot.DroppedBytes == 0 {
		require.Equal(t, text, o.Text)
	} else {
		require.Equal(t, int64(len(text)), o.Snapshot.OutputBytes)
	}
}

// The disk is filled by somebody else, while tasks write and before.
func TestK6DiskFilledBySomebodyElse(t *testing.T) {
	t.Parallel()
	for name, split := range map[string]fields{"merged": nil, "split": {"streams": "split"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const reason = "no space left on device"
			d := onSmallDisk(t)
			c := d.as("k6")
			g := newGate(t)
			running := c.start(t, `echo before; `+g.wait()+`head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2; exit 6`, split).ID
			c.says(t, running, "before\n")
			free := d.fill(t)
			g.open(t)
			eventually(t, 20*time.Second, "end", func() bool { return c.get(t, running).terminal() })
			s := c.get(t, running)
			require.Equal(t, 6, s.exitCode(), "the exit code is the command's own")
			require.Contains(t, s.Detail, reason)
			require.Positive(t, s.DroppedBytes)
			c.mayStart(t, `echo hi`, "hi\n")
			require.Equal(t, http.StatusOK, c.do(t, http.MethodGet, "/tasks", nil).status)
			require.Equal(t, http.StatusOK, d.with("").do(t, http.MethodGet, "/healthz", nil).status)
			free()
			end, text := c.finish(t, c.start(t, `echo again`, split).ID)
			require.Equal(t, "again\n", text)
			require.Equal(t, "exit code: 0", end.Detail)
		})
	}
}

// Room that comes back while a task still writes is used again: the newest is kept,
// the hole is told.
func TestK6RoomComesBack(t *testing.T) {
	t.Parallel()
	d := onSmallDisk(t)
	c := d.as("k6")
	f := newFeed(t)
	id := c.start(t, f.print()).ID
	f.give(t, c, id, []byte("the beginning\n"))
	free := d.fill(t)
	for range 8 { // more than what a page or a block of the file has left
		f.give(t, c, id, []byte(strings.Repeat("lost?\n", 5000)))
	}
	free()
	f.give(t, c, id, []byte(strings.Repeat("kept\n", 2000)))
	f.give(t, c, id, []byte("the end\n"))
	f.done(t)
	eventually(t, 20*time.Second, "end", func() bool { return c.get(t, id).terminal() })
	s := c.get(t, id)
	require.Equal(t, f.size, s.OutputBytes)
	c.told(t, s, "no space left on device")
	var text strings.Builder
	offset := int64(0)
	for pages := 0; ; pages++ {
		require.Less(t, pages, 100)
		o := c.read(t, id, fmt.Sprintf("offset=%d", offset))
		require.NotContains(t, o.Text, "\x00", "what was lost is never zeros")
		text.WriteString(o.Text)
		offset = o.NextOffset
		if o.EOF {
			break
		}
	}
	require.Equal(t, f.size, offset)
	require.LessOrEqual(t, int64(text.Len()), s.OutputBytes-s.DroppedBytes)
	a := c.do(t, http.MethodGet, "/tasks/"+id+"/log", nil)
	require.Equal(t, http.StatusOK, a.status)
	require.NotContains(t, string(a.body), "\x00")
}

// The directory can't be written for a while: starts are refused with a reason or
// run and tell their loss; afterwards all is as ever.
func TestK6UnwritableDirectory(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("k6")
	_, text := c.finish(t, c.start(t, `echo marker-k6`).ID)
	require.Equal(t, "marker-k6\n", text)
	dir := filepath.Dir(d.fileWith(t, "marker-k6"))
	mount(t, dir, dir, "", syscall.MS_BIND, "")
	require.NoError(t, syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_BIND|syscall.MS_RDONLY, ""))
	for range 3 {
		c.mayStart(t, `echo hi`, "hi\n")
	}
	require.NoError(t, syscall.Unmount(dir, 0))
	s, text := c.finish(t, c.start(t, `echo again`).ID)
	require.Equal(t, "again\n", text)
	require.Equal(t, "exit code: 0", s.Detail)
}

// A log file, or the whole directory, is removed or cut behind the daemon's back.
func TestK6VanishedFiles(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(path string) error{
		"removed":             os.Remove,
		"truncated":           func(path string) error { return os.Truncate(path, 0) },
		"cut to a part":       func(path string) error { return os.Truncate(path, 9) },
		"directory removed":   func(path string) error { return os.RemoveAll(filepath.Dir(path)) },
		"a directory instead": func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := serve(t)
			c := d.as("k6")
			live, ended := "live "+hexText(8), "ended "+hexText(8)
			g := newGate(t)
			over := c.start(t, "echo "+ended+"; exit 3").ID
			c.finish(t, over)
			running := c.start(t, "echo "+live+"; "+g.wait()+"echo more; exit 4").ID
			c.says(t, running, live)
			livePath, endedPath := d.fileWith(t, live), d.fileWith(t, ended)
			require.NoError(t, harm(endedPath))
			if name != "directory removed" {
				require.NoError(t, harm(livePath))
			}
			g.open(t)
			eventually(t, 10*time.Second, "end", func() bool { return c.get(t, running).terminal() })
			require.Equal(t, 4, c.get(t, running).exitCode(), "the exit code is the command's own")
			for id, size := range map[string]int64{over: int64(len(ended) + 1), running: int64(len(live) + 6)} {
				require.Equal(t, size, c.get(t, id).OutputBytes)
				got := int64(0)
				offset := int64(0)
				for pages := 0; ; pages++ {
					require.Less(t, pages, 10, "no progress")
					o := c.read(t, id, fmt.Sprintf("offset=%d", offset))
					require.NotContains(t, o.Text, "\x00")
					got += int64(len(o.Text))
					offset = o.NextOffset
					if o.EOF {
						if got < size {
							require.GreaterOrEqual(t, o.DroppedBytes, size-got, "the loss is told")
						}
						break
					}
				}
				require.Equal(t, size, offset)
				a := c.do(t, http.MethodGet, "/tasks/"+id+"/log", nil)
				require.Less(t, a.status, 500, "%s", a)
				require.NotContains(t, string(a.body), "\x00")
				eventually(t, 5*time.Second, "consuming reads end, too", func() bool { return c.read(t, id, "").EOF })
				c.reported(t, id)
			}
			// Others are not touched; later ones are as ever.
			s, text := c.finish(t, c.start(t, "echo again").ID)
			require.Equal(t, "again\n", text)
			require.Equal(t, "exit code: 0", s.Detail)
			c.purge(t, over)
			c.purge(t, running)
		})
	}
}
