package api_test

import (
	"net/http"
	"testing"

	"afoot/api/wire"
	"afoot/auth"
	"afoot/registry"
	"afoot/registry/registrytest"
)

func TestList(t *testing.T) {
	w := newWorld(t)
	ids := func(path string) (got []string, next string) {
		list := into[wire.TaskList](w.get(path).ok(http.StatusOK))
		for _, s := range list.Tasks {
			got = append(got, s.Id)
		}
		return got, list.Next
	}
	w.is.JSONEq(`{"tasks":[]}`, string(w.get("/tasks").body), "an empty list is a list")
	for i := range 5 {
		work := w.start(registrytest.Script{})
		if i%2 == 0 {
			work.Complete("exit code: 0")
		}
	}
	w.as(auth.Claims{Session: "bob", Scopes: auth.TasksWrite}).start(registrytest.Script{})
	w.as(auth.Claims{Scopes: auth.TasksWrite}).start(registrytest.Script{})

	all, next := ids("/tasks")
	w.is.Equal([]string{"bash-1", "bash-2", "bash-3", "bash-4", "bash-5", "bash-7"}, all)
	w.is.Empty(next)
	got, _ := ids("/tasks?status=running")
	w.is.Equal([]string{"bash-2", "bash-4", "bash-7"}, got)
	got, _ = ids("/tasks?kind=pty")
	w.is.Empty(got)
	got, _ = ids("/tasks?kind=bash&limit=1001")
	w.is.Equal(all, got)

	var paged []string
	for path := "/tasks?limit=2"; ; {
		page, next := ids(path)
		paged = append(paged, page...)
		if next == "" {
			break
		}
		path = "/tasks?limit=2&after=" + next
	}
	w.is.Equal(all, paged)
}

func TestGet(t *testing.T) {
	w := newWorld(t)
	w.start(registrytest.Script{Label: "l"})
	d := into[wire.TaskDescription](w.get("/tasks/bash-1").ok(http.StatusOK))
	w.is.Equal("l", d.Label)
	w.is.Zero(d.Waiters)
	w.is.Contains(string(d.Request), `"command":"scripted 1"`)
	w.call(http.MethodHead, "/tasks/bash-1", "").ok(http.StatusOK)
	w.is.Equal("bash-1", into[wire.TaskDescription](w.get("/tasks/bash%2D1")).Id)
}

// TestFence: what is not the caller's is refused by the same words on every call.
func TestFence(t *testing.T) {
	w := newWorld(t)
	w.ended("secret\n")
	w.start(registrytest.Script{})
	w.call(http.MethodDelete, "/tasks/bash-1?purge=true", "").ok(http.StatusNoContent)
	bob := w.as(auth.Claims{Session: "bob", Scopes: auth.TasksRead | auth.TasksWrite})
	for _, c := range []struct {
		from   *world
		id     string
		status int
		code   string
	}{
		{bob, "bash-2", 403, "foreign_task"},
		{w.as(auth.Claims{Scopes: auth.TasksWrite}), "bash-2", 403, "foreign_task"},
		{w, "bash-1", 410, "gone"},
		{w, "bash-3", 404, "unknown_task"},
		{w, "bash-0", 404, "unknown_task"},
		{w, "bash-01", 404, "unknown_task"},
		{w, "bash-99999999999999999999", 404, "unknown_task"},
		{w, "bash", 404, "unknown_task"},
		{w, "bash%2F..%2F1", 404, "unknown_task"},
		{w, "%ff", 404, "unknown_task"},
	} {
		for _, call := range []struct{ method, path, body string }{
			{"GET", "", ""},
			{"GET", "/output", ""},
			{"GET", "/output?wait=true", ""},
			{"GET", "/output?offset=0", ""},
			{"POST", "/ack", `{"nextOffset":0}`},
			{"POST", "/input", `{"data":"x"}`},
			{"GET", "/log", ""},
			{"GET", "/log?follow=true", ""},
			{"DELETE", "", ""},
			{"DELETE", "?purge=true", ""},
		} {
			p := c.from.call(call.method, "/tasks/"+c.id+call.path, call.body).refused(c.status, c.code)
			w.is.NotContains(p.Detail, "secret")
		}
	}
	w.is.Equal(registry.StatusRunning, w.snapshot("bash-2").Status)
	w.is.JSONEq(`{"tasks":[]}`, string(bob.get("/tasks").body))
}

func TestKill(t *testing.T) {
	w := newWorld(t)
	work := w.start(registrytest.Script{})
	for range 2 {
		k := into[wire.KillResult](w.call(http.MethodDelete, "/tasks/bash-1?reason=enough%20%E2%80%93%20stop", "").ok(http.StatusAccepted))
		w.is.Equal(wire.Requested, k.Outcome)
		w.is.Equal(wire.Stopping, k.Snapshot.Status)
		w.is.True(k.Snapshot.Reported)
	}
	w.is.Equal("enough – stop", work.Cancels()[0])
	w.call(http.MethodDelete, "/tasks/bash-1?purge=true", "").refused(http.StatusConflict, "conflict")
	work.Output.Append("bye\n")
	work.Settle(registry.Outcome{Status: registry.StatusKilled, Detail: "signal: SIGTERM"})
	k := into[wire.KillResult](w.call(http.MethodDelete, "/tasks/bash-1", "").ok(http.StatusOK))
	w.is.Equal(wire.AlreadyFinished, k.Outcome)
	w.is.Equal("signal: SIGTERM", k.Snapshot.Detail)
	w.is.Equal("bye\n", into[wire.TaskRead](w.get("/tasks/bash-1/output")).Text)
	w.is.Empty(w.call(http.MethodDelete, "/tasks/bash-1?purge=true", "").ok(http.StatusNoContent).body)
	w.get("/tasks/bash-1").refused(http.StatusGone, "gone")
	w.is.Equal(1, work.Discards())
}

func TestRefusedKill(t *testing.T) {
	w := newWorld(t)
	w.start(registrytest.Script{Cancel: func(*registrytest.Work, string) error {
		return registry.Errorf(registry.CodeUnavailable, "not now")
	}})
	p := w.call(http.MethodDelete, "/tasks/bash-1", "").refused(http.StatusServiceUnavailable, "unavailable")
	w.is.Contains(p.Detail, "not now")
	s := w.snapshot("bash-1")
	w.is.Equal(registry.StatusRunning, s.Status)
	w.is.False(s.Reported)
}

func TestInputThatIsRefused(t *testing.T) {
	w := newWorld(t)
	w.start(registrytest.Script{})
	w.ended("a")
	for _, c := range []struct{ id, says string }{{"bash-1", "running"}, {"bash-2", "completed"}} {
		for _, body := range []string{`{"data":"x"}`, `{"data":""}`, `{"dataBase64":"eA=="}`, `{"close":true}`, `{"data":"x","close":true}`} {
			p := w.call(http.MethodPost, "/tasks/"+c.id+"/input", body).refused(http.StatusConflict, "conflict")
			w.is.Contains(p.Detail, c.says)
		}
	}
	for _, body := range []string{`{}`, `{"close":false}`, `{"data":"x","dataBase64":"eA=="}`, `{"dataBase64":"%"}`, `{"data":1}`, `{"data":null}`, `{"bytes":"x"}`} {
		w.call(http.MethodPost, "/tasks/bash-1/input", body).refused(http.StatusBadRequest, "invalid")
	}
}
