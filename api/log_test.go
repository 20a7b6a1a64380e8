package api_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"afoot/auth"
	"afoot/registry/registrytest"
)

func TestLog(t *testing.T) {
	w := newWorld(t)
	work := w.start(registrytest.Script{})
	work.Output.Append("0123456789\xff\x00")
	work.Output.Drop(4)
	work.Complete("exit code: 0")
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		a := w.call(method, "/tasks/bash-1/log", "").ok(http.StatusOK)
		w.is.Equal("application/octet-stream", a.header.Get("Content-Type"))
		w.is.Equal("nosniff", a.header.Get("X-Content-Type-Options"))
		w.is.Equal("no-store", a.header.Get("Cache-Control"))
		w.is.Equal("bytes", a.header.Get("Accept-Ranges"))
		w.is.Equal("4", a.header.Get("Afoot-Offset"))
		w.is.Equal("4", a.header.Get("Afoot-Dropped-Bytes"))
		w.is.Equal("8", a.header.Get("Content-Length"))
		if method == http.MethodGet {
			w.is.Equal("456789\xff\x00", string(a.body))
		}
	}
	for _, c := range []struct {
		rng, body, content string
		status             int
	}{
		{"bytes=4-", "456789\xff\x00", "bytes 4-11/12", 206},
		{"bytes=5-6", "56", "bytes 5-6/12", 206},
		{"bytes=5-5", "5", "bytes 5-5/12", 206},
		{"bytes=10-999", "\xff\x00", "bytes 10-11/12", 206},
		{"bytes=10-99999999999999999999", "\xff\x00", "bytes 10-11/12", 206},
		{"bytes=-3", "9\xff\x00", "bytes 9-11/12", 206},
		{"bytes=-8", "456789\xff\x00", "bytes 4-11/12", 206},
		// Not kept, or not there.
		{"bytes=3-", "", "bytes */12", 416},
		{"bytes=0-5", "", "bytes */12", 416},
		{"bytes=-9", "", "bytes */12", 416},
		{"bytes=-0", "", "bytes */12", 416},
		{"bytes=12-", "", "bytes */12", 416},
		{"bytes=99999999999999999999-", "", "bytes */12", 416},
		// To be ignored.
		{"bytes=4-5,7-8", "456789\xff\x00", "", 200},
		{"lines=1-2", "456789\xff\x00", "", 200},
		{"bytes=6-5", "456789\xff\x00", "", 200},
		{"bytes=x-", "456789\xff\x00", "", 200},
		{"bytes=", "456789\xff\x00", "", 200},
		{"bytes=-", "456789\xff\x00", "", 200},
		{"bytes=+5-", "456789\xff\x00", "", 200},
	} {
		a := w.get("/tasks/bash-1/log", "Range", c.rng)
		w.is.Equal(c.status, a.status, c.rng)
		w.is.Equal(c.content, a.header.Get("Content-Range"), c.rng)
		if c.status == http.StatusRequestedRangeNotSatisfiable {
			w.is.Contains(a.refused(416, "range_not_satisfiable").Detail, "first one kept is 4", c.rng)
			w.is.Equal("4", a.header.Get("Afoot-Offset"))
			continue
		}
		w.is.Equal(c.body, string(a.body), c.rng)
		head := w.call(http.MethodHead, "/tasks/bash-1/log", "", "Range", c.rng)
		w.is.Equal(c.status, head.status)
		w.is.Equal(a.header.Get("Content-Length"), head.header.Get("Content-Length"))
	}
	w.is.Equal(200, w.get("/tasks/bash-1/log", "Range", "bytes=5-6", "If-Range", `"x"`).status, "there is no validator to match")
	w.is.False(w.snapshot("bash-1").Reported)
	w.eventually(func() bool { return work.Output.OpenLogs() == 0 }, "every log is closed")
}

func TestLogOfFinalOutput(t *testing.T) {
	w := newWorld(t)
	w.start(registrytest.Script{Final: true})
	w.get("/tasks/bash-1/log").refused(http.StatusConflict, "conflict")
}

