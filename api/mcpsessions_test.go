package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"afoot/auth"
	"afoot/registry/registrytest"
	"afoot/sse"
)

// mcpStream opens the stream of a raw MCP session and gives its lines.
func (w *world) mcpStream(id string) (res *http.Response, lines chan string) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w.t.Cleanup(cancel)
	res, err := w.server.Client().Do(w.request(ctx, http.MethodGet, "/mcp", "", "Accept", "text/event-stream", "Mcp-Session-Id", id))
	w.is.NoError(err)
	lines = make(chan string, 100)
	go func() {
		defer close(lines)
		defer res.Body.Close()
		for scan := bufio.NewScanner(res.Body); scan.Scan(); {
			lines <- scan.Text()
		}
	}()
	return res, lines
}

// rest reads a stream to its end.
func rest(lines chan string) string {
	var all []string
	for line := range lines {
		all = append(all, line)
	}
	return strings.Join(all, "\n")
}

func (w *world) status(id, body string) int {
	w.t.Helper()
	res, err := w.post(context.Background(), body, "Mcp-Session-Id", id)
	w.is.NoError(err)
	defer res.Body.Close()
	return res.StatusCode
}

const ping = `{"jsonrpc":"2.0","id":9,"method":"ping"}`

func TestMCPSessionsAreBounded(t *testing.T) {
	w := newWorld(t, withBackground, func(s *setup) { s.api.MCP.MaxSessions = 2 })
	first, second := w.hello(), w.hello()
	w.is.Equal(http.StatusOK, w.status(first, ping))
	third := w.hello()
	w.is.Equal(http.StatusNotFound, w.status(second, ping), "the one that was silent longest")
	w.is.Equal(http.StatusOK, w.status(first, ping))
	bob := w.as(auth.Claims{Session: "bob", Scopes: auth.TasksRead})
	bob.hello()

	w.mcpStream(first)
	w.mcpStream(third)
	res, err := w.post(context.Background(), hello)
	w.is.NoError(err)
	defer res.Body.Close()
	w.is.Equal(http.StatusTooManyRequests, res.StatusCode)
	var p struct{ Limit, Code string }
	w.is.NoError(json.NewDecoder(res.Body).Decode(&p))
	w.is.Equal("AFOOT_MAX_MCP_SESSIONS", p.Limit)
}

func TestMCPSessionEndsWithSilence(t *testing.T) {
	t.Parallel()
	const idle = 3 * time.Second
	w := newWorld(t, withBackground, func(s *setup) { s.api.MCP.Idle = idle })
	meter := w.as(auth.Claims{Session: "alice", Scopes: auth.Metrics}) // a look that breaks no silence
	count := func() string { return string(meter.get("/metrics").body) }
	id := w.hello()
	res, lines := w.mcpStream(id)
	w.is.Equal(http.StatusOK, res.StatusCode)
	// While its stream is open it is not silent.
	for begun := time.Now(); time.Since(begun) < idle+idle/4; {
		w.is.Contains(count(), "afoot_mcp_sessions 1")
		<-time.After(10 * time.Millisecond)
	}
	w.server.CloseClientConnections()
	rest(lines)
	w.eventually(func() bool { return strings.Contains(count(), "afoot_mcp_sessions 0") }, "gone")
	w.is.Equal(http.StatusNotFound, w.status(id, ping))
	w.is.Equal(http.StatusOK, w.status(w.hello(), ping))
}

func TestMCPStreamEndsWithToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withBackground)
	id := w.hello()
	w.token = w.mint(auth.Claims{Session: "alice", Scopes: auth.TasksRead}, 5*time.Second)
	_, lines := w.mcpStream(id)
	w.is.Contains(rest(lines), sse.ByeTokenExpired)
}

func TestMCPSessionEndsWithItsAgent(t *testing.T) {
	w := newWorld(t, withBackground)
	w.start(registrytest.Script{Cancel: func(work *registrytest.Work, _ string) error { go work.Complete("exit code: 0"); return nil }})
	id := w.hello()
	_, lines := w.mcpStream(id)
	w.call(http.MethodDelete, "/agents/default", "").ok(http.StatusNoContent)
	rest(lines)
	w.is.Equal(http.StatusNotFound, w.status(id, ping))
}

func TestMCPStreamsHaveTheSessionsPlaces(t *testing.T) {
	w := newWorld(t, withBackground, func(s *setup) { s.sse.MaxStreamsPerSession = 1 })
	first, second := w.hello(), w.hello()
	_, lines := w.mcpStream(first)
	res, refused := w.mcpStream(second)
	w.is.Equal(http.StatusTooManyRequests, res.StatusCode)
	w.is.Contains(rest(refused), "AFOOT_MAX_STREAMS_PER_SESSION")
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	w.is.NoError(w.hub.Close(ctx, sse.ByeShutdown))
	w.is.Contains(rest(lines), sse.ByeShutdown)
}

