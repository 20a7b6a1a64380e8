package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"afoot/api/wire"
	"afoot/auth"
	"afoot/registry"
	"afoot/registry/registrytest"
	"afoot/sse"
)

// stream is an open event stream.
type stream struct {
	w    *world
	res  *http.Response
	in   *bufio.Scanner
	stop func()
}

type event struct{ id, kind, data string }

func (w *world) subscribe(query string, headers ...string) *stream {
	w.t.Helper()
	return w.listen("/events"+query, headers...)
}

func (w *world) listen(path string, headers ...string) *stream {
	w.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	r := w.request(ctx, http.MethodGet, path, "", headers...)
	res, err := w.server.Client().Do(r)
	w.is.NoError(err)
	w.check(exchange{request: r, status: res.StatusCode, header: res.Header})
	w.t.Cleanup(func() { stop(); res.Body.Close() })
	w.is.Equal(http.StatusOK, res.StatusCode)
	w.is.True(strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream"))
	w.is.Equal("no-store", res.Header.Get("Cache-Control"))
	return &stream{w: w, res: res, in: bufio.NewScanner(res.Body), stop: stop}
}

// next gives the next event of a kind; others are passed over, but for those that
// forbidden names.
func (s *stream) next(kind string, forbidden ...string) event {
	s.w.t.Helper()
	for {
		e, ok := s.any()
		s.w.is.True(ok, "the stream ended before %s: %v", kind, s.in.Err())
		if e.kind == kind {
			return e
		}
		s.w.is.NotContains(forbidden, e.kind)
	}
}

func (s *stream) any() (event, bool) {
	var e event
	for s.in.Scan() {
		field, value, _ := strings.Cut(s.in.Text(), ": ")
		switch field {
		case "id":
			e.id = value
		case "event":
			e.kind = value
		case "data":
			e.data = value
		case "":
			if e.data != "" {
				return e, true
			}
			e = event{}
		}
	}
	return e, false
}

func TestNotice(t *testing.T) {
	w := newWorld(t)
	s := w.subscribe("")
	snap := into[wire.Snapshot](w.call(http.MethodPost, "/tasks", `{"kind":"bash","command":"x","label":"<b> & c","outputLimitBytes":64}`))
	s.next("tasks.changed")
	work := w.jobs.Work(registry.ID(snap.Id))
	work.Output.Append("boom\n")
	work.Settle(registry.Outcome{Status: registry.StatusCompleted, Detail: "exit code: 9", Result: json.RawMessage(`{"exitCode":9}`)})
	e := s.next("task.done")
	w.is.NotEmpty(e.id)
	var done wire.TaskDone
	w.is.NoError(json.Unmarshal([]byte(e.data), &done))
	w.is.Equal("background task bash-1 (ba\n[notice truncated]\nDone; task_output.", done.Text)
	w.is.Equal("<b> & c", done.Task.Label)
	w.is.Equal("exit code: 9", done.Task.Detail)
	w.is.JSONEq(`{"exitCode":9}`, string(done.Task.Result))
	w.is.EqualValues(5, done.Task.OutputBytes)
	w.is.NotZero(done.Task.FinishedAt)
	w.is.False(done.Task.Reported)
}

// TestReportedEndsAreNotAnnounced: by a wait, a kill, an ack, or the record's end.
func TestReportedEndsAreNotAnnounced(t *testing.T) {
	w := newWorld(t)
	read := w.ended("a")
	w.get("/tasks/" + string(read.ID) + "/output").ok(http.StatusOK)
	killed := w.start(registrytest.Script{})
	w.call(http.MethodDelete, "/tasks/"+string(killed.ID), "").ok(http.StatusAccepted)
	killed.Settle(registry.Outcome{Status: registry.StatusKilled})
	acked := w.ended("a")
	w.get("/tasks/"+string(acked.ID)+"/output", "Afoot-Ack", "explicit").ok(http.StatusOK)
	w.call(http.MethodPost, "/tasks/"+string(acked.ID)+"/ack", `{"nextOffset":1}`).ok(http.StatusNoContent)
	purged := w.ended("a")
	w.call(http.MethodDelete, "/tasks/"+string(purged.ID)+"?purge=true", "").ok(http.StatusNoContent)
	w.call(http.MethodPost, "/agents", "").ok(http.StatusCreated)
	disposed := w.start(registrytest.Script{}, "Afoot-Agent", "agent-1")
	disposed.Complete("exit code: 0")
	w.call(http.MethodDelete, "/agents/agent-1", "").ok(http.StatusNoContent)
	w.eventually(func() bool { return w.snapshot(read.ID).Reported }, "reported")

	due := w.ended("a")
	e := w.subscribe("").next("task.done", "gap")
	w.is.Contains(e.data, `"id":"`+string(due.ID)+`"`)
}

// TestLostAnswerMakesItsNoticeDue: a notice that was held for an answer comes all
// the same if the answer is lost, and only if it had not come before.
func TestLostAnswerMakesItsNoticeDue(t *testing.T) {
	w := newWorld(t)
	held := w.ended("a")
	lose := func() *registry.Delivery {
		d, err := w.service.Read(context.Background(), registry.Caller{Session: "alice"}, held.ID, registry.ReadOptions{})
		w.is.NoError(err)
		return d
	}
	d := lose()
	due := w.ended("b")
	s := w.subscribe("")
	w.is.Contains(s.next("task.done").data, `"id":"`+string(due.ID)+`"`)
	d.Abandon()
	w.is.Contains(s.next("task.done").data, `"id":"`+string(held.ID)+`"`)

	lose().Abandon()
	w.call(http.MethodHead, "/tasks/"+string(held.ID)+"/output", "").ok(http.StatusOK)
	last := w.ended("c")
	w.is.Contains(s.next("task.done").data, `"id":"`+string(last.ID)+`"`)
}

// TestHeldNotice: while an explicit read is not acknowledged, its notice waits.
func TestHeldNotice(t *testing.T) {
	w := newWorld(t)
	held := w.ended("a")
	w.get("/tasks/"+string(held.ID)+"/output", "Afoot-Ack", "explicit").ok(http.StatusOK)
	due := w.ended("b")
	e := w.subscribe("").next("task.done", "gap")
	w.is.Contains(e.data, `"id":"`+string(due.ID)+`"`)
}

func TestObservers(t *testing.T) {
	w := newWorld(t)
	w.ended("a")
	for _, s := range []*stream{
		w.subscribe("?observe=true"),
		w.as(auth.Claims{Session: "alice", Scopes: auth.TasksRead}).subscribe(""),
		w.as(auth.Claims{Session: "alice", Scopes: auth.TasksRead}).subscribe("?observe=false"),
	} {
		s.next("task.done")
		s.stop()
	}
	s := w.subscribe("")
	e := s.next("task.done")
	s.stop()
	w.ended("b")
	next := w.subscribe("", "Last-Event-ID", e.id).next("task.done", "gap")
	w.is.Contains(next.data, `"bash-2"`)
}

func TestForeignEvents(t *testing.T) {
	w := newWorld(t)
	w.ended("a")
	e := w.subscribe("").next("task.done")
	bob := w.as(auth.Claims{Session: "bob", Scopes: auth.TasksWrite})
	s := bob.subscribe("", "Last-Event-ID", e.id)
	s.next("gap", "task.done")
	nobody := w.as(auth.Claims{Scopes: auth.TasksWrite}).subscribe("")
	w.ended("b")
	w.as(auth.Claims{Scopes: auth.TasksWrite}).start(registrytest.Script{})
	s.next("tasks.changed", "task.done")
	nobody.next("tasks.changed", "task.done")
}

func TestEventsOfOneAgent(t *testing.T) {
	w := newWorld(t)
	w.call(http.MethodPost, "/agents", "").ok(http.StatusCreated)
	w.get("/events?agent=agent-9").refused(http.StatusNotFound, "unknown_agent")
	w.get("/events?agent=agent-9&observe=true").refused(http.StatusNotFound, "unknown_agent")
	one := w.subscribe("?agent=agent-1")
	watched := w.subscribe("?agent=agent-1&observe=true")
	pinned := w.as(auth.Claims{Session: "alice", Agent: "agent-1", Scopes: auth.TasksRead}).subscribe("")
	w.ended("default's")
	work := w.start(registrytest.Script{}, "Afoot-Agent", "agent-1")
	work.Complete("exit code: 0")
	for _, s := range []*stream{one, watched, pinned} {
		w.is.Contains(s.next("task.done").data, `"bash-2"`)
	}
	w.is.Contains(w.subscribe("?agent=default").next("task.done").data, `"bash-1"`)
}

// TestStreamHoldsTheLease of the agent that it delivers for.
func TestStreamHoldsTheLease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 3 {
		w.call(http.MethodPost, "/agents", `{"leaseMs":3000}`).ok(http.StatusCreated)
	}
	delivering := w.subscribe("?agent=agent-1")
	w.subscribe("?agent=agent-2&observe=true")
	acting := w.subscribe("?observe=true", "Afoot-Agent", "agent-3")
	lives := func(id string) bool {
		agents, err := w.service.ListAgents(context.Background(), registry.Caller{Session: "alice"})
		w.is.NoError(err)
		return slices.ContainsFunc(agents, func(g registry.Agent) bool { return g.ID == id })
	}
	w.eventually(func() bool { return !lives("agent-2") }, "watching holds no lease")
	w.is.True(lives("agent-1"))
	w.is.True(lives("agent-3"))
	delivering.stop()
	acting.stop()
	w.eventually(func() bool { return !lives("agent-1") && !lives("agent-3") }, "leases run out behind their streams")
}

