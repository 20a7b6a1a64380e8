package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

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
	gates := newGates(t, workers*rounds)
	place := newMoment(40 * time.Millisecond)
	var truth verdicts
	var promoted, stopped atomic.Int32
	var g errgroup.Group
	for w := range workers {
		g.Go(func() error {
			for round := range rounds {
				went, err := c.promotionAgainstCut(t.Context(), gates[w*rounds+round], fmt.Sprintf("cut %d.%d", w, round), place.pick(), round%3 == 2, events, &truth)
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
func (c *client) promotionAgainstCut(ctx context.Context, g *gate, label string, delay time.Duration, orderly bool, events *stream, truth *verdicts) (promoted bool, err error) {
	w, err := c.d.dial()
	if err != nil {
		return false, err
	}
	body, err := json.Marshal(shell("printf a; "+g.wait()+"printf b", fields{"yield_ms": 60, "description": label}))
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
	// It is stopped, or has been let go of.
	var s toolTask
	var looked error
	err = c.until(ctx, id, func(snapshot) bool {
		s, looked = c.whole(ctx, id)
		return looked != nil || s.terminal() || !s.Foreground
	})
	if err := errors.Join(err, looked); err != nil {
		return false, err
	}
	if s.Foreground {
		return false, truth.put(id, verdict{status: "killed", foreground: true, text: "a", textMayBeCut: true})
	}
	if err := g.pass(); err != nil {
		return true, fmt.Errorf("%s was let go of and does not run: %w", id, err)
	}
	if err := c.until(ctx, id, func(s snapshot) bool { return s.terminal() && events.told(id) }); err != nil {
		return true, err
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
