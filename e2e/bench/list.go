package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strconv"

	"afoot/registry"
)

// listing compares the list of a session with ten tasks in two daemons' rooms:
// alone, and beside 100,000 ended tasks of 1,000 other sessions.
func listing(ctx context.Context, o options, t *table) (err error) {
	n := o.pick(100_000, 10_000)
	alone, err := tenTasks(ctx, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, alone.close()) }()
	before := live()
	beside, err := tenTasks(ctx, n)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, beside.close()) }()
	each := (live() - before) / float64(n)
	seen, err := inTurns(o.pick(60, 15), o.pick(200, 100), alone.list, beside.list)
	if err != nil {
		return err
	}
	t.add(row{
		name:  fmt.Sprintf("list ten, beside %d ended to beside none", n),
		floor: us(all(seen.floor, 0.5)), afoot: us(all(seen.afoot, 0.5)),
		seen: seen.ratio(0.5), unit: "×", target: 1.10,
	})
	t.told(fmt.Sprintf("registry's memory per ended task nobody read, of %d", n), "", kib(each/1024), constant(each/1024), "KiB")
	return nil
}

// lister is a session of ten ended tasks.
type lister struct {
	*rooms
	token string
}

func tenTasks(ctx context.Context, others int) (*lister, error) {
	r, err := openRooms("instant", instant{})
	if err != nil {
		return nil, err
	}
	l := &lister{rooms: r}
	l.token, err = r.token("ten")
	start := func(session string) error {
		_, err := r.service.Start(ctx, registry.Caller{Session: session}, registry.StartRequest{
			Spec: registry.Spec{Kind: "instant", Fields: json.RawMessage(`{}`)},
		})
		return err
	}
	for i := 0; err == nil && i < others/2; i++ {
		err = start("other-" + strconv.Itoa(i%1000))
	}
	for i := 0; err == nil && i < 10; i++ {
		err = start("ten")
	}
	for i := others / 2; err == nil && i < others; i++ {
		err = start("other-" + strconv.Itoa(i%1000))
	}
	if err != nil {
		return nil, errors.Join(err, r.close())
	}
	return l, nil
}

func (l *lister) list() error {
	data, err := l.call(l.token, "GET", "/tasks", nil)
	if err != nil {
		return err
	}
	var page struct{ Tasks []task }
	if err := json.Unmarshal(data, &page); err != nil {
		return err
	}
	if len(page.Tasks) != 10 {
		return fmt.Errorf("%d tasks listed, not ten", len(page.Tasks))
	}
	return nil
}

// live gives the bytes of live objects and of stacks.
func live() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc + m.StackInuse)
}

// us words nanoseconds.
func us(ns float64) string { return fmt.Sprintf("%.0f µs", ns/1e3) }
