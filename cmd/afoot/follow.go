package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"afoot/api/client"
)

// How often a cut log stream is taken up again without a byte in between.
const followTries = 5

// follower copies the raw output of a task while it grows.
type follower struct {
	remote *remote
	id     string
	agent  *string
	// next is the offset of the first byte that was not copied yet.
	next int64
	// sink takes the bytes; lost hears of bytes that are gone from the log.
	sink func([]byte) error
	lost func(bytes int64)
}

// run copies until the task has ended, and takes the stream up again where it
// was cut: an expired token, a reader that fell behind, a broken connection.
func (f *follower) run(ctx context.Context) error {
	for tries := followTries; ; tries-- {
		before := f.next
		again, err := f.once(ctx)
		if !again || ctx.Err() != nil || tries == 1 {
			return err
		}
		if f.next > before {
			tries = followTries + 1
		}
	}
}

// once opens the stream at next. It reports whether to open it again.
func (f *follower) once(ctx context.Context) (again bool, err error) {
	params := &client.GetLogParams{Follow: optional(true), AfootAgent: f.agent}
	if f.next > 0 {
		params.Range = optional(fmt.Sprintf("bytes=%d-", f.next))
	}
	raw, err := f.remote.GetLog(ctx, f.id, params)
	if err == nil && raw.StatusCode == http.StatusRequestedRangeNotSatisfiable {
		first := offsetOf(raw)
		_ = raw.Body.Close()
		return f.skipTo(first), nil
	}
	res, err := check(raw, err)
	if err != nil {
		return false, err
	}
	defer func() { _ = res.Body.Close() }()
	f.skipTo(offsetOf(res))
	return f.copy(res.Body)
}

// skipTo moves next over bytes that are gone, and reports whether there were any.
func (f *follower) skipTo(first int64) bool {
	if first <= f.next {
		return false
	}
	if f.lost != nil {
		f.lost(first - f.next)
	}
	f.next = first
	return true
}

// copy hands bytes on until the stream ends properly or is cut.
func (f *follower) copy(body io.Reader) (again bool, err error) {
	buf := make([]byte, 64<<10)
	for {
		n, err := body.Read(buf)
		if n > 0 {
			if err := f.sink(buf[:n]); err != nil {
				return false, err
			}
			f.next += int64(n)
		}
		switch {
		case errors.Is(err, io.EOF):
			return false, nil
		case err != nil:
			return true, fmt.Errorf("the stream of %s was cut: %w", f.id, err)
		}
	}
}

func offsetOf(res *http.Response) int64 {
	offset, err := strconv.ParseInt(res.Header.Get("Afoot-Offset"), 10, 64)
	if err != nil {
		return 0
	}
	return offset
}
