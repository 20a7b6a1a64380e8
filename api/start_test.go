package api_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"afoot/api/wire"
	"afoot/auth"
	"afoot/registry/registrytest"
)

func TestStart(t *testing.T) {
	w := newWorld(t)
	a := w.call(http.MethodPost, "/tasks", `{"kind":"bash","command":"make","label":"build <all>","outputLimitBytes":80}`).ok(http.StatusCreated)
	s := into[wire.Snapshot](a)
	w.is.Equal("/tasks/bash-1", a.header.Get("Location"))
	w.is.Equal("bash-1", s.Id)
	w.is.Equal("build <all>", s.Label)
	w.is.EqualValues(80, s.OutputLimitBytes)
	w.is.Equal("alice", s.OwnerSession)
	w.is.Equal("default", s.Agent)
	w.is.Equal(wire.Running, s.Status)
	w.is.Zero(s.FinishedAt)
	w.is.JSONEq(`{"command":"make"}`, string(w.jobs.Work("bash-1").Spec.Fields))

	unowned := into[wire.Snapshot](w.as(auth.Claims{Scopes: auth.TasksWrite}).call(http.MethodPost, "/tasks", w.body(registrytest.Script{})).ok(http.StatusCreated))
	w.is.Empty(unowned.OwnerSession)
	w.is.Empty(unowned.Agent)
}

func TestStartAndCollectInOneRoundTrip(t *testing.T) {
	w := newWorld(t)
	body := w.body(registrytest.Script{Start: func(_ ctx, work *registrytest.Work) error {
		work.Output.Append("hi\n")
		work.Complete("exit code: 0")
		return nil
	}})
	a := w.call(http.MethodPost, "/tasks?wait=true&timeout_ms=10000", body).ok(http.StatusCreated)
	read := into[wire.TaskRead](a)
	w.is.Equal("/tasks/bash-1", a.header.Get("Location"))
	w.is.Equal("hi\n", read.Text)
	w.is.True(read.Eof)
	w.is.True(read.Snapshot.Reported)
	w.is.Equal(wire.Completed, read.Snapshot.Status)
	w.is.Equal("no-store", a.header.Get("Cache-Control"))
	w.eventually(func() bool { return w.snapshot("bash-1").Reported }, "the delivered end is reported")
}

func TestIdempotencyKey(t *testing.T) {
	w := newWorld(t)
	body := w.body(registrytest.Script{Label: "one"})
	first := w.call(http.MethodPost, "/tasks", body, "Idempotency-Key", "k").ok(http.StatusCreated)
	w.is.Empty(first.header.Get("Idempotency-Replayed"))

	// The same request, written otherwise.
	spaced := strings.Replace(strings.TrimSuffix(body, "}"), "{", "{ \n", 1) + " }"
	w.is.NotEqual(body, spaced)
	moved := `{"command":"scripted 1","kind":"bash"}`
	for _, same := range []string{body, spaced, moved} {
		a := w.call(http.MethodPost, "/tasks", same, "Idempotency-Key", "k").ok(http.StatusOK)
		w.is.Equal("true", a.header.Get("Idempotency-Replayed"))
		w.is.Equal("/tasks/bash-1", a.header.Get("Location"))
		w.is.Equal("bash-1", into[wire.Snapshot](a).Id)
	}
	w.is.Equal(1, w.jobs.Starts())

	other := strings.Replace(body, "scripted", "other", 1)
	w.call(http.MethodPost, "/tasks", other, "Idempotency-Key", "k").refused(http.StatusUnprocessableEntity, "idempotency_mismatch")
	agent := into[wire.Agent](w.call(http.MethodPost, "/agents", "").ok(http.StatusCreated))
	w.call(http.MethodPost, "/tasks", body, "Idempotency-Key", "k", "Afoot-Agent", agent.Id).refused(http.StatusUnprocessableEntity, "idempotency_mismatch")

	// With wait=true the replay reads.
	w.jobs.Work("bash-1").Complete("exit code: 0")
	read := into[wire.TaskRead](w.call(http.MethodPost, "/tasks?wait=true", body, "Idempotency-Key", "k").ok(http.StatusOK))
	w.is.Equal("bash-1", read.Snapshot.Id)

	// Another session's and another subject's key is another key.
	w.as(auth.Claims{Session: "bob", Scopes: auth.TasksWrite}).call(http.MethodPost, "/tasks", body, "Idempotency-Key", "k").ok(http.StatusCreated)
	for _, sub := range []string{"x", "y"} {
		w.as(auth.Claims{Subject: sub, Scopes: auth.TasksWrite}).call(http.MethodPost, "/tasks", body, "Idempotency-Key", "k").ok(http.StatusCreated)
	}
}

