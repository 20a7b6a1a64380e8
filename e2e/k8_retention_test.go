package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// collected starts a command and takes its end, until it is reported.
func (c *client) collected(t *testing.T, command string) string {
	t.Helper()
	a := c.do(t, http.MethodPost, "/tasks?wait=true", startBody(command))
	require.Equal(t, http.StatusCreated, a.status, "%s", a)
	var o output
	a.into(t, &o)
	require.True(t, o.EOF)
	c.reported(t, o.Snapshot.ID)
	return o.Snapshot.ID
}

// reported waits until an end that was taken is known to have been: that is behind the last
// byte of its answer.
func (c *client) reported(t *testing.T, id string) {
	t.Helper()
	eventually(t, 10*time.Second, id+" is reported", func() bool { return c.get(t, id).Reported })
}

// kept waits until the list holds exactly these.
func (c *client) kept(t *testing.T, want ...string) {
	t.Helper()
	eventually(t, 10*time.Second, fmt.Sprintf("kept are %v alone", want), func() bool {
		var got []string
		for _, s := range c.list(t, "limit=1000") {
			got = append(got, s.ID)
		}
		return slices.Equal(got, want)
	})
}

// isGone checks that every path to a task says so.
func (c *client) isGone(t *testing.T, id string) {
	t.Helper()
	for _, path := range []string{"", "/output", "/output?offset=0", "/output?wait=true", "/log", "/log?follow=true", "/events"} {
		c.do(t, http.MethodGet, "/tasks/"+id+path, nil).refused(t, http.StatusGone, "gone")
	}
	c.do(t, http.MethodDelete, "/tasks/"+id, nil).refused(t, http.StatusGone, "gone")
}

// K8: many short tasks far beyond the count that is kept.
func TestK8ManyPastTheCount(t *testing.T) {
	t.Parallel()
	const n, count = 2000, 100
	d := serve(t, fmt.Sprintf("AFOOT_RETAIN_COUNT=%d", count), "AFOOT_MAX_TASKS_PER_OWNER=50", "AFOOT_LOG_LEVEL=warn")
	c := d.as("k8")
	live := c.start(t, `echo up; sleep 919`).ID
	c.says(t, live, "up")
	files, disk := d.files(t), d.diskBytes(t)
	var g errgroup.Group
	g.SetLimit(8)
	var mu sync.Mutex
	var collected []string
	for i := range n {
		g.Go(func() error {
			path := "/tasks"
			if i%2 == 0 {
				path += "?wait=true"
			}
			a, err := c.call(t.Context(), http.MethodPost, path, startBody("echo x"))
			if err != nil || a.status != http.StatusCreated {
				return fmt.Errorf("%s: %w", a, err)
			}
			if i%2 == 0 {
				var o output
				if err := json.Unmarshal(a.body, &o); err != nil || o.Text != "x\n" {
					return fmt.Errorf("%s: %w", a, err)
				}
				mu.Lock()
				collected = append(collected, o.Snapshot.ID)
				mu.Unlock()
			}
			return nil
		})
	}
	require.NoError(t, g.Wait())
	eventually(t, 20*time.Second, "the count is kept", func() bool { return len(c.list(t, "limit=1000")) == count+1 })
	all := c.list(t, "limit=1000")
	require.Equal(t, live, all[0].ID, "never a live one")
	require.Equal(t, "running", all[0].Status)
	reported := 0
	for _, s := range all[1:] {
		if s.Reported {
			reported++
		}
	}
	require.LessOrEqual(t, reported, 8, "reported ones go before, but those that were not yet so when they ended")
	for _, id := range []string{collected[0], collected[len(collected)/2]} {
		c.isGone(t, id)
	}
	c.do(t, http.MethodGet, fmt.Sprintf("/tasks/bash-%d", n+2), nil).refused(t, http.StatusNotFound, "unknown_task")
	eventually(t, 10*time.Second, "files and bytes of the evicted are given back", func() bool {
		return d.files(t) <= files+count && d.diskBytes(t) <= disk+count*4096
	})
	require.Equal(t, fmt.Sprintf("bash-%d", n+2), c.start(t, "true").ID, "ids are never used again")
}

