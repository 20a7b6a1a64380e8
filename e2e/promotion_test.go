package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// verdict is what a race came to: how the task ended, how many notices it may have, and
// what it printed.
type verdict struct {
	status       string
	foreground   bool
	least, most  int
	text         string
	textMayBeCut bool // text is the whole of it, of which less may have been printed
}

// verdicts are those of all races of a test.
type verdicts struct {
	mu  sync.Mutex
	all map[string]verdict
}

func (v *verdicts) put(id string, one verdict) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, twice := v.all[id]; twice {
		return fmt.Errorf("%s twice", id)
	}
	if v.all == nil {
		v.all = make(map[string]verdict)
	}
	v.all[id] = one
	return nil
}

// agree compares every verdict with every other view of its task.
func (v *verdicts) agree(t *testing.T, c *client, events *stream) {
	t.Helper()
	notices := map[string]int{}
	for _, e := range events.quiet(t, c) {
		n := e.notice(t)
		notices[n.Task.ID]++
		require.Equal(t, v.all[n.Task.ID].status, n.Task.Status, "the notice of %s", n.Task.ID)
	}
	listed := map[string]toolTask{}
	for _, s := range c.labelled(t, "") {
		listed[s.ID] = s
	}
	for id, want := range v.all {
		s, err := c.whole(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, want.status, s.Status, "%s: %+v", id, s)
		require.Equal(t, want.foreground, s.Foreground, "%s: %+v", id, s)
		require.Equal(t, s.Status, listed[id].Status, "the list's %s", id)
		require.Equal(t, s.Foreground, listed[id].Foreground, "the list's %s", id)
		require.Equal(t, s.Reported, listed[id].Reported, "the list's %s", id)
		require.True(t, s.Reported, "%s was delivered by one way or another: %+v", id, s)
		require.GreaterOrEqual(t, notices[id], want.least, "notices of %s: %+v", id, s)
		require.LessOrEqual(t, notices[id], want.most, "notices of %s: %+v", id, s)
		log := string(c.log(t, id))
		if want.textMayBeCut {
			require.True(t, strings.HasPrefix(want.text, log), "the log of %s: %q", id, log)
		} else {
			require.Equal(t, want.text, log, "the log of %s", id)
		}
	}
}

// TestPromotionAgainstEnd lets commands end around the time at which their callers stop
// to wait for them.
func TestPromotionAgainstEnd(t *testing.T) {
	t.Parallel()
	const workers, rounds = 5, 40
	d := serve(t)
	c := d.as("promotion")
	events := c.subscribe(t, "", "")
	gates := newGates(t, workers*rounds)
	place := newMoment(50 * time.Millisecond)
	var truth verdicts
	var promoted, ended atomic.Int32
	var g errgroup.Group
	for w := range workers {
		g.Go(func() error {
			for round := range rounds {
				was, err := c.promotionAgainstEnd(t.Context(), gates[w*rounds+round], place.pick(), round%2 == 0, events, &truth)
				if err != nil {
					return err
				}
				place.saw(!was)
				if was {
					promoted.Add(1)
				} else {
					ended.Add(1)
				}
			}
			return nil
		})
	}
	require.NoError(t, g.Wait())
	t.Logf("promoted %d, ended %d", promoted.Load(), ended.Load())
	require.Len(t, truth.all, workers*rounds)
	truth.agree(t, c, events)
}

