package main

import (
	"context"
	"errors"
	"net/http"
	"os/exec"
	"time"
)

// stampLate gives its waiter time to block before it takes the stamp.
const stampLate = "sleep .02; echo $EPOCHREALTIME"

var startStampLate = []byte(`{"kind":"bash","command":"` + stampLate + `"}`)

// exitToAnswer measures how long after its end a child's end is known to a caller
// who waits for it; the clock is that of exitToNotice.
func exitToAnswer(ctx context.Context, o options, t *table) (err error) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		return err
	}
	d, err := startDaemon(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	token, err := d.token("woken")
	if err != nil {
		return err
	}
	c := newWire(ctx, d.base, token, 1)
	defer c.close()
	floor := plainEnd(bash, stampLate)
	seen, err := beyond(o, floor, c.exitToAnswer)
	if err != nil {
		return err
	}
	t.add(row{
		name: "exit to a waiter's answer, p50 beyond os/exec Wait", floor: ms(all(seen.floor, 0.5)), afoot: ms(all(seen.afoot, 0.5)),
		seen: seen.gap(0.5).times(1e-6), unit: "ms", target: 0.3,
	})
	t.add(row{
		name: "exit to a waiter's answer, p99 beyond os/exec Wait", floor: ms(all(seen.floor, 0.99)), afoot: ms(all(seen.afoot, 0.99)),
		seen: seen.grouped().gap(0.99).times(1e-6), unit: "ms", target: 3,
	})
	return bareAnswer(ctx, o, t, floor)
}

// bareAnswer tells what any server must take.
func bareAnswer(ctx context.Context, o options, t *table, floor func() (float64, error)) (err error) {
	f, err := startFloor()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	c := newWire(ctx, f.base, "none", 1)
	defer c.close()
	seen, err := beyond(o, floor, c.exitToAnswer)
	if err != nil {
		return err
	}
	t.told("(a bare server instead, p50)", ms(all(seen.floor, 0.5)), ms(all(seen.afoot, 0.5)), seen.gap(0.5).times(1e-6), "ms")
	return nil
}

// exitToAnswer starts a task, waits for its end in a second call, and gives how long before
// the answer the child wrote its stamp, in nanoseconds.
func (c *wire) exitToAnswer() (float64, error) {
	var started task
	if err := c.call(http.MethodPost, "/tasks", startStampLate, &started); err != nil {
		return 0, err
	}
	var r read
	err := c.call(http.MethodGet, "/tasks/"+started.ID+"/output?wait=true", nil, &r)
	now := time.Now()
	if err := errors.Join(err, r.ended()); err != nil {
		return 0, err
	}
	return since(r.Text, now)
}
