package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// numbered gives the n-th id of bash.
func numbered(n int) string { return fmt.Sprintf("bash-%d", n) }

func TestG1EveryViewAgrees(t *testing.T) {
	t.Parallel()
	d := serve(t)
	for i, command := range []string{`true`, `exit 1`, `kill -9 $$`, `kill -TERM $$`, `no_such_cmd_zz`, `echo x; sleep .1`} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			c := d.as(fmt.Sprintf("g1-%d", i))
			s, _ := everywhere(t, c, command)
			require.True(t, s.terminal())
			require.GreaterOrEqual(t, *s.FinishedAt, s.StartedAt)
			for _, status := range []string{"running", "stopping"} {
				require.Empty(t, c.list(t, "status="+status))
			}
			require.Len(t, c.list(t, "status="+s.Status), 1)
		})
	}
}

func TestG2StartAndWaitAtOnce(t *testing.T) {
	t.Parallel()
	d := serve(t, "AFOOT_MAX_TASKS_PER_OWNER=200")
	c := d.as("g2")
	other := *c
	other.http = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	var g errgroup.Group
	for range 100 {
		g.Go(func() error {
			a, err := c.call(t.Context(), http.MethodPost, "/tasks", startBody(`sleep .1; exit 4`))
			if err != nil || a.status != http.StatusCreated {
				return fmt.Errorf("start: %w %s", err, a)
			}
			var s snapshot
			if err := json.Unmarshal(a.body, &s); err != nil {
				return err
			}
			a, err = other.call(t.Context(), http.MethodGet, "/tasks/"+s.ID+"/output?wait=true&timeout_ms=30000", nil)
			if err != nil || a.status != http.StatusOK {
				return fmt.Errorf("wait for %s: %w %s", s.ID, err, a)
			}
			var o output
			if err := json.Unmarshal(a.body, &o); err != nil {
				return err
			}
			if o.Snapshot.exitCode() != 4 || !o.EOF || o.Snapshot.ID != s.ID || !o.Snapshot.Reported {
				return fmt.Errorf("wait for %s: %s", s.ID, a)
			}
			return nil
		})
	}
	require.NoError(t, g.Wait())
	require.Len(t, c.list(t, "status=completed"), 100)
}

func TestG2StartAndCollectInOneTrip(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("g2")
	a := c.do(t, http.MethodPost, "/tasks?wait=true&timeout_ms=20000", startBody(`echo hi; sleep .1; exit 4`))
	require.Equal(t, http.StatusCreated, a.status, "%s", a)
	var o output
	a.into(t, &o)
	require.Equal(t, "hi\n", o.Text)
	require.Equal(t, 4, o.Snapshot.exitCode())
	require.True(t, o.EOF)
	require.True(t, o.Snapshot.Reported)
	require.Equal(t, "/tasks/"+o.Snapshot.ID, a.header.Get("Location"))
	eventually(t, 5*time.Second, "reported", func() bool { return c.get(t, o.Snapshot.ID).Reported })

	a = c.do(t, http.MethodPost, "/tasks?wait=true&timeout_ms=3000", startBody(`echo soon; sleep 603`))
	require.Equal(t, http.StatusCreated, a.status, "%s", a)
	a.into(t, &o)
	require.Equal(t, "running", o.Snapshot.Status)
	require.Equal(t, "soon\n", o.Text)
	require.False(t, o.EOF)
	require.False(t, o.Snapshot.Reported)
}

