package api_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"afoot/api/wire"
	"afoot/auth"
	"afoot/registry"
	"afoot/registry/registrytest"
)

func TestReadConsumes(t *testing.T) {
	w := newWorld(t)
	work := w.start(registrytest.Script{})
	work.Output.Append("one\n")
	a := w.get("/tasks/bash-1/output").ok(http.StatusOK)
	read := into[wire.TaskRead](a)
	w.is.Equal("one\n", read.Text)
	w.is.EqualValues(0, read.Offset)
	w.is.EqualValues(4, read.NextOffset)
	w.is.False(read.Eof)
	w.is.Zero(read.TimeoutMs)
	w.is.Equal("no-store", a.header.Get("Cache-Control"))
	w.is.Equal([]string{"0", "4", "false", "0"}, []string{
		a.header.Get("Afoot-Offset"), a.header.Get("Afoot-Next-Offset"),
		a.header.Get("Afoot-Eof"), a.header.Get("Afoot-Dropped-Bytes"),
	})

	work.Output.Append("two <&>\n")
	w.eventually(func() bool { return into[wire.TaskRead](w.get("/tasks/bash-1/output?offset=0")).NextOffset == 12 }, "a look sees all")
	w.is.Equal("two <&>\n", into[wire.TaskRead](w.get("/tasks/bash-1/output")).Text)
	w.is.Empty(into[wire.TaskRead](w.get("/tasks/bash-1/output")).Text)

	work.Complete("exit code: 0")
	read = into[wire.TaskRead](w.get("/tasks/bash-1/output"))
	w.is.True(read.Eof)
	w.is.True(read.Snapshot.Reported)
	w.eventually(func() bool { return w.snapshot("bash-1").Reported }, "reported")
}

func TestLookMovesNothing(t *testing.T) {
	w := newWorld(t)
	w.ended("one\ntwo\n")
	for range 2 {
		read := into[wire.TaskRead](w.get("/tasks/bash-1/output?offset=4&wait=true").ok(http.StatusOK))
		w.is.Equal("two\n", read.Text)
		w.is.True(read.Eof)
		w.is.False(read.Snapshot.Reported)
	}
	w.is.False(w.snapshot("bash-1").Reported)
	w.is.Equal("one\ntwo\n", into[wire.TaskRead](w.get("/tasks/bash-1/output")).Text)
}

func TestLimitBytes(t *testing.T) {
	w := newWorld(t)
	work := w.ended("abcdef")
	w.is.Equal("abcd", into[wire.TaskRead](w.get("/tasks/bash-1/output?limit_bytes=4")).Text)
	w.is.Equal("ef", into[wire.TaskRead](w.get("/tasks/bash-1/output?limit_bytes=99999999999999999999")).Text)
	w.is.EqualValues(registry.MaxPageBytes, work.Output.WidestPage())
}

func TestHeadConsumesNothing(t *testing.T) {
	w := newWorld(t)
	w.ended("one\n")
	for _, path := range []string{"/tasks/bash-1/output", "/tasks/bash-1/output?offset=0", "/tasks/bash-1/output?wait=true"} {
		a := w.call(http.MethodHead, path, "").ok(http.StatusOK)
		w.is.Empty(a.body)
		w.is.Equal("4", a.header.Get("Afoot-Next-Offset"))
		w.is.Equal("true", a.header.Get("Afoot-Eof"))
		w.is.Equal("no-store", a.header.Get("Cache-Control"))
		w.is.NotEmpty(a.header.Get("Content-Length"))
	}
	w.is.False(w.snapshot("bash-1").Reported)
	w.is.Equal("one\n", into[wire.TaskRead](w.get("/tasks/bash-1/output")).Text)

	w.start(registrytest.Script{})
	begin := time.Now()
	w.call(http.MethodHead, "/tasks/bash-2/output?wait=true", "").ok(http.StatusOK)
	w.is.Less(time.Since(begin), 20*time.Second, "a HEAD does not wait")
}