// follower is one followed log.
type follower struct {
	w    *world
	body io.ReadCloser
	res  *http.Response
	stop func()
}

func (w *world) follow(headers ...string) *follower {
	w.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	r := w.request(ctx, http.MethodGet, "/tasks/bash-1/log?follow=true", "", headers...)
	res, err := w.server.Client().Do(r)
	w.is.NoError(err)
	if res.StatusCode == http.StatusOK {
		w.check(exchange{request: r, status: res.StatusCode, header: res.Header})
	}
	w.t.Cleanup(func() { stop(); res.Body.Close() })
	return &follower{w: w, body: res.Body, res: res, stop: stop}
}

func (f *follower) reads(want string) {
	f.w.t.Helper()
	buf := make([]byte, len(want))
	_, err := io.ReadFull(f.body, buf)
	f.w.is.NoError(err)
	f.w.is.Equal(want, string(buf))
}

func TestFollow(t *testing.T) {
	w := newWorld(t)
	work := w.start(registrytest.Script{})
	f := w.follow() // headers come at once, without a byte of output
	w.is.Equal(http.StatusOK, f.res.StatusCode)
	work.Output.Append("one\n")
	f.reads("one\n")
	work.Output.Append("two\n")
	f.reads("two\n")

	late := w.follow("Range", "bytes=4-")
	w.is.Equal(http.StatusOK, late.res.StatusCode)
	w.is.Equal("4", late.res.Header.Get("Afoot-Offset"))
	late.reads("two\n")
	last := w.follow("Range", "bytes=-2")
	last.reads("o\n")
	w.is.Equal(http.StatusBadRequest, w.follow("Range", "bytes=0-3").res.StatusCode)
	w.is.Equal(http.StatusRequestedRangeNotSatisfiable, w.follow("Range", "bytes=9-").res.StatusCode)
	w.call(http.MethodHead, "/tasks/bash-1/log?follow=true", "").ok(http.StatusOK)

	work.Output.Append("three")
	work.Complete("exit code: 0")
	for _, each := range []*follower{f, late, last} {
		rest, err := io.ReadAll(each.body)
		w.is.NoError(err)
		w.is.Equal("three", string(rest))
	}
	w.is.Equal("one\ntwo\nthree", string(w.get("/tasks/bash-1/log?follow=true").ok(http.StatusOK).body))
	w.is.Equal(http.StatusPartialContent, w.get("/tasks/bash-1/log?follow=true", "Range", "bytes=4-").status)
}

// TestFollowerThatFellBehindIsCut: never a silent hole.
func TestFollowerThatFellBehindIsCut(t *testing.T) {
	w := newWorld(t, func(s *setup) { s.api.WriteTimeout = 10 * time.Second })
	work := w.start(registrytest.Script{})
	f := w.follow()
	work.Output.Append("one\n")
	f.reads("one\n")
	const size = 32 << 20 // more than sockets hold
	work.Output.Append(strings.Repeat("x", size))
	f.reads("xxxx")
	work.Output.Drop(size)
	rest, err := io.ReadAll(f.body)
	w.is.ErrorIs(err, io.ErrUnexpectedEOF)
	w.is.Less(len(rest), size)
	w.is.Equal(strings.Repeat("x", len(rest)), string(rest))
}

func TestFollowEndsWithItsToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(registrytest.Script{})
	w.token = w.mint(auth.Claims{Session: "alice", Scopes: auth.TasksRead}, 3*time.Second)
	_, err := io.ReadAll(w.follow().body)
	w.is.ErrorIs(err, io.ErrUnexpectedEOF)
}

func TestFollowerWhoLeavesIsForgotten(t *testing.T) {
	w := newWorld(t)
	work := w.start(registrytest.Script{})
	f := w.follow()
	work.Output.Append("one\n")
	f.reads("one\n")
	f.stop()
	w.eventually(func() bool { return work.Output.OpenLogs() == 0 }, "the log is closed")
}
