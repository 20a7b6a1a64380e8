package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
)

var startIdle = []byte(`{"kind":"bash","command":"sleep 1747"}`)

// idleTasks holds 1,000 tasks that do nothing, and reads what each adds to the
// daemon's memory and how many processes there are for it.
func idleTasks(ctx context.Context, o options, t *table) (err error) {
	n := o.pick(1_000, 200)
	d, err := startDaemon(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	token, err := d.token("idle")
	if err != nil {
		return err
	}
	c := newWire(ctx, d.base, token, 1)
	defer c.close()
	if err := repeat(50, c.startAndCollect); err != nil {
		return err
	}
	before, err := d.memoryKiB(ctx)
	if err != nil {
		return err
	}
	already, threads, err := d.descendants() // the watchdog, one for all
	if err != nil {
		return err
	}
	if err := repeat(n, func() error {
		var started task
		return c.call(http.MethodPost, "/tasks", startIdle, &started)
	}); err != nil {
		return err
	}
	after, err := d.memoryKiB(ctx)
	if err != nil {
		return err
	}
	processes, threadsNow, err := d.descendants()
	if err != nil {
		return err
	}
	processes -= already
	each := (after - before) / float64(n)
	t.add(row{
		name: fmt.Sprintf("memory per running idle task, of %d", n), afoot: kib(each),
		seen: constant(each), unit: "KiB", target: 16,
	})
	t.add(row{
		name: "processes per idle task", floor: strconv.Itoa(n), afoot: strconv.Itoa(processes),
		seen: constant(float64(processes) / float64(n)), unit: "×", target: 1,
	})
	t.told("threads of the daemon that they add", "", strconv.Itoa(threadsNow-threads), constant(float64(threadsNow-threads)), "")
	return nil
}