// promotionAgainstEnd runs one such command, whose gate is opened after delay.
func (c *client) promotionAgainstEnd(ctx context.Context, g *gate, delay time.Duration, collect bool, events *stream, truth *verdicts) (promoted bool, err error) {
	opened := make(chan error, 1)
	go func() {
		<-time.After(delay) // the place of the end, not a wait for a fact
		opened <- g.pass()
	}()
	r, err := c.tryTool(ctx, "bash", shell("printf a; "+g.wait()+"printf b; exit 3", fields{"yield_ms": 50}))
	if err := <-opened; err != nil {
		return false, err
	}
	if err != nil {
		return false, err
	}
	if r.IsError {
		return false, fmt.Errorf("%s", r.text())
	}
	id := r.Value.id()
	if r.Value.Kind == "foreground" {
		if r.text() != "ab\n[exit code: 3]" || !r.Value.EOF || r.Value.Task.exitCode() != 3 || r.Value.NextOffset != 2 {
			return false, fmt.Errorf("%s: %q %+v", id, r.text(), r.Value)
		}
		return false, truth.put(id, verdict{status: "completed", foreground: true, text: "ab"})
	}
	so := r.Value.Text
	if so == "" {
		so = "(no output)"
	}
	if want := so + "\n[still running as background task " + id + "]"; r.text() != want || r.Value.Kind != "background" {
		return false, fmt.Errorf("%s: %q %+v", id, r.text(), r.Value)
	}
	least := 0
	if !collect { // it is told, and then read
		least = 1
		if err := c.until(ctx, id, func(s snapshot) bool { return s.terminal() && events.told(id) }); err != nil {
			return true, err
		}
	}
	rest, err := c.tryTool(ctx, "task_output", fields{"task_id": id, "wait": true, "timeout_ms": 30000})
	if err != nil {
		return true, err
	}
	if rest.Value.Offset != r.Value.NextOffset || r.Value.Text+rest.Value.Text != "ab" || !rest.Value.EOF {
		return true, fmt.Errorf("%s: %q and then %q, %+v", id, r.Value.Text, rest.Value.Text, rest.Value)
	}
	return true, truth.put(id, verdict{status: "completed", least: least, most: 1, text: "ab"})
}

// TestPromotionAgainstCut has clients vanish around the time at which their command is
// let go of: it is stopped, or it goes on and its owner is told.
func TestPromotionAgainstCut(t *testing.T) {
	t.Parallel()
	const workers, rounds = 5, 20
	d := serve(t)
	c := d.as("cut")
	events := c.subscribe(t, "", "")
	place := newMoment(40 * time.Millisecond)
	var truth verdicts
	var promoted, stopped atomic.Int32
	var g errgroup.Group
	for w := range workers {
		g.Go(func() error {
			for round := range rounds {
				went, err := c.promotionAgainstCut(t.Context(), fmt.Sprintf("cut %d.%d", w, round), place.pick(), round%3 == 2, events, &truth)
				if err != nil {
					return err
				}
				place.saw(!went)
				if went {
					promoted.Add(1)
				} else {
					stopped.Add(1)
				}
			}
			return nil
		})
	}
	require.NoError(t, g.Wait())
	t.Logf("promoted %d, stopped %d", promoted.Load(), stopped.Load())
	truth.agree(t, c, events)
}

// promotionAgainstCut cuts the connection of one call, delay after its command has
// begun.
func (c *client) promotionAgainstCut(ctx context.Context, label string, delay time.Duration, orderly bool, events *stream, truth *verdicts) (promoted bool, err error) {
	w, err := c.d.dial()
	if err != nil {
		return false, err
	}
	body, err := json.Marshal(shell("printf a; sleep 0.4; printf b", fields{"yield_ms": 60, "description": label}))
	if err != nil {
		return false, err
	}
	if err := w.post(c, "/tools/bash", string(body)); err != nil {
		return false, err
	}
	var id string
	if err := c.appears(ctx, label, &id); err != nil {
		return false, err
	}
	<-time.After(delay) // the place of the cut, not a wait for a fact
	if orderly {
		err = w.conn.Close()
	} else {
		err = w.cut()
	}
	if err != nil {
		return false, err
	}
	if err := c.until(ctx, id, func(s snapshot) bool { return s.terminal() && (s.Reported || events.told(id)) }); err != nil {
		return false, err
	}
	s, err := c.whole(ctx, id)
	if err != nil {
		return false, err
	}
	if s.Foreground {
		return false, truth.put(id, verdict{status: s.Status, foreground: true, text: "ab", textMayBeCut: true})
	}
	// What the answer carried was taken by it, or is unread; what came later is unread.
	rest, err := c.tryTool(ctx, "task_output", fields{"task_id": id})
	if err != nil {
		return true, err
	}
	if rest.text() != "ab\n[status: completed, exit code: 0]" && rest.text() != "b\n[status: completed, exit code: 0]" {
		return true, fmt.Errorf("%s was promoted: %q", id, rest.text())
	}
	return true, truth.put(id, verdict{status: "completed", least: 1, most: 1, text: "ab"})
}

