package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// flood lets ten tasks write at full speed for some seconds and watches the daemon's
// memory all along.
func flood(ctx context.Context, o options, t *table) (err error) {
	const writers = 10
	d, err := startDaemon(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	token, err := d.token("flood")
	if err != nil {
		return err
	}
	c := newWire(ctx, d.base, token, 1)
	defer c.close()
	var tasks []task
	if err := repeat(writers, func() error {
		var started task
		err := c.call(http.MethodPost, "/tasks", []byte(`{"kind":"bash","command":"yes"}`), &started)
		tasks = append(tasks, started)
		return err
	}); err != nil {
		return err
	}
	var used []float64 // MiB
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Duration(o.pick(12, 4)) * time.Second); time.Now().Before(end); {
		pss, err := pssKiB(d.cmd.Process.Pid)
		if err != nil {
			return err
		}
		used = append(used, pss/1024)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	written := 0.0
	for _, task := range tasks {
		var s struct {
			Status      string
			OutputBytes float64
		}
		if err := c.call(http.MethodGet, "/tasks/"+task.ID, nil, &s); err != nil {
			return err
		}
		if s.Status != "running" || s.OutputBytes == 0 {
			return fmt.Errorf("%s does not write: %+v", task.ID, s)
		}
		written += s.OutputBytes
	}
	quarter := len(used) / 4
	early, late := spreadOf(used[quarter:2*quarter]), spreadOf(used[len(used)-quarter:])
	most := quantile(used, 1)
	mid := spreadOf(used)
	t.add(row{
		name:  fmt.Sprintf("memory while %d tasks wrote %.1f GiB, most", writers, written/(1024*mib)),
		afoot: fmt.Sprintf("%.1f MiB", most), seen: spread{most, mid.low, mid.high}, unit: "MiB", target: 64,
	})
	grew := late.median - early.median
	t.add(row{
		name: "its growth from the second quarter to the last", afoot: fmt.Sprintf("%.1f MiB", grew),
		seen: constant(grew), unit: "MiB", target: 4,
	})
	return nil
}
