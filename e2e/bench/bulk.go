package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"time"
)

const mib = 1 << 20

// bulkCommand is the child of both sides: it writes as fast as it is read.
func bulkCommand(size int) string {
	return fmt.Sprintf("exec dd if=/dev/zero bs=1M count=%d status=none", size/mib)
}

// bulk lets a task write 1 GiB while a client follows its log, and compares the time
// until the client has all with that of a bare harness: the same child, its pipe
// spliced into a file, the file sent by sendfile.
func bulk(ctx context.Context, o options, t *table) (err error) {
	if _, err := exec.LookPath("dd"); err != nil {
		return err
	}
	size := o.pick(1024, 128) * mib
	f, err := startFloor()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	// Nothing is dropped: what is compared is the way of every byte.
	d, err := startDaemon(ctx, o, fmt.Sprintf("AFOOT_OUTPUT_MAX_BYTES=%d", 2*size))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	token, err := d.token("bulk")
	if err != nil {
		return err
	}
	c := newWire(ctx, d.base, token, 1)
	defer c.close()
	buf := make([]byte, 256<<10)
	floor := func() error { return follow(ctx, f.base, "", fmt.Sprintf("/bulk?bytes=%d", size), size, buf) }
	var started task
	afoot := func() error {
		body, err := json.Marshal(map[string]string{"kind": "bash", "command": bulkCommand(size)})
		if err != nil {
			return err
		}
		if err := c.call(http.MethodPost, "/tasks", body, &started); err != nil {
			return err
		}
		return follow(ctx, d.base, token, "/tasks/"+started.ID+"/log?follow=true", size, buf)
	}
	var seen pairs
	var used, floorUsed []float64
	for i := range o.pick(9, 4) {
		// What was written stands in nobody's way: its file is removed before the next.
		floorTook, floorCPU, err := timed(f, floor)
		if err != nil {
			return err
		}
		took, cpu, err := timed(d, afoot)
		if err != nil {
			return err
		}
		if err := c.discard(started.ID); err != nil {
			return err
		}
		if i == 0 { // the first round only warms up
			continue
		}
		seen.floor, seen.afoot = append(seen.floor, []float64{floorTook}), append(seen.afoot, []float64{took})
		gib := float64(size) / (1024 * mib)
		used, floorUsed = append(used, cpu/gib), append(floorUsed, floorCPU/gib)
	}
	slower := seen.ratio(0.5)
	t.add(row{
		name:  fmt.Sprintf("%d MiB followed, throughput to splice and sendfile", size/mib),
		floor: speed(size, seen.floor), afoot: speed(size, seen.afoot),
		seen: spread{1 / slower.median, 1 / slower.high, 1 / slower.low}, unit: "×", target: 0.85, atLeast: true,
	})
	cpu := spreadOf(used)
	t.add(row{
		name: "the daemon's processor time per GiB", floor: fmt.Sprintf("%.2f s", spreadOf(floorUsed).median),
		afoot: fmt.Sprintf("%.2f s", cpu.median), seen: cpu, unit: "s", target: 0.6,
	})
	return nil
}

// timed gives the nanoseconds that work takes and the seconds of processor time that
// the server uses for it.
func timed(s *server, work func() error) (took, cpu float64, err error) {
	before, err := s.processorTime()
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	if err := work(); err != nil {
		return 0, 0, err
	}
	took = float64(time.Since(began))
	after, err := s.processorTime()
	return took, (after - before).Seconds(), err
}

// follow reads one answer to its end and checks its size: a fast loss is no result.
func follow(ctx context.Context, base, token, path string, size int, buf []byte) error {
	addr := strings.TrimPrefix(base, "http://")
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", path, addr, token); err != nil {
		return err
	}
	resp, err := http.ReadResponse(bufio.NewReaderSize(conn, len(buf)), nil)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", path, resp.Status)
	}
	got := 0
	for {
		n, err := resp.Body.Read(buf)
		got += n
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("after %d bytes: %w", got, err)
		}
	}
	if got != size {
		return fmt.Errorf("%d bytes came, not %d", got, size)
	}
	return nil
}

// discard waits for the good end of a task and removes it with its output.
func (c *wire) discard(id string) error {
	var r read
	if err := c.call(http.MethodGet, "/tasks/"+id+"/output?wait=true&offset=0&limit_bytes=1", nil, &r); err != nil {
		return err
	}
	for r.Snapshot.Status == "running" {
		if err := c.call(http.MethodGet, "/tasks/"+id, nil, &r.Snapshot); err != nil {
			return err
		}
	}
	if r.Snapshot.Detail != "exit code: 0" {
		return fmt.Errorf("not a good end: %+v", r.Snapshot)
	}
	var nothing json.RawMessage
	err := c.call(http.MethodDelete, "/tasks/"+id+"?purge=true", nil, &nothing)
	if _, ok := errors.AsType[*json.SyntaxError](err); ok { // there is no body to decode
		return nil
	}
	return err
}

func speed(size int, blocks [][]float64) string {
	return fmt.Sprintf("%.0f MiB/s", float64(size)/mib/all(blocks, 0.5)*1e9)
}