// TestMCPMissedUpdate: whoever had no stream when the task ended hears of it on the
// next one.
func TestMCPMissedUpdate(t *testing.T) {
	w := newWorld(t, withBackground)
	work := w.start(registrytest.Script{})
	id := w.hello()
	w.is.Equal(http.StatusOK, w.status(id, `{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"afoot://tasks/bash-1/log"}}`))
	work.Complete("exit code: 0")
	w.eventually(func() bool { return w.snapshot("bash-1").Status.Terminal() }, "ended")
	_, lines := w.mcpStream(id)
	for line := range lines {
		if strings.Contains(line, "notifications/resources/updated") {
			w.is.Contains(line, "afoot://tasks/bash-1/log")
			return
		}
	}
	w.is.Fail("no update")
}

// TestMCPBatch: an answer to several calls is delivered as a whole.
func TestMCPBatch(t *testing.T) {
	w := newWorld(t, withBackground)
	id := w.hello()
	w.ended("one")
	w.ended("two")
	res, err := w.post(context.Background(), fmt.Sprintf("[%s,%s]", readCall(2, `{"task_id":"bash-1"}`), readCall(3, `{"task_id":"bash-2"}`)),
		"Mcp-Session-Id", id, "Mcp-Protocol-Version", "2025-03-26")
	w.is.NoError(err)
	defer res.Body.Close()
	var answers []struct{ ID int }
	w.is.NoError(json.NewDecoder(res.Body).Decode(&answers))
	w.is.Len(answers, 2)
	w.eventually(func() bool { return w.snapshot("bash-1").Reported && w.snapshot("bash-2").Reported }, "both reported")
}

func TestMCPSubscriptionsAreBounded(t *testing.T) {
	w := newWorld(t, withBackground, func(s *setup) { s.api.MCP.MaxSubscriptions = 1 })
	w.start(registrytest.Script{})
	w.start(registrytest.Script{})
	id := w.hello()
	subscribe := func(what, task string) string {
		res, err := w.post(context.Background(), `{"jsonrpc":"2.0","id":2,"method":"resources/`+what+`","params":{"uri":"afoot://tasks/`+task+`/log"}}`, "Mcp-Session-Id", id)
		w.is.NoError(err)
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		w.is.NoError(err)
		return string(text)
	}
	w.is.Contains(subscribe("subscribe", "bash-1"), `"result"`)
	w.is.Contains(subscribe("subscribe", "bash-1"), `"result"`, "the same again is none more")
	w.is.Contains(subscribe("subscribe", "bash-2"), "AFOOT_MAX_MCP_SUBSCRIPTIONS")
	w.is.Contains(subscribe("unsubscribe", "bash-1"), `"result"`)
	w.is.Contains(subscribe("subscribe", "bash-2"), `"result"`)
}

// TestMCPRefusalsAreProblems: what is no message of the protocol is refused like any
// request of the API.
func TestMCPRefusalsAreProblems(t *testing.T) {
	w := newWorld(t, withBackground)
	id := w.hello()
	for _, c := range []struct {
		body    string
		headers []string
		status  int
		code    string
	}{
		{"no json", nil, http.StatusBadRequest, "invalid"},
		{" ", nil, http.StatusBadRequest, "invalid"},
		{`{"hello":1}`, nil, http.StatusBadRequest, "invalid"},
		{"[1,2]", nil, http.StatusBadRequest, "invalid"},
		{ping, []string{"Accept", "text/html"}, http.StatusBadRequest, "invalid"},
		{ping, []string{"Content-Type", "text/plain"}, http.StatusUnsupportedMediaType, "unsupported_media"},
		{ping, []string{"Mcp-Session-Id", "none"}, http.StatusNotFound, "not_found"},
		{ping, []string{"MCP-Protocol-Version", "1999-01-01"}, http.StatusBadRequest, "invalid"},
	} {
		res, err := w.post(context.Background(), c.body, append([]string{"Mcp-Session-Id", id}, c.headers...)...)
		w.is.NoError(err)
		w.is.Equal(c.status, res.StatusCode, "%+v", c)
		w.is.Equal("application/problem+json", res.Header.Get("Content-Type"), "%+v", c)
		var p struct{ Code, Detail string }
		w.is.NoError(json.NewDecoder(res.Body).Decode(&p))
		w.is.NoError(res.Body.Close())
		w.is.Equal(c.code, p.Code, "%+v", c)
		w.is.NotEmpty(p.Detail)
		w.is.NotContains(p.Detail, "Bad Request")
		w.is.NotContains(p.Detail, "\n")
	}
	w.is.Equal(http.StatusOK, w.status(id, ping), "the session goes on")
	for _, method := range []string{http.MethodGet, http.MethodDelete} { // the newest protocol has no sessions
		got := w.call(method, "/mcp", "", "Accept", "application/json, text/event-stream", "Mcp-Protocol-Version", "2026-07-28")
		w.is.Equal(http.StatusMethodNotAllowed, got.status, method)
		w.is.Equal("POST", got.header.Get("Allow"), method)
		w.is.Contains(string(got.body), "method_not_allowed", method)
	}
}