func TestTextForModels(t *testing.T) {
	w := newWorld(t)
	work := w.start(registrytest.Script{})
	work.Output.Append("0123456789one\n")
	work.Output.Drop(10)
	text := func(path string, accept string) string {
		a := w.get(path, "Accept", accept).ok(http.StatusOK)
		w.is.Equal("text/plain; charset=utf-8", a.header.Get("Content-Type"))
		w.is.Equal("14", a.header.Get("Afoot-Next-Offset"))
		w.is.Equal("10", a.header.Get("Afoot-Dropped-Bytes"))
		return string(a.body)
	}
	const want = "[10 bytes of older output were dropped]\none\n[status: running]"
	w.is.Equal(want, text("/tasks/bash-1/output?offset=0", "text/plain"))
	w.is.Equal("[7 bytes of older output were dropped]\none\n[status: running]", text("/tasks/bash-1/output?offset=3", "text/plain;q=0.9, application/json;q=0.1"))
	w.is.Equal("one\n[status: running]", text("/tasks/bash-1/output?offset=10", "text/plain, */*"))
	w.is.Equal(want, text("/tasks/bash-1/output", "text/plain"))
	w.is.Equal("(no new output)\n[status: running]", text("/tasks/bash-1/output", "text/*"))

	for _, accept := range []string{"", "*/*", "application/json", "application/json, text/plain, */*", "text/html, */*", "text/plain;q=0", "nonsense"} {
		w.is.Equal("application/json", w.get("/tasks/bash-1/output", "Accept", accept).header.Get("Content-Type"), accept)
	}
	// The limit of the task bounds the text, and never the JSON.
	limited := into[wire.Snapshot](w.call(http.MethodPost, "/tasks", `{"kind":"bash","command":"x","outputLimitBytes":48}`).ok(http.StatusCreated))
	w.jobs.Work(registry.ID(limited.Id)).Output.Append(strings.Repeat("界", 100))
	path := "/tasks/" + limited.Id + "/output?offset=0"
	w.is.Equal("界界界\n[output truncated]\n[status: running]", string(w.get(path, "Accept", "text/plain").body))
	w.is.Equal(strings.Repeat("界", 100), into[wire.TaskRead](w.get(path)).Text)
}

func TestWait(t *testing.T) {
	w := newWorld(t, func(s *setup) { s.api.WaitDefault, s.api.WaitMax = 50*time.Millisecond, 100*time.Millisecond })
	work := w.start(registrytest.Script{})
	for _, c := range []struct{ query, clamped string }{
		{"wait=true", ""},
		{"wait=true&timeout_ms=1", ""},
		{"wait=true&timeout_ms=100", ""},
		{"wait=true&timeout_ms=101", "100"},
		{"wait=true&timeout_ms=1000000000000", "100"},
		{"wait=true&timeout_ms=99999999999999999999999", "100"},
		{"wait=true&timeout_ms=1000000000000&offset=0", "100"},
		{"timeout_ms=1000000000000", ""},
	} {
		a := w.get("/tasks/bash-1/output?" + c.query).ok(http.StatusOK)
		read := into[wire.TaskRead](a)
		w.is.Equal(wire.Running, read.Snapshot.Status, c.query)
		w.is.Equal(c.clamped, a.header.Get("Afoot-Timeout-Ms"), c.query)
		want := int64(0)
		if c.clamped != "" {
			want = 100
		}
		w.is.Equal(want, read.TimeoutMs, c.query)
		w.is.Equal(c.clamped, w.get("/tasks/bash-1/output?"+c.query, "Accept", "text/plain").header.Get("Afoot-Timeout-Ms"))
	}
	work.Complete("exit code: 4")
	read := into[wire.TaskRead](w.get("/tasks/bash-1/output?wait=true"))
	w.is.Equal("exit code: 4", read.Snapshot.Detail)
	w.is.True(read.Snapshot.Reported)
}

func TestWaitReturnsAtTheEnd(t *testing.T) {
	w := newWorld(t)
	work := w.start(registrytest.Script{})
	work.Output.Append("abc")
	got := make(chan answer, 2)
	for _, query := range []string{"wait=true", "wait=true&offset=3"} {
		go func() { got <- w.get("/tasks/bash-1/output?" + query) }()
	}
	w.waiters(work.ID, 2)
	meter := w.as(auth.Claims{Session: "alice", Scopes: auth.Metrics})
	w.is.Contains(string(meter.get("/metrics").body), "afoot_waits 2")
	work.Complete("exit code: 0")
	for range 2 {
		read := into[wire.TaskRead]((<-got).ok(http.StatusOK))
		w.is.Equal(wire.Completed, read.Snapshot.Status)
		w.is.True(read.Eof)
	}
	w.eventually(func() bool { return strings.Contains(string(meter.get("/metrics").body), "afoot_waits 0") }, "nobody waits")
}