func TestIdempotentTwinsStartOnce(t *testing.T) {
	w := newWorld(t)
	body := w.body(registrytest.Script{})
	ids := make([]string, 20)
	var group sync.WaitGroup
	for i := range ids {
		group.Go(func() {
			ids[i] = into[wire.Snapshot](w.call(http.MethodPost, "/tasks", body, "Idempotency-Key", "twin")).Id
		})
	}
	group.Wait()
	for _, id := range ids {
		w.is.Equal("bash-1", id)
	}
	w.is.Equal(1, w.jobs.Starts())
}

func TestStartLimit(t *testing.T) {
	w := newWorld(t)
	for range 10 {
		w.start(registrytest.Script{})
	}
	p := w.call(http.MethodPost, "/tasks", w.body(registrytest.Script{})).refused(http.StatusTooManyRequests, "limit_reached")
	w.is.Equal("AFOOT_MAX_TASKS_PER_OWNER", p.Limit)
	w.is.Equal(10, w.jobs.Starts())
}

// TestBadStart holds every way to write a start request wrongly: the right code, a
// sentence that names the culprit, nothing started, no id burnt.
func TestBadStart(t *testing.T) {
	w := newWorld(t)
	nested := strings.Repeat("[", 500_000) + strings.Repeat("]", 500_000)
	for _, c := range []struct {
		name, body string
		headers    []string
		status     int
		code       string
		says       string
	}{
		{"nothing", ``, []string{"Content-Type", "application/json"}, 400, "invalid", "empty"},
		{"broken", `{"kind":"bash"`, nil, 400, "invalid", "JSON"},
		{"no JSON", `kind=bash`, nil, 400, "invalid", "JSON"},
		{"an array", `[]`, nil, 400, "invalid", "object"},
		{"null", `null`, nil, 400, "invalid", "object"},
		{"something behind", `{"kind":"bash","command":"x"} {}`, nil, 400, "invalid", "behind"},
		{"a duplicate member", `{"kind":"bash","command":"x","command":"y"}`, nil, 400, "invalid", `"command"`},
		{"a duplicate kind", `{"kind":"bash","kind":"bash"}`, nil, 400, "invalid", `"kind"`},
		{"an escaped duplicate", `{"kind":"bash","\u006bind":"bash"}`, nil, 400, "invalid", `"kind"`},
		{"a nested duplicate", `{"kind":"bash","env":{"A":"1","A":"2"}}`, nil, 400, "invalid", `"env/A"`},
		{"invalid UTF-8", "{\"kind\":\"bash\",\"command\":\"\xff\"}", nil, 400, "invalid", "UTF-8"},
		{"a lone surrogate", `{"kind":"bash","command":"\ud800"}`, nil, 400, "invalid", "JSON"},
		{"deep nesting", `{"kind":"bash","command":` + nested + `}`, nil, 400, "invalid", "JSON"},
		{"no kind", `{"command":"x"}`, nil, 400, "invalid", `"kind"`},
		{"an empty kind", `{"kind":"","command":"x"}`, nil, 400, "invalid", `"kind"`},
		{"an unknown kind", `{"kind":"zsh","command":"x"}`, nil, 400, "invalid", "zsh"},
		{"a kind of another type", `{"kind":1}`, nil, 400, "invalid", `"kind" must be a string, not a number`},
		{"an empty label", `{"kind":"bash","label":""}`, nil, 400, "invalid", "label"},
		{"a label with a newline", `{"kind":"bash","label":"a\nb"}`, nil, 400, "invalid", "label"},
		{"a long label", `{"kind":"bash","label":"` + strings.Repeat("x", 513) + `"}`, nil, 400, "invalid", "label"},
		{"a null label", `{"kind":"bash","label":null}`, nil, 400, "invalid", `"label" must be a string, not null`},
		{"a label of another type", `{"kind":"bash","label":["a"]}`, nil, 400, "invalid", `"label" must be a string, not an array`},
		{"a limit of zero", `{"kind":"bash","outputLimitBytes":0}`, nil, 400, "invalid", "outputLimitBytes"},
		{"a negative limit", `{"kind":"bash","outputLimitBytes":-1}`, nil, 400, "invalid", "outputLimitBytes"},
		{"a fraction as limit", `{"kind":"bash","outputLimitBytes":1.5}`, nil, 400, "invalid", "outputLimitBytes"},
		{"an unsafe limit", `{"kind":"bash","outputLimitBytes":9007199254740992}`, nil, 400, "invalid", "outputLimitBytes"},
		{"a limit beyond all", `{"kind":"bash","outputLimitBytes":99999999999999999999}`, nil, 400, "invalid", "outputLimitBytes"},
		{"a string as limit", `{"kind":"bash","outputLimitBytes":"80"}`, nil, 400, "invalid", "outputLimitBytes"},
		{"a large body", `{"kind":"bash","command":"` + strings.Repeat("x", 2<<20) + `"}`, nil, 413, "too_large", "2 MiB"},
		{"no media type", `{"kind":"bash"}`, []string{"Content-Type", ""}, 415, "unsupported_media", "application/json"},
		{"text", `{"kind":"bash"}`, []string{"Content-Type", "text/plain"}, 415, "unsupported_media", "application/json"},
		{"a form", `kind=bash`, []string{"Content-Type", "application/x-www-form-urlencoded"}, 415, "unsupported_media", "application/json"},
		{"another charset", `{"kind":"bash"}`, []string{"Content-Type", "application/json; charset=latin1"}, 415, "unsupported_media", "application/json"},
		{"compressed", `{"kind":"bash"}`, []string{"Content-Encoding", "gzip"}, 415, "unsupported_media", "gzip"},
		{"a key too long", `{"kind":"bash"}`, []string{"Idempotency-Key", strings.Repeat("k", 256)}, 400, "invalid", "Idempotency-Key"},
		{"a key not ASCII", `{"kind":"bash"}`, []string{"Idempotency-Key", "ü"}, 400, "invalid", "Idempotency-Key"},
		{"an unknown way to ack", `{"kind":"bash"}`, []string{"Afoot-Ack", "auto"}, 400, "invalid", "Afoot-Ack"},
		{"an unknown agent", `{"kind":"bash"}`, []string{"Afoot-Agent", "agent-9"}, 404, "unknown_agent", "agent-9"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := w.call(http.MethodPost, "/tasks", c.body, c.headers...).refused(c.status, c.code)
			require.Contains(t, p.Detail, c.says)
			require.Less(t, len(p.Detail), 400)
		})
	}
	w.is.Zero(w.jobs.Starts())
	w.is.Equal("bash-1", string(w.start(registrytest.Script{}).ID), "no id was burnt")
	w.call(http.MethodPost, "/tasks", `{"kind":"bash","command":"x"}`, "Content-Type", "application/json; charset=UTF-8").ok(http.StatusCreated)
}

