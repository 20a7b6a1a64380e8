package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"afoot/api/wire"
	"afoot/auth"
	"afoot/registry"
	"afoot/registry/registrytest"
	"afoot/sse"
)

// expects the next event to be of a kind, and reads its data.
func expects[T any](s *stream, kind string) (event, T) {
	s.w.t.Helper()
	e, ok := s.any()
	s.w.is.True(ok, "the stream ended before %s: %v", kind, s.in.Err())
	s.w.is.Equal(kind, e.kind, "%+v", e)
	var data T
	s.w.is.NoError(json.Unmarshal([]byte(e.data), &data))
	return e, data
}

func (s *stream) ends() {
	s.w.t.Helper()
	e, ok := s.any()
	s.w.is.False(ok, "%+v", e)
	s.w.is.NoError(s.in.Err())
}

// outputs expects output events until their text is as long as want, and gives the
// last id.
func (s *stream) outputs(want string) (id string) {
	s.w.t.Helper()
	got := ""
	for len(got) < len(want) {
		e, out := expects[wire.TaskOutput](s, "output")
		s.w.is.NotEmpty(e.id)
		s.w.is.Zero(out.SkippedBytes)
		id, got = e.id, got+out.Text
	}
	s.w.is.Equal(want, got)
	return id
}

func TestTaskEvents(t *testing.T) {
	w := newWorld(t)
	work := w.start(registrytest.Script{})
	work.Output.Append("one\n")
	s := w.listen("/tasks/bash-1/events")
	first, snap := expects[wire.Snapshot](s, "status")
	w.is.Empty(first.id)
	w.is.Equal(wire.Running, snap.Status)
	w.is.Equal("4", s.outputs("one\n"))
	work.Output.Append("\xe7\x95")
	work.Output.Append("\x8c\xff\n")
	w.is.Equal("9", s.outputs("界\ufffd\n"))
	w.call(http.MethodDelete, "/tasks/bash-1", "").ok(http.StatusAccepted)
	_, snap = expects[wire.Snapshot](s, "status")
	w.is.Equal(wire.Stopping, snap.Status)
	w.is.True(snap.Reported)
	work.Output.Append("bye\n\xe7")
	work.Settle(registry.Outcome{Status: registry.StatusKilled, Detail: "signal: SIGTERM"})
	w.is.Equal("14", s.outputs("bye\n\ufffd"))
	_, snap = expects[wire.Snapshot](s, "end")
	w.is.Equal(wire.Killed, snap.Status)
	w.is.Equal("signal: SIGTERM", snap.Detail)
	w.is.EqualValues(14, snap.OutputBytes)
	s.ends()
	w.eventually(func() bool { return work.Output.OpenLogs() == 0 && w.hub.Streams() == 0 }, "nothing of the stream is left")
}

// TestTaskEventsMoveNothing: nothing is consumed and nothing marked, and the scope
// that only looks is enough.
func TestTaskEventsMoveNothing(t *testing.T) {
	w := newWorld(t)
	w.ended("one\n")
	r := w.as(auth.Claims{Session: "alice", Scopes: auth.TasksRead})
	for range 2 {
		s := r.listen("/tasks/bash-1/events")
		_, snap := expects[wire.Snapshot](s, "status")
		w.is.Equal(wire.Completed, snap.Status)
		s.outputs("one\n")
		_, snap = expects[wire.Snapshot](s, "end")
		w.is.False(snap.Reported)
		s.ends()
	}
	w.is.False(w.snapshot("bash-1").Reported)
	w.is.Equal("one\n", into[wire.TaskRead](w.get("/tasks/bash-1/output")).Text)
	w.as(auth.Claims{Session: "bob", Scopes: auth.TasksRead}).get("/tasks/bash-1/events").refused(http.StatusForbidden, "foreign_task")
}

