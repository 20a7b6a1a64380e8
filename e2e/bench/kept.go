package main

import (
	"context"
	"errors"
	"fmt"
)

// keptTasks lets 10,000 tasks end, each collected by its caller, and reads what the
// daemon keeps of them.
func keptTasks(ctx context.Context, o options, t *table) (err error) {
	n := o.pick(10_000, 1_000)
	d, err := startDaemon(ctx, o, "AFOOT_RETAIN_COUNT=20000")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	token, err := d.token("kept")
	if err != nil {
		return err
	}
	c := newWire(ctx, d.base, token, clients)
	defer c.close()
	if err := together(200, c.startAndCollect); err != nil {
		return err
	}
	before, err := d.memoryKiB(ctx)
	if err != nil {
		return err
	}
	if err := together(n, c.startAndCollect); err != nil {
		return err
	}
	after, err := d.memoryKiB(ctx)
	if err != nil {
		return err
	}
	grew := (after - before) / 1024
	t.add(row{
		name: fmt.Sprintf("memory of %d ended tasks that are kept", n), afoot: fmt.Sprintf("%.1f MiB", grew),
		seen: constant(grew), unit: "MiB", target: 8 * float64(n) / 10_000,
	})
	return nil
}
