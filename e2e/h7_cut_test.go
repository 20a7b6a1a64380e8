package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// cutting is a blocked wait on a task at a gate, whose connection is cut some time
// after the gate was opened.
type cutting struct {
	c    *client
	id   string
	gate *gate
	wire *wire
}

func (c *client) blockedWait(ctx context.Context, g *gate, headers ...string) (*cutting, error) {
	a, err := c.call(ctx, http.MethodPost, "/tasks", startBody(`echo output; `+g.wait()+`exit 3`))
	if err != nil || a.status != http.StatusCreated {
		return nil, fmt.Errorf("start: %w %s", err, a)
	}
	var s snapshot
	if err := json.Unmarshal(a.body, &s); err != nil {
		return nil, err
	}
	w, err := c.d.dial()
	if err != nil {
		return nil, err
	}
	if err := w.ask(c, "/tasks/"+s.ID+"/output?wait=true&timeout_ms=60000", headers...); err != nil {
		return nil, err
	}
	err = c.until(ctx, s.ID, func(s snapshot) bool { return s.Waiters == 1 })
	return &cutting{c: c, id: s.ID, gate: g, wire: w}, err
}

// until polls the task's state, from any goroutine.
func (c *client) until(ctx context.Context, id string, fact func(snapshot) bool) error {
	deadline := time.Now().Add(20 * time.Second)
	tick := time.NewTicker(3 * time.Millisecond)
	defer tick.Stop()
	for {
		a, err := c.call(ctx, http.MethodGet, "/tasks/"+id, nil)
		if err != nil {
			return err
		}
		var s snapshot
		if err := json.Unmarshal(a.body, &s); err != nil {
			return fmt.Errorf("%w: %s", err, a)
		}
		if fact(s) {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not in time: %s", a)
		}
		<-tick.C
	}
}

// endToAnswer measures how long it takes from the gate to the answer's first byte.
// Each of these answers was written and read, so each must make its task reported.
func endToAnswer(t *testing.T, c *client) time.Duration {
	t.Helper()
	const rounds = 8
	var sum time.Duration
	for range rounds {
		x, err := c.blockedWait(t.Context(), newGate(t))
		require.NoError(t, err)
		require.NoError(t, x.gate.pass())
		begun := time.Now()
		_, err = x.wire.r.ReadByte()
		require.NoError(t, err)
		sum += time.Since(begun)
		require.NoError(t, c.until(t.Context(), x.id, func(s snapshot) bool { return s.Reported }))
		require.NoError(t, x.wire.cut())
	}
	return sum / rounds
}

// moment is where the write is believed to be, counted from the gate. It moves with
// the machine: each cut tells on which side of the write it came.
type moment struct{ at atomic.Int64 }

func newMoment(at time.Duration) *moment {
	m := &moment{}
	m.at.Store(int64(at))
	return m
}

// pick gives a place around the moment.
func (m *moment) pick() time.Duration { return time.Duration(rand.Int64N(2 * m.at.Load())) }

// saw moves the moment: later when the cut came first, earlier when the write did.
func (m *moment) saw(cutFirst bool) {
	at := m.at.Load()
	if cutFirst {
		at += at / 4
	} else {
		at -= at / 5
	}
	m.at.Store(min(max(at, int64(50*time.Microsecond)), int64(time.Second)))
}

// told says whether a notice of the task has come.
func (s *stream) told(id string) bool {
	for _, e := range s.all("task.done") {
		var n notice
		if json.Unmarshal([]byte(e.data), &n) == nil && n.Task.ID == id {
			return true
		}
	}
	return false
}

func TestH7CutInTheMoment(t *testing.T) {
	t.Parallel()
	const workers, rounds = 4, 50
	d := serve(t)
	c := d.as("h7")
	place := newMoment(endToAnswer(t, d.as("h7-measure")))
	events := c.subscribe(t, "", "")
	gates := newGates(t, workers*rounds)
	var written, noticed atomic.Int32
	var g errgroup.Group
	for w := range workers {
		g.Go(func() error {
			for round := range rounds {
				x, err := c.blockedWait(t.Context(), gates[w*rounds+round])
				if err != nil {
					return err
				}
				delay := place.pick()
				if err := x.gate.pass(); err != nil {
					return err
				}
				<-time.After(delay) // the place of the cut, not a wait for a fact
				if round%5 == 4 {
					err = x.wire.conn.Close() // an orderly goodbye
				} else {
					err = x.wire.cut()
				}
				if err != nil {
					return err
				}
				var reported, told bool
				err = c.until(t.Context(), x.id, func(s snapshot) bool {
					reported, told = s.Reported, events.told(x.id)
					return s.terminal() && (reported || told)
				})
				if err != nil {
					return fmt.Errorf("%s is neither reported nor announced: %w", x.id, err)
				}
				place.saw(told)
				if told {
					noticed.Add(1)
				} else {
					written.Add(1)
				}
				if reported && !told {
					continue
				}
				// What the cut answer carried is still there.
				a, err := c.call(t.Context(), http.MethodGet, "/tasks/"+x.id+"/output", nil)
				if err != nil {
					return err
				}
				var o output
				if err := json.Unmarshal(a.body, &o); err != nil {
					return err
				}
				if o.Text != "output\n" || !o.EOF {
					return fmt.Errorf("the output of a lost answer is gone: %s", a)
				}
			}
			return nil
		})
	}
	require.NoError(t, g.Wait())
	t.Logf("written %d, announced %d", written.Load(), noticed.Load())
	seen := map[string]bool{}
	for _, id := range ids(t, events.quiet(t, c)) {
		require.False(t, seen[id], "%s was announced twice", id)
		seen[id] = true
	}
}

func TestH7CutWithExplicitAck(t *testing.T) {
	t.Parallel()
	const workers, rounds = 4, 50
	d := serve(t)
	c := d.as("h7")
	place := newMoment(endToAnswer(t, d.as("h7-measure")))
	events := c.subscribe(t, "", "")
	started := make([][]string, workers)
	gates := newGates(t, workers*rounds)
	var g errgroup.Group
	for w := range workers {
		g.Go(func() error {
			for round := range rounds {
				x, err := c.blockedWait(t.Context(), gates[w*rounds+round], "Afoot-Ack: explicit")
				if err != nil {
					return err
				}
				started[w] = append(started[w], x.id)
				delay := place.pick()
				if err := x.gate.pass(); err != nil {
					return err
				}
				<-time.After(delay) // the place of the cut, not a wait for a fact
				if err := x.wire.cut(); err != nil {
					return err
				}
				if err := c.until(t.Context(), x.id, snapshot.terminal); err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(t, g.Wait())
	events.await(t, 40*time.Second, workers*rounds, "task.done")
	told := map[string]int{}
	for _, id := range ids(t, events.quiet(t, c)) {
		told[id]++
	}
	for _, list := range started {
		for _, id := range list {
			require.Equal(t, 1, told[id], "notices of %s", id)
			require.False(t, c.get(t, id).Reported)
		}
	}
}