func TestTaskEventsResume(t *testing.T) {
	w := newWorld(t)
	work := w.start(registrytest.Script{})
	work.Output.Append("0123456789")
	work.Output.Drop(4)
	for _, c := range []struct {
		query, id, gap string
		text           string
		skipped        int64
	}{
		{"", "", "", "456789", 4},
		{"?offset=2", "", "", "456789", 2},
		{"?offset=4", "", "", "456789", 0},
		{"?offset=8", "", "", "89", 0},
		{"?offset=8", "6", "", "6789", 0},
		{"", "6", "", "6789", 0},
		{"", "1", "", "456789", 3},
		{"", "11", sse.GapAhead, "456789", 0},
		{"?offset=8", "99999999999999999999", sse.GapNotAnID, "456789", 0},
		{"", "x", sse.GapNotAnID, "456789", 0},
		{"", "-1", sse.GapNotAnID, "456789", 0},
		{"", "06", sse.GapNotAnID, "456789", 0},
	} {
		s := w.listen("/tasks/bash-1/events"+c.query, "Last-Event-ID", c.id)
		if c.gap != "" {
			_, reason := expects[wire.Reason](s, "gap")
			w.is.Equal(c.gap, reason.Reason, "%+v", c)
		}
		expects[wire.Snapshot](s, "status")
		e, out := expects[wire.TaskOutput](s, "output")
		w.is.Equal("10", e.id)
		w.is.Equal(wire.TaskOutput{Text: c.text, SkippedBytes: c.skipped}, out, "%+v", c)
		s.stop()
		w.eventually(func() bool { return w.hub.Streams() == 0 }, "the place is free again")
	}
	// The end of the output is a place too.
	s := w.listen("/tasks/bash-1/events", "Last-Event-ID", "10")
	expects[wire.Snapshot](s, "status")
	work.Output.Append("ab")
	s.outputs("ab")
	w.get("/tasks/bash-1/events?offset=13").refused(http.StatusBadRequest, "invalid")
	w.get("/tasks/bash-1/events?offset=x").refused(http.StatusBadRequest, "invalid")
}

// TestTaskEventsOfDroppedOutput: a hole is told, also one at the end.
func TestTaskEventsOfDroppedOutput(t *testing.T) {
	w := newWorld(t)
	work := w.start(registrytest.Script{})
	work.Output.Append("0123456789")
	work.Output.Drop(10)
	s := w.listen("/tasks/bash-1/events?offset=3")
	expects[wire.Snapshot](s, "status")
	work.Complete("exit code: 0")
	e, out := expects[wire.TaskOutput](s, "output")
	w.is.Equal(wire.TaskOutput{SkippedBytes: 7}, out)
	w.is.Equal("10", e.id)
	expects[wire.Snapshot](s, "end")
	s.ends()
}

// TestTaskEventsPieces: a long output comes in pieces that are valid by themselves
// and join to the whole.
func TestTaskEventsPieces(t *testing.T) {
	w := newWorld(t)
	whole := strings.Repeat("0界", 100_000)
	w.ended(whole)
	res := w.get("/tasks/bash-1/events").ok(http.StatusOK)
	var got strings.Builder
	pieces := 0
	for line := range strings.Lines(string(res.body)) {
		data, ok := strings.CutPrefix(line, "data: {\"text\":")
		if !ok {
			continue
		}
		var out wire.TaskOutput
		w.is.NoError(json.Unmarshal([]byte(`{"text":`+data), &out))
		w.is.True(utf8.ValidString(out.Text))
		w.is.LessOrEqual(len(out.Text), 64<<10)
		got.WriteString(out.Text)
		pieces++
	}
	w.is.Greater(pieces, 4)
	w.is.Equal(whole, got.String())
}

func TestTaskEventsOfFinalOutput(t *testing.T) {
	w := newWorld(t)
	work := w.start(registrytest.Script{Final: true})
	s := w.listen("/tasks/bash-1/events")
	expects[wire.Snapshot](s, "status")
	work.Settle(registry.Outcome{Status: registry.StatusCompleted, Output: "answer"})
	s.outputs("answer")
	expects[wire.Snapshot](s, "end")
	s.ends()
}

func TestTaskEventsOfStderr(t *testing.T) {
	w := newWorld(t)
	work := w.start(registrytest.Script{Split: true})
	s := w.listen("/tasks/bash-1/events?stream=stderr")
	expects[wire.Snapshot](s, "status")
	work.Output.Append("out\n")
	work.Stderr.Append("err\n")
	w.is.Equal("4", s.outputs("err\n"))
	work.Complete("exit code: 0")
	expects[wire.Snapshot](s, "end")
	s.ends()
}