// TestBadQueries: parameters are as strict as bodies.
func TestBadQueries(t *testing.T) {
	w := newWorld(t)
	task := fmt.Sprintf("/tasks/%s", w.start(registrytest.Script{}).ID)
	for _, c := range []struct{ method, path, says string }{
		{"GET", task + "/output?wait=true&timeout_ms=0", "timeout_ms"},
		{"GET", task + "/output?timeout_ms=-1", "timeout_ms"},
		{"GET", task + "/output?timeout_ms=1.5", "timeout_ms"},
		{"GET", task + "/output?timeout_ms=NaN", "timeout_ms"},
		{"GET", task + "/output?timeout_ms=%2B5", "timeout_ms"},
		{"GET", task + "/output?timeout_ms=1e3", "timeout_ms"},
		{"GET", task + "/output?timeout_ms=", "timeout_ms"},
		{"GET", task + "/output?timeout_ms=5&timeout_ms=6", "timeout_ms"},
		{"GET", task + "/output?wait=1", "wait"},
		{"GET", task + "/output?wait=", "wait"},
		{"GET", task + "/output?offset=-1", "offset"},
		{"GET", task + "/output?offset=NaN", "offset"},
		{"GET", task + "/output?offset=0x10", "offset"},
		{"GET", task + "/output?offset=1", "offset"},
		{"GET", task + "/output?offset=99999999999999999999", "offset"},
		{"GET", task + "/output?limit_bytes=0", "limit_bytes"},
		{"GET", task + "/output?limit_bytes=many", "limit_bytes"},
		{"GET", task + "/output?stream=stderr", "stream"},
		{"GET", task + "/output?limit%5fbytes=5;offset=3", "query"},
		{"GET", task + "?verbose=true", "verbose"},
		{"GET", task + "/log?follow=yes", "follow"},
		{"DELETE", task + "?purge=maybe", "purge"},
		{"DELETE", task + "?reason=a%0Ab", "reason"},
		{"DELETE", task + "?reason=%ff", "reason"},
		{"DELETE", task + "?reason=" + strings.Repeat("x", 513), "reason"},
		{"GET", "/tasks?status=done", "status"},
		{"GET", "/tasks?status=", "status"},
		{"GET", "/tasks?kind=", "kind"},
		{"GET", "/tasks?limit=0", "limit"},
		{"GET", "/tasks?after=zzz", "after"},
		{"GET", "/tasks?sort=label", "sort"},
		{"GET", "/events?observe=1", "observe"},
		{"GET", "/events?agent=", "agent"},
		{"GET", "/agents?x=1", "x"},
		{"DELETE", "/agents/default?x=1", "x"},
		{"POST", "/auth/code?x=1", "x"},
		{"POST", "/auth/renew?x=1", "x"},
	} {
		p := w.call(c.method, c.path, "").refused(http.StatusBadRequest, "invalid")
		w.is.Contains(p.Detail, c.says, c.path)
	}
	p := w.call(http.MethodPost, "/tasks?wait=true&timeout_ms=0", w.body(registrytest.Script{})).refused(http.StatusBadRequest, "invalid")
	w.is.Contains(p.Detail, "timeout_ms")
	w.is.Equal(1, w.jobs.Starts())
}