// TestWaitEndsWithItsToken: 401, and what was there stays unread.
func TestWaitEndsWithItsToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	work := w.start(registrytest.Script{})
	work.Output.Append("kept")
	short := *w
	short.token = w.mint(auth.Claims{Session: "alice", Scopes: auth.TasksWrite}, 3*time.Second)
	for _, query := range []string{"wait=true", "wait=true&offset=4"} {
		a := short.get("/tasks/bash-1/output?" + query)
		a.refused(http.StatusUnauthorized, "unauthenticated")
		w.is.Contains(a.header.Get("WWW-Authenticate"), "Bearer")
	}
	w.is.Equal("kept", into[wire.TaskRead](w.get("/tasks/bash-1/output")).Text)
}

func TestLookingScope(t *testing.T) {
	w := newWorld(t)
	w.ended("one\n")
	r := w.as(auth.Claims{Session: "alice", Scopes: auth.TasksRead})
	for _, query := range []string{"", "?wait=true"} {
		p := r.get("/tasks/bash-1/output"+query).refused(http.StatusForbidden, "forbidden")
		w.is.Contains(p.Detail, "offset=0")
		w.is.Equal(http.StatusForbidden, r.call(http.MethodHead, "/tasks/bash-1/output"+query, "").status)
	}
	r.get("/tasks/bash-1/output?offset=0").ok(http.StatusOK)
	r.get("/tasks").ok(http.StatusOK)
	r.get("/tasks/bash-1").ok(http.StatusOK)
	r.get("/tasks/bash-1/log").ok(http.StatusOK)
	r.get("/agents").ok(http.StatusOK)
	for _, c := range []struct{ method, path string }{
		{"POST", "/tasks"}, {"DELETE", "/tasks/bash-1"}, {"POST", "/tasks/bash-1/ack"},
		{"POST", "/agents"}, {"DELETE", "/agents/default"}, {"GET", "/metrics"},
	} {
		body := ""
		if c.method == http.MethodPost {
			body = "{}"
		}
		a := r.call(c.method, c.path, body)
		a.refused(http.StatusForbidden, "forbidden")
		w.is.Contains(a.header.Get("WWW-Authenticate"), "insufficient_scope")
	}
	w.is.False(w.snapshot("bash-1").Reported)
}

// TestAnswerThatCouldNotBeWritten: cursor and notice stay where they were.
func TestAnswerThatCouldNotBeWritten(t *testing.T) {
	for _, c := range []struct {
		name  string
		flush func(cancel func()) error
	}{
		{"the flush fails", func(func()) error { return io.ErrClosedPipe }},
		{"the caller left before the flush", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.ended("one\n")
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			out := &brokenWriter{header: http.Header{}, flush: func() error { return nil }, write: func() {}}
			if c.flush != nil {
				out.flush = func() error { return c.flush(cancel) }
			} else {
				out.write = cancel
			}
			r := w.request(ctx, http.MethodGet, "/tasks/bash-1/output", "")
			r.Host = "localhost"
			func() {
				defer func() { _ = recover() }() // an answer that is not whole aborts its connection
				w.server.Config.Handler.ServeHTTP(out, r)
			}()
			require.Positive(t, out.bytes)
			require.False(t, w.snapshot("bash-1").Reported)
			require.Equal(t, "one\n", into[wire.TaskRead](w.get("/tasks/bash-1/output")).Text)
		})
	}
}

// TestCallerWhoLeavesWithTheAnswer has it: leaving is no sign of a loss.
func TestCallerWhoLeavesWithTheAnswer(t *testing.T) {
	w := newWorld(t)
	w.ended("one\n")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	out := &brokenWriter{header: http.Header{}, flush: func() error { cancel(); return nil }, write: func() {}}
	r := w.request(ctx, http.MethodGet, "/tasks/bash-1/output", "")
	r.Host = "localhost"
	w.server.Config.Handler.ServeHTTP(out, r)
	w.is.True(w.snapshot("bash-1").Reported)
	w.is.Empty(into[wire.TaskRead](w.get("/tasks/bash-1/output")).Text)
}

// brokenWriter is a connection that takes bytes and then breaks.
type brokenWriter struct {
	header http.Header
	bytes  int
	flush  func() error
	write  func()
}

func (b *brokenWriter) Header() http.Header { return b.header }
func (b *brokenWriter) WriteHeader(int)     {}
func (b *brokenWriter) Write(p []byte) (int, error) {
	b.bytes += len(p)
	b.write()
	return len(p), nil
}
func (b *brokenWriter) FlushError() error { return b.flush() }

