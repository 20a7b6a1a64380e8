package main

import (
	"context"
	"errors"
	"os/exec"
)

const clients = 16

// collect compares one round trip that starts `true` and collects its end with the
// same `bash -c true` by os/exec.
func collect(ctx context.Context, o options, t *table) (err error) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		return err
	}
	d, err := startDaemon(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	token, err := d.token("collect")
	if err != nil {
		return err
	}
	c := newWire(ctx, d.base, token, clients)
	defer c.close()
	floor := func() error {
		if _, err := plainBash(bash, "true"); err != nil {
			return err
		}
		return ctx.Err()
	}
	if err := compare(o, t, "start and collect", "os/exec", floor, c.startAndCollect); err != nil {
		return err
	}
	return bareCollect(ctx, o, t, floor)
}

// bareCollect tells what any server must cost: the same call to a bare one.
func bareCollect(ctx context.Context, o options, t *table, floor func() error) (err error) {
	f, err := startFloor()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	c := newWire(ctx, f.base, "none", clients)
	defer c.close()
	seen, err := inTurns(o.pick(40, 10), o.pick(50, 20), floor, c.startAndCollect)
	if err != nil {
		return err
	}
	t.told("(a bare server instead, p50)", ms(all(seen.floor, 0.5)), ms(all(seen.afoot, 0.5)), seen.ratio(0.5), "×")
	r, err := throughput(o, floor, c.startAndCollect)
	if err != nil {
		return err
	}
	t.told("(a bare server instead, 16 clients)", r.floor, r.afoot, r.seen, "×")
	return nil
}

// twoCalls compares start and wait with a bare server of the same two calls.
func twoCalls(ctx context.Context, o options, t *table) (err error) {
	d, err := startDaemon(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	f, err := startFloor()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	token, err := d.token("two")
	if err != nil {
		return err
	}
	afoot, floor := newWire(ctx, d.base, token, clients), newWire(ctx, f.base, token, clients)
	defer afoot.close()
	defer floor.close()
	return compare(o, t, "start, then wait", "bare server", floor.startThenWait, afoot.startThenWait)
}

// compare adds the three rows that both cases promise: typical and slow calls one
// after another, and the throughput of many clients.
func compare(o options, t *table, name, against string, floor, afoot func() error) error {
	one, err := inTurns(o.pick(60, 10), o.pick(40, 20), floor, afoot)
	if err != nil {
		return err
	}
	t.add(row{
		name: name + ", p50 to " + against, floor: ms(all(one.floor, 0.5)), afoot: ms(all(one.afoot, 0.5)),
		seen: one.ratio(0.5), unit: "×", target: 1.15,
	})
	t.add(row{
		name: name + ", p99 to " + against, floor: ms(all(one.floor, 0.99)), afoot: ms(all(one.afoot, 0.99)),
		seen: one.tail(0.99), unit: "×", target: 1.4,
	})
	r, err := throughput(o, floor, afoot)
	if err != nil {
		return err
	}
	r.name, r.target, r.atLeast = name+", 16 clients to "+against, 0.90, true
	t.add(r)
	return nil
}

// throughput measures floor and daemon under many clients.
func throughput(o options, floor, afoot func() error) (row, error) {
	many, err := inTurns(o.pick(14, 4), 1, crowd(o, floor), crowd(o, afoot))
	if err != nil {
		return row{}, err
	}
	slower := many.ratio(0.5)
	size := float64(crowdSize(o))
	return row{
		floor: perSecond(size, many.floor), afoot: perSecond(size, many.afoot),
		seen: spread{1 / slower.median, 1 / slower.high, 1 / slower.low}, unit: "×",
	}, nil
}
