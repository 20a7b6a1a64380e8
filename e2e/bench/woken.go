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
	floor := func() (float64, error) {
		out, err := plainBash(bash, stampLate)
		now := time.Now()
		if err != nil {
			return 0, err
		}
		return since(out, now)
	}
	afoot := func() (float64, error) {
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
	var seen pairs
	size := o.pick(20, 10)
	for i := range o.pick(50, 8) + 1 {
		var block pairs
		block.floor, block.afoot = make([][]float64, 1), make([][]float64, 1)
		for range size {
			took, err := floor()
			if err != nil {
				return err
			}
			block.floor[0] = append(block.floor[0], took)
		}
		for range size {
			took, err := afoot()
			if err != nil {
				return err
			}
			block.afoot[0] = append(block.afoot[0], took)
		}
		if i > 0 { // the first block only warms up
			seen.floor, seen.afoot = append(seen.floor, block.floor...), append(seen.afoot, block.afoot...)
		}
	}
	t.add(row{
		name: "exit to a waiter's answer, p50 beyond os/exec Wait", floor: ms(all(seen.floor, 0.5)), afoot: ms(all(seen.afoot, 0.5)),
		seen: seen.gap(0.5).times(1e-6), unit: "ms", target: 0.3,
	})
	t.add(row{
		name: "exit to a waiter's answer, p99 beyond os/exec Wait", floor: ms(all(seen.floor, 0.99)), afoot: ms(all(seen.afoot, 0.99)),
		seen: seen.grouped().gap(0.99).times(1e-6), unit: "ms", target: 3,
	})
	return nil
}