// TestTaskEventsEndBeforeTheirTime: with the token, with the daemon, and with the
// task's record.
func TestTaskEventsEndBeforeTheirTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(registrytest.Script{})
	bye := func(s *stream, reason string) {
		t.Helper()
		e := s.next("bye", "end")
		w.is.JSONEq(`{"reason":"`+reason+`"}`, e.data)
		s.ends()
	}
	short := *w
	short.token = w.mint(auth.Claims{Session: "alice", Scopes: auth.TasksRead}, 5*time.Second)
	bye(short.listen("/tasks/bash-1/events"), sse.ByeTokenExpired)
	s := w.listen("/tasks/bash-1/events")
	expects[wire.Snapshot](s, "status")
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	w.is.NoError(w.hub.Close(ctx, sse.ByeShutdown))
	bye(s, sse.ByeShutdown)
	w.get("/tasks/bash-1/events").refused(http.StatusServiceUnavailable, "unavailable")
}

func TestTaskEventsOfARemovedTask(t *testing.T) {
	w := newWorld(t)
	w.call(http.MethodPost, "/agents", "").ok(http.StatusCreated)
	work := w.start(registrytest.Script{Cancel: func(work *registrytest.Work, _ string) error {
		go work.Settle(registry.Outcome{Status: registry.StatusKilled})
		return nil
	}}, "Afoot-Agent", "agent-1")
	conn := w.stalled("/tasks/"+string(work.ID)+"/events", work)
	w.call(http.MethodDelete, "/agents/agent-1", "").ok(http.StatusNoContent)
	body := conn.rest()
	w.is.Contains(body, "event: bye\ndata: {\"reason\":\"gone\"}")
	w.is.NotContains(body, "event: end")
}

// TestTaskEventsHaveALimit: they count as streams of the session.
func TestTaskEventsHaveALimit(t *testing.T) {
	w := newWorld(t, func(s *setup) { s.sse.MaxStreamsPerSession = 2 })
	w.start(registrytest.Script{})
	w.subscribe("")
	s := w.listen("/tasks/bash-1/events")
	for _, path := range []string{"/events", "/tasks/bash-1/events"} {
		w.is.Equal("AFOOT_MAX_STREAMS_PER_SESSION", w.get(path).refused(http.StatusTooManyRequests, "limit_reached").Limit)
	}
	s.stop()
	w.eventually(func() bool { return w.hub.Streams() == 1 }, "the place is free again")
	expects[wire.Snapshot](w.listen("/tasks/bash-1/events"), "status")
}

func TestTaskEventsHeartbeat(t *testing.T) {
	w := newWorld(t, func(s *setup) { s.sse.Heartbeat = 20 * time.Millisecond })
	w.start(registrytest.Script{})
	s := w.listen("/tasks/bash-1/events")
	beats := 0
	for beats < 3 && s.in.Scan() {
		if s.in.Text() == ": heartbeat" {
			beats++
		}
	}
	w.is.Equal(3, beats)
}

// stalledConn is a caller who asks for a stream and does not read it.
type stalledConn struct {
	w    *world
	conn net.Conn
}

// stalled opens a stream and waits until its caller holds it up.
func (w *world) stalled(path string, work *registrytest.Work) *stalledConn {
	w.t.Helper()
	conn, err := net.Dial("tcp", w.server.Listener.Addr().String())
	w.is.NoError(err)
	w.t.Cleanup(func() { conn.Close() })
	w.is.NoError(conn.(*net.TCPConn).SetReadBuffer(4 << 10))
	_, err = fmt.Fprintf(conn, "GET %s HTTP/1.0\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", path, w.token)
	w.is.NoError(err)
	w.eventually(func() bool { return work.Output.OpenLogs() > 0 }, "the stream is open")
	work.Output.Append(strings.Repeat("x", 16<<20))
	return &stalledConn{w: w, conn: conn}
}

func (c *stalledConn) rest() string {
	c.w.t.Helper()
	c.w.is.NoError(c.conn.SetReadDeadline(time.Now().Add(20 * time.Second)))
	var all strings.Builder
	buf := make([]byte, 256<<10)
	for {
		n, err := c.conn.Read(buf)
		all.Write(buf[:n])
		if err != nil {
			return all.String()
		}
	}
}

// TestSlowWatcherSlowsNobody: one that does not read is cut after the bound of a
// write; others and the work go on meanwhile.
func TestSlowWatcherSlowsNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(s *setup) { s.sse.WriteTimeout = 2 * time.Second })
	work := w.start(registrytest.Script{})
	w.stalled("/tasks/bash-1/events", work)
	s := w.listen("/tasks/bash-1/events?offset=16777216")
	expects[wire.Snapshot](s, "status")
	work.Output.Append("live\n")
	s.outputs("live\n")
	w.eventually(func() bool { return w.hub.Streams() == 1 }, "the stalled one is cut")
	work.Output.Append("on\n")
	s.outputs("on\n")
}