func TestG3WaitsTellTheTruth(t *testing.T) {
	t.Parallel()
	d := serve(t, "AFOOT_MAX_TASKS_PER_OWNER=60")
	c := d.as("g3")

	t.Run("time-out, then end", func(t *testing.T) {
		t.Parallel()
		begun := time.Now()
		id := c.start(t, `sleep 2`).ID
		o := c.read(t, id, "wait=true&timeout_ms=500")
		require.GreaterOrEqual(t, time.Since(begun), 500*time.Millisecond)
		require.Equal(t, "running", o.Snapshot.Status)
		require.Nil(t, o.Snapshot.FinishedAt)
		require.False(t, o.EOF)
		require.False(t, o.Snapshot.Reported)
		require.Nil(t, o.TimeoutMs, "nothing was clamped")
		o = c.read(t, id, "wait=true&timeout_ms=5000")
		require.Equal(t, "completed", o.Snapshot.Status)
		require.GreaterOrEqual(t, time.Since(begun), 2*time.Second)
		require.Less(t, o.Snapshot.lasted(t), patient(3*time.Second))
	})

	t.Run("end and time-out at once", func(t *testing.T) {
		t.Parallel()
		var g errgroup.Group
		for range 50 {
			g.Go(func() error {
				a, err := c.call(t.Context(), http.MethodPost, "/tasks", startBody(`sleep 1`))
				if err != nil {
					return err
				}
				var s snapshot
				if err := json.Unmarshal(a.body, &s); err != nil {
					return fmt.Errorf("%w: %s", err, a)
				}
				a, err = c.call(t.Context(), http.MethodGet, "/tasks/"+s.ID+"/output?wait=true&timeout_ms=1000", nil)
				if err != nil {
					return err
				}
				var o output
				if err := json.Unmarshal(a.body, &o); err != nil {
					return fmt.Errorf("%w: %s", err, a)
				}
				live := o.Snapshot.Status == "running" && o.Snapshot.FinishedAt == nil && !o.EOF && !o.Snapshot.Reported
				over := o.Snapshot.Status == "completed" && o.Snapshot.FinishedAt != nil && o.EOF && o.Snapshot.Reported
				if !live && !over {
					return fmt.Errorf("neither live nor over: %s", a)
				}
				return nil
			})
		}
		require.NoError(t, g.Wait())
	})

	t.Run("bad bounds", func(t *testing.T) {
		t.Parallel()
		id := c.start(t, `sleep 605`).ID
		for _, bad := range []string{
			"-1", "0", "1.5", "NaN", "", "abc", "1e3", "0x10", "Infinity", "-9999999999999999999999", "5s", "%205", "5%20", "%2B5", "1_000", "٣", "00", "null",
		} {
			for _, query := range []string{"wait=true&timeout_ms=" + bad, "wait=true&offset=0&timeout_ms=" + bad} {
				a := c.do(t, http.MethodGet, "/tasks/"+id+"/output?"+query, nil)
				assert.Equal(t, http.StatusBadRequest, a.status, "%s: %s", query, a)
				if a.status == http.StatusBadRequest {
					require.Contains(t, a.refused(t, http.StatusBadRequest, "invalid"), "timeout_ms")
				}
			}
		}
		require.Equal(t, "running", c.get(t, id).Status)
	})

	t.Run("clamped", func(t *testing.T) {
		t.Parallel()
		id := c.start(t, `sleep .3`).ID
		for _, big := range []string{"1000000000000", "600001", "9223372036854775807", "9223372036854775808", "99999999999999999999999999"} {
			a := c.do(t, http.MethodGet, "/tasks/"+id+"/output?wait=true&timeout_ms="+big, nil)
			require.Equal(t, http.StatusOK, a.status, "%s: %s", big, a)
			var o output
			a.into(t, &o)
			require.NotNil(t, o.TimeoutMs, "%s: %s", big, a)
			require.Equal(t, int64(600000), *o.TimeoutMs)
			require.Equal(t, "600000", a.header.Get("Afoot-Timeout-Ms"))
		}
		a := c.do(t, http.MethodGet, "/tasks/"+id+"/output?wait=true&timeout_ms=600000", nil)
		require.NotContains(t, string(a.body), "timeoutMs", "the maximum itself is not clamped")
		require.Empty(t, a.header.Get("Afoot-Timeout-Ms"))
		a = c.do(t, http.MethodGet, "/tasks/"+id+"/output?wait=true&timeout_ms=600001", nil, "Accept: text/plain")
		require.Equal(t, "600000", a.header.Get("Afoot-Timeout-Ms"))
	})
}

func TestG3WaitBoundsAreConfigured(t *testing.T) {
	t.Parallel()
	d := serve(t, "AFOOT_WAIT_DEFAULT=400ms", "AFOOT_WAIT_MAX=900ms")
	c := d.as("g3")
	id := c.start(t, `sleep 607`).ID
	begun := time.Now()
	o := c.read(t, id, "wait=true")
	require.Equal(t, "running", o.Snapshot.Status)
	require.GreaterOrEqual(t, time.Since(begun), 400*time.Millisecond)
	require.Less(t, time.Since(begun), patient(2*time.Second))
	begun = time.Now()
	o = c.read(t, id, "wait=true&timeout_ms=5000")
	require.Equal(t, int64(900), *o.TimeoutMs)
	require.GreaterOrEqual(t, time.Since(begun), 900*time.Millisecond)
	require.Less(t, time.Since(begun), patient(3*time.Second))
	begun = time.Now()
	o = c.read(t, id, "wait=true&offset=0&timeout_ms=5000")
	require.Equal(t, int64(900), *o.TimeoutMs)
	require.Less(t, time.Since(begun), patient(3*time.Second))
	a := c.do(t, http.MethodPost, "/tasks?wait=true&timeout_ms=7000", startBody(`sleep 609`))
	require.Equal(t, http.StatusCreated, a.status, "%s", a)
	a.into(t, &o)
	require.Equal(t, int64(900), *o.TimeoutMs)
	require.Equal(t, "900", a.header.Get("Afoot-Timeout-Ms"))
}