// TestStalledReaderGivesItsTurnBack: a caller who asks and never reads holds up
// nobody for longer than the bound of a write, and consumes nothing.
func TestStalledReaderGivesItsTurnBack(t *testing.T) {
	t.Parallel()
	// Long enough for the second reader on a busy machine too.
	w := newWorld(t, func(s *setup) { s.api.WriteTimeout = 3 * time.Second })
	work := w.start(registrytest.Script{})
	const size = 6 << 20
	work.Output.Append(strings.Repeat("x", size))
	conn, err := net.Dial("tcp", w.server.Listener.Addr().String())
	w.is.NoError(err)
	defer conn.Close()
	w.is.NoError(conn.(*net.TCPConn).SetReadBuffer(4 << 10))
	_, err = io.WriteString(conn, "GET /tasks/bash-1/output HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "+w.token+"\r\n\r\n")
	w.is.NoError(err)
	w.is.Eventually(func() bool { return strings.Contains(w.log.String(), "an answer was not written") }, time.Minute, time.Millisecond, "the stalled answer is given up")
	read := into[wire.TaskRead](w.get("/tasks/bash-1/output").ok(http.StatusOK))
	w.is.EqualValues(0, read.Offset)
	w.is.Len(read.Text, size)
}

// TestSlowReaderIsServed: the bound is on each piece, not on the whole answer.
func TestSlowReaderIsServed(t *testing.T) {
	t.Parallel()
	const bound = 3 * time.Second
	w := newWorld(t, func(s *setup) { s.api.WriteTimeout = bound })
	work := w.start(registrytest.Script{})
	const size = 8 << 20
	work.Output.Append(strings.Repeat("x", size))
	dialer := net.Dialer{}
	transport := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dialer.DialContext(ctx, network, addr)
		if err == nil {
			err = c.(*net.TCPConn).SetReadBuffer(16 << 10)
		}
		return c, err
	}}
	defer transport.CloseIdleConnections()
	begin := time.Now()
	res, err := transport.RoundTrip(w.request(context.Background(), http.MethodGet, "/tasks/bash-1/output", ""))
	w.is.NoError(err)
	defer res.Body.Close()
	// As slow as it takes to be beyond the bound as a whole.
	pause := time.NewTicker(250 * time.Millisecond)
	defer pause.Stop()
	total, buf := 0, make([]byte, 256<<10)
	for {
		n, err := io.ReadFull(res.Body, buf)
		if total += n; err != nil {
			break
		}
		<-pause.C
	}
	w.is.Greater(time.Since(begin), 2*bound)
	w.is.Greater(total, size)
}

func TestExplicitAck(t *testing.T) {
	w := newWorld(t)
	w.ended("one\n")
	ack := func(body string) answer { return w.call(http.MethodPost, "/tasks/bash-1/ack", body) }
	ack(`{"nextOffset":4}`).refused(http.StatusConflict, "conflict")
	for range 2 {
		read := into[wire.TaskRead](w.get("/tasks/bash-1/output", "Afoot-Ack", "explicit").ok(http.StatusOK))
		w.is.Equal("one\n", read.Text)
	}
	w.is.False(w.snapshot("bash-1").Reported)
	ack(`{"nextOffset":5}`).refused(http.StatusBadRequest, "invalid")
	for _, bad := range []string{`{}`, `{"nextOffset":-1}`, `{"nextOffset":null}`, `{"nextOffset":"4"}`, `{"nextOffset":1.5}`, `{"nextOffset":4,"x":1}`, `[]`, ``} {
		p := w.call(http.MethodPost, "/tasks/bash-1/ack", bad, "Content-Type", "application/json").refused(http.StatusBadRequest, "invalid")
		if strings.Contains(bad, "nextOffset") && !strings.Contains(bad, "x") {
			w.is.Contains(p.Detail, "nextOffset", bad)
		}
	}
	w.call(http.MethodPost, "/tasks/bash-1/ack", `{"nextOffset":4}`, "Content-Type", "text/plain").refused(http.StatusUnsupportedMediaType, "unsupported_media")
	w.is.False(w.snapshot("bash-1").Reported)
	w.is.Empty(ack(`{"nextOffset":4}`).ok(http.StatusNoContent).body)
	w.is.True(w.snapshot("bash-1").Reported)
}