// The oldest reported goes first, an unreported one stays, each owner for itself.
func TestK8ReportedBeforeUnreported(t *testing.T) {
	t.Parallel()
	d := serve(t, "AFOOT_RETAIN_COUNT=5", "AFOOT_MAX_TASKS_PER_OWNER=20")
	c, other := d.as("k8"), d.as("k8-other")
	worker := c.open(t, fields{})
	theirs := other.collected(t, "echo theirs")
	agents := worker.collected(t, "echo agent's")
	unowned := d.anyone().collected(t, "echo nobody's")
	var unreported []string
	for range 3 {
		id := c.start(t, "echo unread").ID
		c.finish(t, id)
		unreported = append(unreported, id)
	}
	var reported []string
	for range 6 {
		reported = append(reported, c.collected(t, "echo read"))
	}
	want := append([]string{agents, unowned}, unreported...)
	want = append(want, reported[4:]...)
	c.kept(t, want...)
	for _, id := range reported[:4] {
		c.isGone(t, id)
	}
	require.Equal(t, "echo theirs", other.get(t, theirs).Label)
	// One that is read now is reported, and as the oldest end the next to go.
	require.Equal(t, "unread\n", c.read(t, unreported[0], "").Text)
	c.reported(t, unreported[0])
	last := c.collected(t, "echo read")
	want = append([]string{agents, unowned}, unreported[1:]...)
	c.kept(t, append(append(want, reported[4:]...), last)...)
	c.isGone(t, unreported[0])
	require.Equal(t, "unread\n", c.read(t, unreported[1], "").Text, "kept ones are whole")
}

// Unreported ones alone beyond the count: the oldest goes, and is still announced.
func TestK8NoticeOfTheEvicted(t *testing.T) {
	t.Parallel()
	d := serve(t, "AFOOT_RETAIN_COUNT=4", "AFOOT_MAX_TASKS_PER_OWNER=20")
	c := d.as("k8")
	all := c.ends(t, 12)
	c.kept(t, all[8:]...)
	for _, id := range all[:8] {
		c.isGone(t, id)
	}
	events := c.subscribe(t, "", "")
	require.Equal(t, all, ids(t, events.done(t, 12)), "no end is silently swallowed")
	events.leave(t, c)
	again := c.subscribe(t, "", events.all("task.done")[5].id)
	require.Equal(t, all[6:], ids(t, again.done(t, 6)))
}

// By age, without anybody's call, also unreported ones; their notices still come.
func TestK8Age(t *testing.T) {
	t.Parallel()
	d := serve(t, "AFOOT_RETAIN_AGE=5s", "AFOOT_MAX_TASKS_PER_OWNER=20")
	c := d.as("k8")
	live := c.start(t, `echo up; sleep 921`).ID
	read := c.collected(t, "echo read")
	unread := c.start(t, "echo unread").ID
	c.finish(t, unread)
	files := d.files(t)
	begun := time.Now()
	c.kept(t, live, read, unread)
	// Nobody calls: the files go all the same.
	eventually(t, 20*time.Second, "files of both are gone", func() bool { return d.files(t) == files-2 })
	require.GreaterOrEqual(t, time.Since(begun), 4*time.Second, "not before their time")
	c.kept(t, live)
	c.isGone(t, read)
	c.isGone(t, unread)
	require.Equal(t, []string{unread}, ids(t, c.subscribe(t, "", "").done(t, 1)))
}

// What left processes behind is not evicted before they have ended.
func TestK8LeftoversAreKept(t *testing.T) {
	t.Parallel()
	d := serve(t, "AFOOT_RETAIN_COUNT=2", "AFOOT_MAX_TASKS_PER_OWNER=20")
	c := d.as("k8")
	left := c.collected(t, `sleep 923 >/dev/null 2>&1 & echo done`)
	require.Contains(t, c.get(t, left).Detail, "left running")
	others := make([]string, 0, 6)
	for range 6 {
		others = append(others, c.collected(t, "echo x"))
	}
	eventually(t, 10*time.Second, "the older ones are gone", func() bool { return len(c.list(t, "")) <= 3 })
	c.isGone(t, others[0])
	require.Equal(t, left, c.list(t, "")[0].ID)
	require.Equal(t, "done\n", c.read(t, left, "offset=0").Text)
	require.Len(t, d.aliveOf(left), 1, "and they are left alone")
	require.Equal(t, "already-finished", c.kill(t, left).Outcome)
	d.gone(t, left, grace+time.Second)
}