func TestG4EverythingAtOnce(t *testing.T) {
	t.Parallel()
	const workers, rounds = 8, 25
	d := serve(t)
	var g errgroup.Group
	callers, streams := make([]*client, workers), make([]*stream, workers)
	for w := range workers {
		c := d.as(fmt.Sprintf("g4-%d", w))
		callers[w], streams[w] = c, c.subscribe(t, "", "")
		g.Go(func() error {
			for range rounds {
				if err := c.storm(t.Context()); err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(t, g.Wait())
	for w, events := range streams {
		told := map[string]int{}
		for _, id := range ids(t, events.quiet(t, callers[w])) {
			told[id]++
			require.Equal(t, 1, told[id], "notices of %s", id)
		}
	}
}

// storm is one round: three waits, two kills and one input race with the end.
func (c *client) storm(ctx context.Context) error {
	a, err := c.call(ctx, http.MethodPost, "/tasks", startBody(`sleep .05`))
	if err != nil || a.status != http.StatusCreated {
		return fmt.Errorf("start: %w %s", err, a)
	}
	var s snapshot
	if err := json.Unmarshal(a.body, &s); err != nil {
		return err
	}
	var mu sync.Mutex
	var ends []snapshot
	var g errgroup.Group
	one := func(method, path string, body any) {
		g.Go(func() error {
			begun := time.Now()
			a, err := c.call(ctx, method, path, body)
			if err != nil {
				return err
			}
			if took := time.Since(begun); took > patient(2*time.Second) {
				return fmt.Errorf("%s %s took %v", method, path, took)
			}
			if strings.HasSuffix(path, "/input") {
				if a.status < 400 || a.status >= 500 {
					return fmt.Errorf("input to a task without one: %s", a)
				}
				return nil
			}
			if a.status >= 300 {
				return fmt.Errorf("%s %s: %s", method, path, a)
			}
			var o struct {
				Snapshot snapshot `json:"snapshot"`
			}
			if err := json.Unmarshal(a.body, &o); err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			if o.Snapshot.terminal() {
				ends = append(ends, o.Snapshot)
			}
			return nil
		})
	}
	for range 3 {
		one(http.MethodGet, "/tasks/"+s.ID+"/output?wait=true&timeout_ms=10000", nil)
	}
	for range 2 {
		one(http.MethodDelete, "/tasks/"+s.ID, nil)
	}
	one(http.MethodPost, "/tasks/"+s.ID+"/input", map[string]any{"data": "x"})
	if err := g.Wait(); err != nil {
		return err
	}
	a, err = c.call(ctx, http.MethodGet, "/tasks/"+s.ID, nil)
	if err != nil {
		return err
	}
	var last snapshot
	if err := json.Unmarshal(a.body, &last); err != nil {
		return err
	}
	if !last.terminal() || last.FinishedAt == nil {
		return fmt.Errorf("not over: %s", a)
	}
	for _, end := range ends {
		if end.Status != last.Status || end.Detail != last.Detail || *end.FinishedAt != *last.FinishedAt {
			return fmt.Errorf("two ends of %s: %+v and %+v", s.ID, end, last)
		}
	}
	return nil
}

func TestG5ClientsThatLeave(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("g5")
	g := newGate(t)
	id := c.start(t, `echo first; `+g.wait()+`echo last; exit 6`).ID
	c.says(t, id, "first")
	base := c.get(t, id).Waiters

	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	var waiting sync.WaitGroup
	for _, path := range []string{
		"/tasks/" + id + "/output?wait=true&timeout_ms=60000",
		"/tasks/" + id + "/output?wait=true&timeout_ms=60000",
		"/tasks/" + id + "/output?wait=true&timeout_ms=60000&offset=6",
		"/events", "/events?agent=default",
	} {
		waiting.Go(func() {
			_, err := c.call(ctx, http.MethodGet, path, nil)
			assert.Error(t, err, "the client left: %s", path)
		})
	}
	eventually(t, 5*time.Second, "blocked waits", func() bool { return c.get(t, id).Waiters >= base+2 })
	leave()
	waiting.Wait()
	eventually(t, 5*time.Second, "waiters back at the base", func() bool { return c.get(t, id).Waiters == base })
	s := c.get(t, id)
	require.Equal(t, "running", s.Status)
	require.False(t, s.Reported)

	g.open(t)
	events := c.subscribe(t, "", "")
	n := events.done(t, 1)[0].notice(t)
	require.Equal(t, id, n.Task.ID)
	require.Equal(t, 6, n.Task.exitCode())
	require.Equal(t, "first\nlast\n", c.read(t, id, "").Text, "what the leavers did not get is still unread")
}

// A client that leaves during its start changes nothing about the task once it is
// published.
func TestG5StartersThatLeave(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("g5")
	g := newGate(t)
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, err := c.call(ctx, http.MethodPost, "/tasks?wait=true&timeout_ms=60000", startBody(`echo up; `+g.wait()+`echo end; exit 8`))
		left <- err
	}()
	eventually(t, 5*time.Second, "published", func() bool { return len(c.list(t, "")) == 1 })
	leave()
	require.Error(t, <-left)
	eventually(t, 20*time.Second, "the daemon knows it", func() bool { return c.get(t, "bash-1").Waiters == 0 })
	g.open(t)
	events := c.subscribe(t, "", "")
	n := events.done(t, 1)[0].notice(t)
	require.Equal(t, "exit code: 8", n.Task.Detail)
	require.Equal(t, "up\nend\n", c.read(t, "bash-1", "").Text)
}
