package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// blockedWaits blocks 10,000 consuming reads on ten tasks that do not end, and
// reads what that adds to the daemon's memory.
func blockedWaits(ctx context.Context, o options, t *table) (err error) {
	n := o.pick(10_000, 2_000)
	f, err := startFloor()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	d, err := startDaemon(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	token, err := d.token("waits")
	if err != nil {
		return err
	}
	c := newWire(ctx, d.base, token, 1)
	defer c.close()
	var tasks []task
	if err := repeat(10, func() error {
		var started task
		err := c.call(http.MethodPost, "/tasks", []byte(`{"kind":"bash","command":"sleep 1741"}`), &started)
		tasks = append(tasks, started)
		return err
	}); err != nil {
		return err
	}
	bearer := func(int) (string, error) { return token, nil }
	floor, h, err := growth(ctx, f, n, false, func(int) string { return "/blocked" }, bearer, nil)
	if err != nil {
		return err
	}
	h.close()
	path := func(i int) string {
		return "/tasks/" + tasks[i%len(tasks)].ID + "/output?wait=true&timeout_ms=600000"
	}
	afoot, h, err := growth(ctx, d, n, false, path, bearer, func() error { return waiting(ctx, c, tasks, n) })
	if err != nil {
		return err
	}
	h.close()
	t.add(row{
		name: fmt.Sprintf("memory per blocked wait, of %d", n), floor: kib(floor), afoot: kib(afoot),
		seen: constant(afoot), unit: "KiB", target: 32,
	})
	return nil
}

// waiting returns once the daemon counts n waits on the tasks.
func waiting(ctx context.Context, c *wire, tasks []task, n int) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); ; {
		sum := 0
		for _, t := range tasks {
			var d struct{ Waiters int }
			if err := c.call(http.MethodGet, "/tasks/"+t.ID, nil, &d); err != nil {
				return err
			}
			sum += d.Waiters
		}
		if sum >= n {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("only %d of %d waits are blocked", sum, n)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