func TestTooManyStreams(t *testing.T) {
	w := newWorld(t, func(s *setup) { s.sse.MaxStreamsPerSession = 1 })
	w.subscribe("")
	p := w.get("/events").refused(http.StatusTooManyRequests, "limit_reached")
	w.is.Equal("AFOOT_MAX_STREAMS_PER_SESSION", p.Limit)
	w.call(http.MethodHead, "/events", "").ok(http.StatusOK)
	// Callers without a session are told apart.
	bob := w.as(auth.Claims{Subject: "bob", Scopes: auth.TasksRead})
	bob.subscribe("")
	bob.get("/events").refused(http.StatusTooManyRequests, "limit_reached")
	w.as(auth.Claims{Subject: "carol", Scopes: auth.TasksRead}).subscribe("")
}

func TestStreamEnds(t *testing.T) {
	t.Run("with its token", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.token = w.mint(auth.Claims{Session: "alice", Scopes: auth.TasksRead}, 3*time.Second)
		s := w.subscribe("")
		require.JSONEq(t, `{"reason":"token_expired"}`, s.next("bye").data)
		_, more := s.any()
		require.False(t, more)
	})
	t.Run("with the daemon", func(t *testing.T) {
		w := newWorld(t)
		s := w.subscribe("")
		require.NoError(t, w.hub.Close(context.Background(), sse.ByeShutdown))
		require.JSONEq(t, `{"reason":"shutdown"}`, s.next("bye").data)
		_, err := io.ReadAll(s.res.Body)
		require.NoError(t, err)
		w.get("/events").refused(http.StatusServiceUnavailable, "unavailable")
	})
}
