package api_test

import (
	"context"
	"io"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"afoot/api/wire"
	"afoot/auth"
	"afoot/registry"
	"afoot/registry/registrytest"
	"afoot/sse"
)

// rotatable is a world with a secret file that is known.
func rotatable(t *testing.T) (w *world, rotate func(keep time.Duration)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "state", "secret")
	w = newWorld(t, withBackground, func(s *setup) { s.auth.SecretFile = path })
	return w, func(keep time.Duration) {
		t.Helper()
		w.is.NoError(auth.RotateSecret(path, keep))
	}
}

// TestRotationEndsStreamsAndWaits, although no call gives it away; what they waited for
// is due to whoever comes with a good token.
func TestRotationEndsStreamsAndWaits(t *testing.T) {
	w, rotate := rotatable(t)
	work := w.start(registrytest.Script{})
	work.Output.Append("x")
	session, _ := w.hello(), w.get("/tasks/bash-1/output").ok(http.StatusOK)
	streams := []*stream{w.subscribe(""), w.listen("/tasks/bash-1/events")}
	expects[wire.Snapshot](streams[1], "status")
	_, lines := w.mcpStream(session)
	log, err := w.server.Client().Do(w.request(t.Context(), http.MethodGet, "/tasks/bash-1/log?follow=true", ""))
	w.is.NoError(err)
	defer log.Body.Close()

	waits := []func() answer{
		func() answer { return w.get("/tasks/bash-1/output?wait=true") },
		func() answer { return w.get("/tasks/bash-1/output?wait=true&offset=1") },
		func() answer { return w.get("/tasks/bash-1/output?wait=true&offset=1&view=plain") },
		func() answer {
			return w.call(http.MethodPost, "/tools/task_output", `{"task_id":"bash-1","wait":true}`)
		},
		func() answer {
			res, err := w.post(context.Background(), readCall(2, `{"task_id":"bash-1","wait":true}`), "Mcp-Session-Id", session)
			w.is.NoError(err)
			defer res.Body.Close()
			return w.answered(res)
		},
	}
	answers := make(chan answer, len(waits))
	for _, wait := range waits {
		go func() { answers <- wait() }()
	}
	w.waiters("bash-1", len(waits))

	rotate(0)
	for range waits {
		(<-answers).refused(http.StatusUnauthorized, "unauthenticated")
	}
	for _, s := range streams {
		w.is.JSONEq(`{"reason":"token_expired"}`, s.next("bye", "task.done", "end").data)
		s.ends()
	}
	w.is.Contains(rest(lines), sse.ByeTokenExpired)
	_, err = io.ReadAll(log.Body)
	w.is.Error(err, "it is cut off")
	w.get("/tasks").refused(http.StatusUnauthorized, "unauthenticated")

	work.Complete("exit code: 0")
	w.is.False(w.snapshot("bash-1").Reported)
	w.token = w.mint(auth.Claims{Session: "alice", Scopes: auth.TasksRead | auth.TasksWrite}, time.Hour)
	w.subscribe("").next("task.done")
}

// TestRotationWhileAReadIsAnswered: it is refused, and the end stays due.
func TestRotationWhileAReadIsAnswered(t *testing.T) {
	for name, read := range map[string]func(*world) answer{
		"read":     func(w *world) answer { return w.get("/tasks/bash-1/output") },
		"wait":     func(w *world) answer { return w.get("/tasks/bash-1/output?wait=true") },
		"the tool": func(w *world) answer { return w.call(http.MethodPost, "/tools/task_output", `{"task_id":"bash-1"}`) },
		"mcp": func(w *world) answer {
			res, err := w.post(context.Background(), readCall(2, `{"task_id":"bash-1"}`), "Mcp-Session-Id", w.hello())
			w.is.NoError(err)
			defer res.Body.Close()
			return w.answered(res)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, rotate := rotatable(t)
			claims := auth.Claims{Session: "alice", Scopes: auth.TasksRead | auth.TasksWrite}
			w.ended("x")
			other := *w
			rotated := make(chan struct{})
			w.faulty.afterRead = func() {
				rotate(0)
				other.token = w.mint(claims, time.Hour) // which finds the new secret
				close(rotated)
			}
			read(w).refused(http.StatusUnauthorized, "unauthenticated")
			<-rotated
			w.is.False(w.snapshot("bash-1").Reported)
			other.subscribe("").next("task.done")
		})
	}
}

// TestRotationBeforeANotice: no stream of an old key carries what comes afterwards.
func TestRotationBeforeANotice(t *testing.T) {
	w, rotate := rotatable(t)
	work := w.start(registrytest.Script{})
	s, observer := w.subscribe(""), w.subscribe("?observe=true")
	rotate(0)
	w.token = w.mint(auth.Claims{Session: "alice", Scopes: auth.TasksRead | auth.TasksWrite}, time.Hour)
	work.Complete("exit code: 0")
	s.next("bye", "task.done")
	observer.next("bye", "task.done")
	w.subscribe("").next("task.done")
}

// TestKeptSecretBoundsAStream: it lasts as long as the old secret does.
func TestKeptSecretBoundsAStream(t *testing.T) {
	w, rotate := rotatable(t)
	work := w.start(registrytest.Script{})
	s := w.subscribe("")
	until := time.Now().Add(3 * time.Second)
	rotate(3 * time.Second)
	work.Complete("exit code: 0")
	s.next("task.done", "bye")
	s.next("bye")
	w.is.False(time.Now().Before(until))
}

// TestRotationStopsForeground: it stops a command that is waited for.
func TestRotationStopsForeground(t *testing.T) {
	w, rotate := rotatable(t)
	done := make(chan answer, 1)
	go func() { done <- w.call(http.MethodPost, "/tools/bash", w.bash(registrytest.Script{}, "")) }()
	w.eventually(func() bool { return w.jobs.Work("bash-1") != nil }, "started")
	rotate(0)
	p := (<-done).refused(http.StatusUnauthorized, "unauthenticated")
	w.is.Equal("The token expired while this call was waiting; the command that it ran is stopped.", p.Detail)
	w.is.Len(w.jobs.Work("bash-1").Cancels(), 1)
	_, err := w.service.Get(context.Background(), registry.Caller{Session: "alice"}, "bash-1")
	w.is.NoError(err)
}