// The budget of all tasks: the oldest reported ones make room; without any, a start
// is refused and says why.
func TestK8Budget(t *testing.T) {
	t.Parallel()
	const size = 1000000
	d := serve(t, "AFOOT_OUTPUT_TOTAL_BYTES=4MiB", "AFOOT_MAX_TASKS_PER_OWNER=20")
	c := d.as("budget")
	big := fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x", size)
	unread := c.start(t, big).ID
	c.over(t, unread)
	var reported []string
	for range 8 {
		reported = append(reported, c.collected(t, big))
		require.LessOrEqual(t, d.diskBytes(t), int64(4<<20+size+64<<10), "about the budget")
	}
	c.isGone(t, reported[0])
	c.isGone(t, reported[3])
	require.Len(t, c.log(t, reported[7]), size, "the newest is kept")
	require.Len(t, c.log(t, unread), size, "an unreported one is kept")

	// Unreported ones alone beyond the budget.
	ends := []string{unread}
	var a *answer
	for range 10 {
		a = c.do(t, http.MethodPost, "/tasks", startBody(big))
		if a.status != http.StatusCreated {
			break
		}
		var s snapshot
		a.into(t, &s)
		c.over(t, s.ID)
		ends = append(ends, s.ID)
	}
	require.Contains(t, a.refused(t, http.StatusInsufficientStorage, "insufficient_storage"), "AFOOT_OUTPUT_TOTAL_BYTES")
	require.GreaterOrEqual(t, len(ends), 4)
	require.LessOrEqual(t, len(ends), 6)
	c.kept(t, ends...)
	d.as("budget-other").do(t, http.MethodPost, "/tasks", startBody("true")).
		refused(t, http.StatusInsufficientStorage, "insufficient_storage")
	for _, id := range ends {
		require.Len(t, c.log(t, id), size, "looks and refusals change nothing")
		require.False(t, c.get(t, id).Reported)
	}
	// One that was delivered makes room.
	require.Len(t, c.read(t, ends[1], "").Text, size)
	c.reported(t, ends[1])
	fresh := c.start(t, "echo fresh").ID
	c.isGone(t, ends[1])
	_, text := c.finish(t, fresh)
	require.Equal(t, "fresh\n", text)
	c.kept(t, append(append([]string{ends[0]}, ends[2:]...), fresh)...)
}

// A task that crosses the budget while it runs makes room as well.
func TestK8BudgetWhileRunning(t *testing.T) {
	t.Parallel()
	d := serve(t, "AFOOT_OUTPUT_TOTAL_BYTES=4MiB", "AFOOT_MAX_TASKS_PER_OWNER=20")
	c := d.as("budget")
	old := c.collected(t, `head -c 2000000 /dev/zero`)
	f := newFeed(t)
	id := c.start(t, f.print()).ID
	for range 30 {
		f.give(t, c, id, bytes.Repeat([]byte("x"), 100000))
	}
	eventually(t, 10*time.Second, "the old one is gone", func() bool {
		return c.do(t, http.MethodGet, "/tasks/"+old, nil).status == http.StatusGone
	})
	f.done(t)
	_, text := c.finish(t, id)
	require.Len(t, text, 3000000)
}

// C14: ended output is there again and again, on every connection; what is gone and
// what never was are told apart.
func TestC14ReadAgain(t *testing.T) {
	t.Parallel()
	d := serve(t, "AFOOT_RETAIN_COUNT=3")
	c := d.as("c14")
	evicted := c.collected(t, "echo evicted")
	var ended []string
	for _, command := range []string{`echo a`, `head -c 300000 /dev/urandom; exit 3`, `printf '\xf0\x9f'; kill -9 $$`} {
		ended = append(ended, c.collected(t, command))
	}
	second := *c
	second.http = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, id := range ended {
		first := c.do(t, http.MethodGet, "/tasks/"+id+"/output?offset=0", nil)
		log := c.log(t, id)
		for range 3 {
			again := second.do(t, http.MethodGet, "/tasks/"+id+"/output?offset=0", nil)
			require.Equal(t, http.StatusOK, again.status)
			require.Equal(t, first.body, again.body)
			require.True(t, bytes.Equal(log, second.log(t, id)))
		}
		var o output
		first.into(t, &o)
		require.True(t, o.EOF)
		require.NotEmpty(t, o.Text)
	}
	c.kept(t, ended...)
	c.isGone(t, evicted)
	for _, id := range []string{"bash-5", "bash-999999", "bash-0", "bash-01", "pty-1", "bash", "bash-", "bash--1", "bash-1x", "BASH-1"} {
		c.do(t, http.MethodGet, "/tasks/"+id+"/output?offset=0", nil).refused(t, http.StatusNotFound, "unknown_task")
	}
}

// Many connections read one ended task at a time.
func TestC14ReadAgainInParallel(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("c14")
	id := c.collected(t, `head -c 300000 /dev/urandom`)
	raw := c.log(t, id)
	first := c.do(t, http.MethodGet, "/tasks/"+id+"/output?offset=0", nil)
	var g errgroup.Group
	for i := range 16 {
		g.Go(func() error {
			path, want := "/output?offset=0", first.body
			if i%2 == 0 {
				path, want = "/log", raw
			}
			a, err := c.call(t.Context(), http.MethodGet, "/tasks/"+id+path, nil)
			if err == nil && !bytes.Equal(want, a.body) {
				err = fmt.Errorf("%d bytes, other ones than before", len(a.body))
			}
			return err
		})
	}
	require.NoError(t, g.Wait())
}