// post sends a POST with the client's token and leaves the answer to be read.
func (w *wire) post(c *client, path, body string, headers ...string) error {
	_, err := io.WriteString(w.conn, bare(append([]string{
		"POST " + path + " HTTP/1.1", "Host: " + c.d.addr, c.bearer(),
		"Content-Type: application/json", fmt.Sprintf("Content-Length: %d", len(body)),
	}, headers...)...)+body)
	return err
}

// appears waits for a task by its label, and gives its id.
func (c *client) appears(ctx context.Context, label string, id *string) error {
	deadline := time.Now().Add(20 * time.Second)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for time.Now().Before(deadline) {
		a, err := c.call(ctx, http.MethodGet, "/tasks?limit=1000", nil)
		if err != nil {
			return err
		}
		var page struct {
			Tasks []snapshot `json:"tasks"`
		}
		if err := json.Unmarshal(a.body, &page); err != nil {
			return fmt.Errorf("%w: %s", err, a)
		}
		for _, s := range page.Tasks {
			if s.Label == label {
				*id = s.ID
				return nil
			}
		}
		<-tick.C
	}
	return fmt.Errorf("no task %q", label)
}

// TestKillAgainstCollect ends tasks, stops them and waits for them, all at once.
func TestKillAgainstCollect(t *testing.T) {
	t.Parallel()
	const workers, rounds = 4, 25
	d := serve(t)
	c := d.as("collect")
	events := c.subscribe(t, "", "")
	gates := newGates(t, workers*rounds)
	place := newMoment(2 * time.Millisecond)
	var truth verdicts
	var requested, finished atomic.Int32
	var g errgroup.Group
	for w := range workers {
		g.Go(func() error {
			for round := range rounds {
				outcome, err := c.killAgainstCollect(t.Context(), gates[w*rounds+round], place.pick(), &truth)
				if err != nil {
					return err
				}
				place.saw(outcome == "requested")
				if outcome == "requested" {
					requested.Add(1)
				} else {
					finished.Add(1)
				}
			}
			return nil
		})
	}
	require.NoError(t, g.Wait())
	t.Logf("stopped %d, finished before %d", requested.Load(), finished.Load())
	truth.agree(t, c, events)
}

// killAgainstCollect lets one task end and kills it delay later, while somebody waits.
func (c *client) killAgainstCollect(ctx context.Context, g *gate, delay time.Duration, truth *verdicts) (outcome string, err error) {
	r, err := c.tryTool(ctx, "bash", shell("printf a; "+g.wait()+"printf b; exit 3", fields{"run_in_background": true}))
	if err != nil {
		return "", err
	}
	id := r.Value.TaskID
	var got toolResult
	var collector errgroup.Group
	collector.Go(func() (err error) {
		got, err = c.tryTool(ctx, "task_output", fields{"task_id": id, "wait": true, "timeout_ms": 30000})
		return err
	})
	if err := c.until(ctx, id, func(s snapshot) bool { return s.Waiters == 1 }); err != nil {
		return "", err
	}
	if err := g.pass(); err != nil {
		return "", err
	}
	<-time.After(delay) // the place of the kill, not a wait for a fact
	k, err := c.tryTool(ctx, "task_kill", fields{"task_id": id})
	if err != nil {
		return "", err
	}
	if err := collector.Wait(); err != nil {
		return "", err
	}
	want := verdict{status: "completed", text: "ab"}
	words := "task " + id + " had already finished [status: completed, exit code: 3]"
	if k.Value.Outcome == "requested" {
		want = verdict{status: "killed", text: "ab", textMayBeCut: true}
		words = "requested cancellation of task " + id
	}
	if k.text() != words {
		return "", fmt.Errorf("%s: %q", id, k.text())
	}
	if got.IsError || !got.Value.EOF || got.Value.Task.Status != want.status || !strings.HasPrefix(want.text, got.Value.Text) {
		return "", fmt.Errorf("%s: %s, and the waiter got %q", id, k.text(), got.text())
	}
	after, err := c.tryTool(ctx, "task_output", fields{"task_id": id})
	if err != nil {
		return "", err
	}
	if after.Value.Text != "" || after.Value.Offset != got.Value.NextOffset || after.Value.Task.Status != want.status {
		return "", fmt.Errorf("%s: %q after %q", id, after.text(), got.text())
	}
	return k.Value.Outcome, truth.put(id, want)
}
