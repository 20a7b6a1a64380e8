package main

import (
	"context"
	"errors"
	"math"
)

// journalCost compares a daemon that keeps a journal with one that keeps nothing: the
// same round trip, in turns. What it costs to wait for the disk is told as well.
func journalCost(ctx context.Context, o options, t *table) error {
	one := func(name string, target float64, env ...string) (err error) {
		memory, err := startDaemon(ctx, o, "AFOOT_STATE_DIR=memory:")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, memory.close()) }()
		kept, err := startDaemon(ctx, o, env...)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, kept.close()) }()
		floor, err := memory.wire(ctx, "journal")
		if err != nil {
			return err
		}
		defer floor.close()
		afoot, err := kept.wire(ctx, "journal")
		if err != nil {
			return err
		}
		defer afoot.close()
		calls, err := inTurns(o.pick(60, 10), o.pick(40, 20), floor.startAndCollect, afoot.startAndCollect)
		if err != nil {
			return err
		}
		t.add(row{
			name: name + ", p50 to memory", floor: ms(all(calls.floor, 0.5)), afoot: ms(all(calls.afoot, 0.5)),
			seen: calls.ratio(0.5), unit: "×", target: target,
		})
		r, err := throughput(o, floor.startAndCollect, afoot.startAndCollect)
		if err != nil {
			return err
		}
		t.told("("+name+", 16 clients)", r.floor, r.afoot, r.seen, "×")
		return nil
	}
	return errors.Join(
		one("start and collect with a journal", 1.15),
		one("start and collect with AFOOT_SYNC=full", math.NaN(), "AFOOT_SYNC=full"),
	)
}

// wire makes calls for a session.
func (s *server) wire(ctx context.Context, session string) (*wire, error) {
	token, err := s.token(session)
	if err != nil {
		return nil, err
	}
	return newWire(ctx, s.base, token, clients), nil
}
