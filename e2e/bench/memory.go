package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sync/errgroup"

	"afoot/producers/bash"
	"afoot/producers/output"
)

// endedMemory runs real commands through the daemon's rooms, each collected by its
// caller, and gives the live memory that each leaves behind.
func endedMemory(ctx context.Context, o options, t *table) (err error) {
	n := o.pick(100_000, 4_000)
	dir, err := os.MkdirTemp("", "afoot-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	store, err := output.NewStore(output.Config{Dir: filepath.Join(dir, "output")})
	if err != nil {
		return err
	}
	sink, err := output.NewSink()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sink.Close()) }()
	producer, err := bash.New(bash.Config{Workdir: dir, Env: os.Environ(), Store: store, Sink: sink})
	if err != nil {
		return err
	}
	r, err := openRooms("bash", producer)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	token, err := r.token("memory")
	if err != nil {
		return err
	}
	if err := r.collect(ctx, token, 200); err != nil {
		return err
	}
	before, goroutines := live(), runtime.NumGoroutine()
	if err := r.collect(ctx, token, n); err != nil {
		return err
	}
	each := (live() - before) / float64(n) / 1024
	t.add(row{
		name: fmt.Sprintf("memory per ended bash task, of %d", n), afoot: kib(each),
		seen: constant(each), unit: "KiB", target: 1,
	})
	left := float64(runtime.NumGoroutine() - goroutines)
	t.told("goroutines left by them", "", fmt.Sprintf("%.0f", left), constant(left), "")
	return nil
}

// collect runs n commands to their end, as many at once as there are clients.
func (r *rooms) collect(ctx context.Context, token string, n int) error {
	group, ctx := errgroup.WithContext(ctx)
	for i := range clients {
		group.Go(func() error {
			for range n/clients + min(1, max(0, n%clients-i)) {
				data, err := r.call(token, "POST", "/tasks?wait=true", startTrue)
				if err != nil {
					return err
				}
				var answer read
				if err := json.Unmarshal(data, &answer); err != nil {
					return err
				}
				if err := errors.Join(answer.ended(), ctx.Err()); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}