// TestStalledBodyIsNotWaitedFor: a call whose body does not come is answered all
// the same, and starts nothing. Where the body is not wanted the answer comes
// before any time is over.
func TestStalledBodyIsNotWaitedFor(t *testing.T) {
	w := newWorld(t, func(s *setup) { s.api.WriteTimeout = 2 * time.Second })
	for _, c := range []struct{ name, request, host, token, status string }{
		{"wanted", "POST /tasks", "localhost", w.token, "400"},
		{"no token", "POST /tasks", "localhost", "x", "401"},
		{"foreign host", "POST /tasks", "evil.example", w.token, "421"},
		{"bad query", "POST /tasks?wait=maybe", "localhost", w.token, "400"},
		{"unknown path", "POST /nowhere", "localhost", w.token, "404"},
		{"list", "GET /tasks", "localhost", w.token, "400"},
		{"health", "GET /healthz", "localhost", "", "400"},
		{"code", "POST /auth/code", "localhost", w.token, "201"},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn, err := net.Dial("tcp", w.server.Listener.Addr().String())
			require.NoError(t, err)
			t.Cleanup(func() { _ = conn.Close() })
			require.NoError(t, conn.SetDeadline(time.Now().Add(30*time.Second)))
			_, err = io.WriteString(conn, c.request+" HTTP/1.1\r\nHost: "+c.host+"\r\nAuthorization: Bearer "+c.token+
				"\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{")
			require.NoError(t, err)
			answer, err := io.ReadAll(conn)
			require.NoError(t, err, "the server closes the connection")
			require.Contains(t, string(answer), "HTTP/1.1 "+c.status+" ")
		})
	}
	w.is.Zero(w.jobs.Starts())
}

// TestWaitOutlivesTheTimeOfABody: the bound of the body is none of the wait.
func TestWaitOutlivesTheTimeOfABody(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(s *setup) { s.api.WriteTimeout = 3 * time.Second })
	read := into[wire.TaskRead](w.call(http.MethodPost, "/tasks?wait=true&timeout_ms=4000", w.body(registrytest.Script{})).ok(http.StatusCreated))
	w.is.Equal(wire.Running, read.Snapshot.Status)
}
