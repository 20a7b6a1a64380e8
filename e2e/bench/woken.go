package main

import (
	"context"
	"errors"
	"net/http"
	"os/exec"
	"time"
)

// exitToAnswer measures how long after its end a child's end is known to a caller
// who waits for it; the clock is that of exitToNotice. The child rests before its end, as
// work that is waited for mostly does, so that everybody has to be woken; what the rest
// costs is told apart.
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
	f, err := startFloor()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	afoot, bare := newWire(ctx, d.base, token, 1), newWire(ctx, f.base, "none", 1)
	defer afoot.close()
	defer bare.close()
	seen, err := beyond(o, plainEnd(bash, stampLate), afoot.answerTo(stampLate))
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
	for _, more := range []struct {
		name, command string
		server        *wire
	}{
		{"(a bare server instead, p50)", stampLate, bare},
		{"(without a rest before the exit, p50)", stamp, afoot},
		{"(without a rest, a bare server instead, p50)", stamp, bare},
	} {
		seen, err := beyond(o, plainEnd(bash, more.command), more.server.answerTo(more.command))
		if err != nil {
			return err
		}
		t.told(more.name, ms(all(seen.floor, 0.5)), ms(all(seen.afoot, 0.5)), seen.gap(0.5).times(1e-6), "ms")
	}
	return nil
}

// answerTo starts a task, waits for its end in a second call, and gives how long before
// the answer the child wrote its stamp, in nanoseconds.
func (c *wire) answerTo(command string) func() (float64, error) {
	body := start(command)
	return func() (float64, error) {
		var started task
		if err := c.call(http.MethodPost, "/tasks", body, &started); err != nil {
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
}
