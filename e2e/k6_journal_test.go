package e2e

import (
	"net/http"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// refusesStarts starts tasks until that is refused for want of room, and gives those
// that were not.
func (c *client) refusesStarts(t *testing.T, reason string) (started []string) {
	t.Helper()
	for range 3000 {
		a := c.do(t, http.MethodPost, "/tasks?wait=true", startBody(":"))
		if a.status != http.StatusCreated {
			require.Contains(t, a.refused(t, http.StatusInsufficientStorage, "insufficient_storage"), reason)
			return started
		}
		var o output
		a.into(t, &o)
		started = append(started, o.Snapshot.ID)
	}
	require.FailNow(t, "starts go on and on")
	return nil
}

// startsAgain waits until a start is taken.
func (c *client) startsAgain(t *testing.T) {
	t.Helper()
	eventually(t, 20*time.Second, "starts are taken again", func() bool {
		a := c.do(t, http.MethodPost, "/tasks?wait=true", startBody("echo healed"))
		if a.status == http.StatusCreated {
			var o output
			a.into(t, &o)
			require.Equal(t, "healed\n", o.Text)
			require.Equal(t, "exit code: 0", o.Snapshot.Detail)
			return true
		}
		require.Equal(t, http.StatusInsufficientStorage, a.status, "%s", a)
		return false
	})
}

// K6: a journal that can't be written refuses starts. Everything else goes on, nothing
// lies, and when there is room again it heals; what happened meanwhile is true for ever.
func TestK6JournalOnAFullDisk(t *testing.T) {
	t.Parallel()
	d := onSmallDisk(t, "AFOOT_MAX_TASKS_PER_OWNER=30")
	c := d.as("k6")
	events := c.subscribe(t, "", "")
	g := newGate(t)
	ending := c.start(t, `echo before; `+g.wait()+`exit 6`).ID
	doomed := c.start(t, `echo up; sleep 981`).ID
	staying := c.start(t, `echo up; sleep 983`).ID
	unread := c.start(t, `echo unread; exit 7`).ID
	for _, id := range []string{doomed, staying} {
		c.says(t, id, "up")
	}
	c.says(t, ending, "before")
	c.over(t, unread)
	events.done(t, 1)

	free := d.fill(t)
	started := c.refusesStarts(t, "no space left on device")
	// Looks, waits, reads, kills, and ends.
	require.Equal(t, "running", c.get(t, staying).Status)
	require.Len(t, c.list(t, "limit=1000"), 4+len(started))
	begun := time.Now()
	o := c.read(t, staying, "offset=3&wait=true&timeout_ms=50")
	require.Equal(t, "running", o.Snapshot.Status)
	require.Equal(t, "unread\n", c.read(t, unread, "").Text)
	k := c.kill(t, doomed)
	require.Equal(t, "requested", k.Outcome)
	require.True(t, k.Snapshot.Reported)
	g.open(t)
	s := c.over(t, ending)
	require.Equal(t, 6, s.exitCode())
	require.Equal(t, "killed", c.over(t, doomed).Status)
	require.Less(t, time.Since(begun), patient(5*time.Second), "nobody waits for the disk")
	require.Equal(t, http.StatusOK, d.with("").do(t, http.MethodGet, "/healthz", nil).status)
	c.do(t, http.MethodPost, "/tasks", startBody("true")).refused(t, http.StatusInsufficientStorage, "insufficient_storage")

	free()
	c.startsAgain(t)
	eventually(t, 20*time.Second, "the end is told", func() bool { return slices.Contains(ids(t, events.all("task.done")), ending) })
	require.Empty(t, events.all("gap"))
	require.NotContains(t, ids(t, events.all("task.done")), doomed)
	before := c.list(t, "limit=1000")
	d.die(t)
	d.again()
	after := c.list(t, "limit=1000")
	require.Len(t, after, len(before))
	for i, s := range after {
		if s.ID == staying {
			wasLost(t, s)
			continue
		}
		require.True(t, before[i].same(s), "%+v was %+v", s, before[i])
		if before[i].Reported {
			require.True(t, s.Reported, s.ID)
		}
	}
	require.True(t, c.get(t, unread).Reported)
	require.True(t, c.get(t, doomed).Reported)
	require.Equal(t, 6, c.get(t, ending).exitCode())
}

// A daemon that dies while its journal can't be written has told nobody what is lost:
// the next one refuses, or knows all that was told.
func TestK6DiesOnAFullDisk(t *testing.T) {
	t.Parallel()
	d := onSmallDisk(t, "AFOOT_MAX_TASKS_PER_OWNER=30")
	c := d.as("k6")
	live := c.start(t, `echo up; sleep 985`).ID
	c.says(t, live, "up")
	ended := c.ends(t, 3)
	free := d.fill(t)
	started := c.refusesStarts(t, "no space left on device")
	last := 4 + len(started)
	d.die(t)
	eventually(t, orphaned, "nobody is left", func() bool { return len(d.alive()) == 0 })
	d.launch()
	if !d.waitExitOrReady() {
		require.Equal(t, ended[0], c.get(t, ended[0]).ID)
		require.Equal(t, http.StatusOK, c.do(t, http.MethodGet, "/tasks", nil).status)
		d.stop()
	} else {
		require.NotZero(t, d.cmd.ProcessState.ExitCode())
		require.Contains(t, d.logTail(4000), "no space left on device")
	}
	free()
	d.again()
	wasLost(t, c.get(t, live))
	for _, id := range append(ended, started...) {
		require.Equal(t, "completed", c.get(t, id).Status)
	}
	fresh := c.start(t, "true").ID
	_, n, err := place(fresh)
	require.NoError(t, err)
	require.Greater(t, n, uint64(last))
	require.NotContains(t, append(ended, started...), fresh)
}

// The journal vanishes behind the daemon's back, or the disk below it: no lie, and no
// panic.
func TestK6JournalRemoved(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("k6")
	c.ends(t, 2)
	for _, path := range d.journalFiles(t) {
		require.NoError(t, syscall.Unlink(path))
	}
	a := c.do(t, http.MethodPost, "/tasks?wait=true", startBody("echo x"))
	require.Contains(t, []int{http.StatusCreated, http.StatusInsufficientStorage}, a.status, "%s", a)
	require.Len(t, c.list(t, "")[:2], 2)
	require.NotContains(t, d.logTail(1<<20), "panic")
	d.stop()
	require.NoDirExists(t, filepath.Join(d.state, "journal.db"))
}
