package api_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"afoot/api/wire"
	"afoot/auth"
	"afoot/registry"
	"afoot/registry/registrytest"
)

func TestInput(t *testing.T) {
	w := newWorld(t)
	var got []string
	w.start(registrytest.Script{Input: func(_ ctx, _ *registrytest.Work, data []byte, last bool) (registry.InputResult, error) {
		got = append(got, string(data))
		return registry.InputResult{Written: len(data), Closed: last}, nil
	}})
	for _, c := range []struct {
		body, data string
		closed     bool
	}{
		{`{"data":"héllo\n"}`, "héllo\n", false},
		{`{"dataBase64":"AP8="}`, "\x00\xff", false},
		{`{"data":""}`, "", false},
		{`{"data":"x","close":true}`, "x", true},
		{`{"close":true}`, "", true},
	} {
		a := w.call(http.MethodPost, "/tasks/bash-1/input", c.body).ok(http.StatusOK)
		w.is.Equal(wire.InputResult{Written: len(c.data), Closed: c.closed}, into[wire.InputResult](a), c.body)
		w.is.Equal(c.data, got[len(got)-1])
	}
	for _, body := range []string{`{}`, `{"close":false}`, `{"data":"x","dataBase64":"eA=="}`, `{"dataBase64":"eA"}`, `{"dataBase64":"eB=="}`,
		`{"dataBase64":"YQ==\n"}`, `{"dataBase64":"YWJj\r\nZGVm"}`, `{"dataBase64":" YQ=="}`, `{"dataBase64":"-_8="}`} {
		w.call(http.MethodPost, "/tasks/bash-1/input", body).refused(http.StatusBadRequest, "invalid")
	}
	w.is.Len(got, 5)
	large := `{"data":"` + strings.Repeat("x", 2<<20) + `"}`
	w.call(http.MethodPost, "/tasks/bash-1/input", large).refused(http.StatusRequestEntityTooLarge, "too_large")
	w.call(http.MethodPost, "/tasks/bash-9/input", `{"data":"x"}`).refused(http.StatusNotFound, "unknown_task")
	w.as(auth.Claims{Session: "bob", Scopes: auth.TasksWrite}).call(http.MethodPost, "/tasks/bash-1/input", `{"data":"x"}`).refused(http.StatusForbidden, "foreign_task")
	w.as(auth.Claims{Session: "alice", Scopes: auth.TasksRead}).call(http.MethodPost, "/tasks/bash-1/input", `{"data":"x"}`).refused(http.StatusForbidden, "forbidden")
}

// TestInputOfATaskThatDoesNotRead comes back after its bound, with what was taken,
// and holds up no other call about the task.
func TestInputOfATaskThatDoesNotRead(t *testing.T) {
	w := newWorld(t, func(s *setup) { s.api.InputTimeout = 200 * time.Millisecond })
	blocked := make(chan struct{})
	w.start(registrytest.Script{Input: func(c context.Context, _ *registrytest.Work, _ []byte, _ bool) (registry.InputResult, error) {
		close(blocked)
		<-c.Done()
		return registry.InputResult{Written: 3}, nil
	}})
	got := make(chan answer, 1)
	go func() { got <- w.call(http.MethodPost, "/tasks/bash-1/input", `{"data":"hello","close":true}`) }()
	<-blocked
	w.get("/tasks/bash-1").ok(http.StatusOK)
	w.get("/tasks/bash-1/output?offset=0").ok(http.StatusOK)
	a := (<-got).ok(http.StatusOK)
	w.is.Equal(wire.InputResult{Written: 3}, into[wire.InputResult](a))
}

func TestSignal(t *testing.T) {
	w := newWorld(t)
	var got []string
	work := w.start(registrytest.Script{Signal: func(_ *registrytest.Work, name string) error {
		got = append(got, name)
		if name == "NOPE" {
			return registry.Errorf(registry.CodeInvalid, "There is no signal NOPE.")
		}
		return nil
	}})
	signal := func(body string) answer { return w.call(http.MethodPost, "/tasks/bash-1/signal", body) }
	w.is.Empty(signal(`{"signal":"INT"}`).ok(http.StatusNoContent).body)
	signal(`{"signal":"NOPE"}`).refused(http.StatusBadRequest, "invalid")
	for _, body := range []string{`{}`, `{"signal":""}`, `{"signal":2}`, `{"signal":null}`, `{"signal":"INT","x":1}`} {
		signal(body).refused(http.StatusBadRequest, "invalid")
	}
	w.is.Equal([]string{"INT", "NOPE"}, got)
	work.Complete("exit code: 0")
	w.is.Contains(signal(`{"signal":"INT"}`).refused(http.StatusConflict, "conflict").Detail, "completed")
	w.is.False(w.snapshot("bash-1").Reported)
}
