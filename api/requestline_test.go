package api_test

import (
	"bufio"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"afoot/registry/registrytest"
)

// line is the one line about a request.
type line struct {
	Level, Request, Method, Path, Code, Task, Session, Agent, Trace string
	Msg                                                             string
	Time                                                            time.Time
	Status                                                          int
	Bytes                                                           int64
	Duration                                                        time.Duration
	Aborted                                                         bool
}

// lines gives the lines about one path.
func (w *world) lines(path string) (found []line) {
	w.t.Helper()
	for scan := bufio.NewScanner(strings.NewReader(w.log.String())); scan.Scan(); {
		var l line
		w.is.NoError(json.Unmarshal(scan.Bytes(), &l), scan.Text())
		if l.Msg == "request" && l.Path == path {
			found = append(found, l)
		}
	}
	return found
}

// newLogged is a world that logs as JSON.
func newLogged(t *testing.T) *world {
	t.Helper()
	log := &logBuffer{}
	w := newWorld(t, func(s *setup) {
		s.api.Logger = slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	w.log = log
	return w
}

// TestRequestLine: one line per request, at its end, with what it was about and what
// became of it.
func TestRequestLine(t *testing.T) {
	w := newLogged(t)
	w.ended("the output")
	w.get("/tasks/bash-1").ok(http.StatusOK)
	w.get("/tasks/bash-9").refused(http.StatusNotFound, "unknown_task")
	w.get("/tasks/not%20one").refused(http.StatusNotFound, "unknown_task")
	w.get("/agents").ok(http.StatusOK)
	w.get("/version", "Authorization", "").refused(http.StatusUnauthorized, "unauthenticated")
	w.get("/healthz", "Host", "evil.example").refused(http.StatusMisdirectedRequest, "foreign_host")
	for _, c := range []struct {
		path string
		want line
	}{
		{"/tasks", line{Level: "DEBUG", Method: "POST", Code: "201", Status: 201, Task: "bash-1"}},
		{"/tasks/bash-1", line{Level: "DEBUG", Method: "GET", Code: "200", Status: 200, Task: "bash-1"}},
		{"/tasks/bash-9", line{Level: "INFO", Method: "GET", Code: "unknown_task", Status: 404, Task: "bash-9"}},
		{"/tasks/not one", line{Level: "INFO", Method: "GET", Code: "unknown_task", Status: 404}},
		{"/agents", line{Level: "DEBUG", Method: "GET", Code: "200", Status: 200}},
		{"/version", line{Level: "INFO", Method: "GET", Code: "unauthenticated", Status: 401}},
		{"/healthz", line{Level: "INFO", Method: "GET", Code: "foreign_host", Status: 421}},
	} {
		w.eventually(func() bool { return len(w.lines(c.path)) > 0 }, c.path)
		all := w.lines(c.path)
		w.is.Len(all, 1, c.path)
		got := all[0]
		w.is.NotEmpty(got.Request)
		w.is.Positive(got.Duration)
		w.is.Positive(got.Bytes)
		if c.want.Code != "unauthenticated" && c.want.Code != "foreign_host" {
			w.is.Len(got.Session, 12)
		}
		c.want.Msg, c.want.Path, c.want.Session = "request", c.path, got.Session
		c.want.Request, c.want.Duration, c.want.Bytes, c.want.Time = got.Request, got.Duration, got.Bytes, got.Time
		w.is.Equal(c.want, got)
	}
}

// TestRequestLineOfLongCalls: waits and streams have their line when they end.
func TestRequestLineOfLongCalls(t *testing.T) {
	w := newLogged(t)
	work := w.start(registrytest.Script{})
	answered := make(chan answer, 1)
	go func() { answered <- w.get("/tasks/bash-1/output?wait=true") }()
	w.waiters("bash-1", 1)
	res, err := w.server.Client().Do(w.request(t.Context(), http.MethodGet, "/tasks/bash-1/events", ""))
	w.is.NoError(err)
	defer res.Body.Close()
	w.is.Empty(w.lines("/tasks/bash-1/output"))
	w.is.Empty(w.lines("/tasks/bash-1/events"))
	work.Complete("exit code: 0")
	(<-answered).ok(http.StatusOK)
	for _, path := range []string{"/tasks/bash-1/output", "/tasks/bash-1/events"} {
		w.eventually(func() bool { return len(w.lines(path)) == 1 }, path)
		w.is.Equal("bash-1", w.lines(path)[0].Task)
		w.is.Equal("200", w.lines(path)[0].Code)
		w.is.Positive(w.lines(path)[0].Bytes)
	}
	read, err := io.ReadAll(res.Body)
	w.is.NoError(err)
	w.is.Equal(int64(len(read)), w.lines("/tasks/bash-1/events")[0].Bytes)

	work = w.start(registrytest.Script{})
	s := w.subscribe("")
	work.Complete("exit code: 0")
	s.next("task.done")
	s.stop()
	w.eventually(func() bool { return len(w.lines("/events")) == 1 }, "/events")
	w.is.Greater(w.lines("/events")[0].Bytes, int64(100))
}
