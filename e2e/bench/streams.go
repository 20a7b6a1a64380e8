package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// rest is how long memory gets to come down before it is read.
const rest = 3 * time.Second

// idleStreams opens one event stream for each of 10,000 sessions and reads what
// that adds to the daemon's memory; then, among them, what it takes from a child's
// end to its notice.
func idleStreams(ctx context.Context, o options, t *table) (err error) {
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
	session := func(i int) (string, error) { return d.token("idle-" + strconv.Itoa(i)) }
	path := func(int) string { return "/events" }
	floor, h, err := growth(ctx, f, n, true, path, session, nil)
	if err != nil {
		return err
	}
	h.close()
	token, err := d.token("awake")
	if err != nil {
		return err
	}
	l, err := listen(ctx, d, token)
	if err != nil {
		return err
	}
	defer l.close()
	if err := repeat(10, func() error { _, err := l.endToNotice(); return err }); err != nil {
		return err
	}
	afoot, h, err := growth(ctx, d, n, true, path, session, nil)
	if err != nil {
		return err
	}
	defer h.close()
	t.add(row{
		name: fmt.Sprintf("memory per idle stream, of %d", n), floor: kib(floor), afoot: kib(afoot),
		seen: constant(afoot), unit: "KiB", target: 40,
	})
	var took []float64
	if err := repeat(o.pick(200, 30), func() error {
		ns, err := l.endToNotice()
		took = append(took, ns/1e6)
		return err
	}); err != nil {
		return err
	}
	seen := spreadOf(took)
	t.add(row{
		name: fmt.Sprintf("exit to notice among %d streams, p50", n), afoot: ms(seen.median * 1e6),
		seen: seen, unit: "ms", target: 5,
	})
	slow := quantile(took, 0.99)
	t.add(row{
		name: fmt.Sprintf("exit to notice among %d streams, p99", n), afoot: ms(slow * 1e6),
		seen: constant(slow), unit: "ms", target: 5,
	})
	return nil
}

// growth holds n requests open and gives the memory that each adds to the server;
// settled, when given, waits until the server has all of them.
func growth(ctx context.Context, s *server, n int, answered bool, path func(int) string, token func(int) (string, error), settled func() error) (float64, *held, error) {
	// A first few make the pools and tables that later ones share.
	warm, err := hold(ctx, s.base, 50, answered, path, token)
	if err != nil {
		return 0, nil, err
	}
	warm.close()
	before, err := s.memoryKiB(ctx)
	if err != nil {
		return 0, nil, err
	}
	h, err := hold(ctx, s.base, n, answered, path, token)
	if err != nil {
		return 0, nil, err
	}
	if settled != nil {
		if err := settled(); err != nil {
			h.close()
			return 0, nil, err
		}
	}
	after, err := s.memoryKiB(ctx)
	if err != nil {
		h.close()
		return 0, nil, err
	}
	return (after - before) / float64(n), h, nil
}

func repeat(n int, work func() error) error {
	for range n {
		if err := work(); err != nil {
			return err
		}
	}
	return nil
}

func kib(v float64) string { return fmt.Sprintf("%.1f KiB", v) }
