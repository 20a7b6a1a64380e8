package e2e

import (
	"bufio"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// size counts the events so far.
func (s *stream) size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.events)
}

// I5: subscribers that read nothing cost no other one a notice, nor the daemon its
// memory; they are cut, and go on from where they were.
func TestI5StoppedSubscribers(t *testing.T) {
	t.Parallel()
	const stopped, ends = 50, 2000
	d := serve(t, "AFOOT_MAX_STREAMS_PER_SESSION=60", "AFOOT_MAX_TASKS_PER_OWNER=50", "AFOOT_RETAIN_COUNT=5000", "AFOOT_WRITE_TIMEOUT=3s",
		"AFOOT_LOG_LEVEL=warn")
	c := d.as("i5")
	// Notices are as large as they may be, so that no buffer of the system holds all.
	label := strings.Repeat(`"`, 512)
	healthy := c.subscribe(t, "", "")
	c.start(t, "true", fields{"label": label})
	first := healthy.done(t, 1)[0]
	var wires []*wire
	for range stopped {
		wires = append(wires, d.stopped(t, c, "/events"))
	}
	eventually(t, 10*time.Second, "all are subscribed", func() bool { return d.streams(t) == stopped+1 })
	base := d.residentKiB(t)
	var g errgroup.Group
	g.SetLimit(8)
	for i := range ends {
		// Ends come as fast as the healthy one takes them: what a session keeps is bounded.
		eventually(t, 20*time.Second, "the healthy one is not far behind", func() bool { return healthy.size() > i-500 })
		g.Go(func() error {
			a, err := c.call(t.Context(), http.MethodPost, "/tasks", startBody("true", fields{"label": label}))
			if err == nil && a.status != http.StatusCreated {
				err = fmt.Errorf("%s", a)
			}
			return err
		})
	}
	require.NoError(t, g.Wait())
	var told []event
	eventually(t, 10*time.Second, "the healthy one has all, soon after the last", func() bool {
		told = healthy.all("task.done")
		return len(told) > ends || len(healthy.all("bye", "gap")) > 0
	})
	require.Len(t, told, ends+1, "then came %v", healthy.all("bye", "gap"))
	require.Less(t, d.residentKiB(t)-base, 150<<10, "KiB of memory")
	_, last := first.number(t)
	seen := map[string]bool{}
	for _, e := range told[1:] {
		_, n := e.number(t)
		require.Equal(t, last+1, n)
		last = n
		seen[e.notice(t).Task.ID] = true
	}
	require.Len(t, seen, ends, "each end once")
	eventually(t, 30*time.Second, "the stopped are cut", func() bool { return d.streams(t) == 1 })

	// What had come to a stopped one is whole; from there it goes on.
	for _, w := range wires[:2] {
		require.NoError(t, w.conn.SetDeadline(time.Now().Add(3*time.Second)))
		res, err := http.ReadResponse(w.r, nil)
		require.NoError(t, err)
		s := &stream{}
		s.pump(bufio.NewReader(res.Body))
		lastID, from := first.id, uint64(0)
		for _, e := range s.all("task.done") {
			lastID = e.id
			_, from = e.number(t)
		}
		again := c.subscribe(t, "", lastID)
		c.ends(t, 1)
		if last-from > 1000 {
			again.await(t, 10*time.Second, 1, "gap")
		} else {
			next := again.done(t, 1)[0]
			_, n := next.number(t)
			require.Equal(t, from+1, n, "exactly those after it")
		}
		again.cut()
	}
}
