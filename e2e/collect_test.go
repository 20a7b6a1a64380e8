package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

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
