package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
)

// BehindError says that bytes were dropped before they could be read.
type BehindError struct {
	// At is the byte that was asked for, First the first one that is still kept.
	At, First int64
}

// Error names both bytes.
func (e *BehindError) Error() string {
	return fmt.Sprintf("the output from byte %d on is gone; what is kept begins at byte %d", e.At, e.First)
}

// Follow copies a task's raw output from byte at on to w, until the task has ended;
// next is the byte behind the last one that was written. A lost stream is opened
// again where it broke off. It ends with a [*BehindError] when bytes were dropped
// before they were read, with w's error, a refusal, or ctx's error.
func (c *Client) Follow(ctx context.Context, id string, at int64, params GetLogParams, w io.Writer) (next int64, err error) {
	var wait backoff
	follow := true
	params.Follow = &follow
	for {
		before := at
		ended, err := c.follow(ctx, id, &at, params, w)
		if ended {
			return at, err
		}
		if at > before {
			wait.worked()
		}
		if err = wait.again(ctx, err); err != nil {
			return at, err
		}
	}
}

// follow reads one stream. Ended says that there is nothing more to try.
func (c *Client) follow(ctx context.Context, id string, at *int64, params GetLogParams, w io.Writer) (ended bool, err error) {
	from := "bytes=" + strconv.FormatInt(*at, 10) + "-"
	params.Range = &from
	res, err := Check(c.refusedAt(c.GetLog(ctx, id, &params))) //nolint:bodyclose // closed below, or by Check
	if behind, ok := errors.AsType[*startError](err); ok {
		switch {
		case behind.first > *at:
			return true, &BehindError{At: *at, First: behind.first}
		case behind.size == *at:
			return true, nil // the end of an ended task
		}
		return true, err
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = res.Body.Close() }()
	out := &counted{w: w}
	_, err = io.Copy(out, res.Body)
	*at += out.n
	if err == nil || out.err != nil {
		return true, out.err
	}
	return false, err
}

// startError is a 416: the bytes asked for are not there.
type startError struct {
	first, size int64
}

func (e *startError) Error() string {
	return fmt.Sprintf("the kept output is from byte %d to byte %d", e.first, e.size)
}

// refusedAt makes an error of a 416.
func (c *Client) refusedAt(res *http.Response, err error) (*http.Response, error) {
	if err != nil || res.StatusCode != http.StatusRequestedRangeNotSatisfiable {
		return res, err
	}
	defer func() { _ = res.Body.Close() }()
	e := &startError{}
	e.first, _ = strconv.ParseInt(res.Header.Get("Afoot-Offset"), 10, 64)
	if _, err := fmt.Sscanf(res.Header.Get("Content-Range"), "bytes */%d", &e.size); err != nil {
		return nil, fmt.Errorf("the answer 416 has no size: %w", err)
	}
	return nil, e
}

// counted counts what was written and keeps the writer's error apart from the
// reader's.
type counted struct {
	w   io.Writer
	n   int64
	err error
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	c.err = err
	return n, err
}
