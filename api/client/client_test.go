package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"afoot/api/client"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// dial serves one scripted answer per request, in order.
func dial(t *testing.T, answers ...http.HandlerFunc) *client.Client {
	t.Helper()
	next := make(chan http.HandlerFunc, len(answers))
	for _, a := range answers {
		next <- a
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case answer := <-next:
			answer(w, r)
		default:
			w.WriteHeader(http.StatusTeapot)
		}
	}))
	t.Cleanup(server.Close)
	c, err := client.NewClient(server.URL, client.WithHTTPClient(server.Client()))
	require.NoError(t, err)
	return c
}

func problem(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"type":"urn:afoot:problem:%s","title":"t","status":%d,"detail":"no","code":%q,"requestId":"r-1"}`, code, status, code)
}

// says streams text, whole, or broken off behind it.
func says(text string, broken bool) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, text)
		_ = http.NewResponseController(w).Flush()
		if broken {
			panic(http.ErrAbortHandler)
		}
	}
}

// after asserts what the stream is asked to resume from.
func after(t *testing.T, id string, then http.HandlerFunc) http.HandlerFunc {
	t.Helper()
	return func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Last-Event-ID"); got != id {
			t.Errorf("resumed after %q, not %q", got, id)
		}
		then(w, r)
	}
}

// TestSubscribeResumesBehindTheLastWholeEvent, also when a stream breaks between an
// event's id and its end.
func TestSubscribeResumesBehindTheLastWholeEvent(t *testing.T) {
	c := dial(t,
		after(t, "", says("id: e-1\nevent: task.done\ndata: {\"text\":\"one\"}\n\n: heartbeat\n\nid: e-2\nevent: task.done\n", true)),
		after(t, "e-1", func(w http.ResponseWriter, _ *http.Request) { problem(w, http.StatusServiceUnavailable, "unavailable") }),
		after(t, "e-1", says("id: e-2\r\nevent: task.done\r\ndata: two\r\ndata: lines\r\n\r\nevent: tasks.changed\ndata: {}\n\n", false)),
		after(t, "e-2", func(w http.ResponseWriter, _ *http.Request) {
			problem(w, http.StatusUnauthorized, "unauthenticated")
		}),
	)
	var got []string
	var last error
	retries := 0
	for e, err := range c.Subscribe(context.Background(), client.Subscription{Retry: func(error, time.Duration) { retries++ }}) {
		if last = err; err == nil {
			got = append(got, e.ID+" "+e.Type+" "+string(e.Data))
		}
	}
	require.Equal(t, []string{`e-1 task.done {"text":"one"}`, "e-2 task.done two\nlines", " tasks.changed {}"}, got)
	require.Equal(t, 3, retries)
	refusal, ok := errors.AsType[*client.RefusalError](last)
	require.True(t, ok)
	require.Equal(t, client.ErrorCodeUnauthenticated, refusal.Code)
	require.Equal(t, "no (unauthenticated)", refusal.Error())
}

func TestSubscribeEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c := dial(t, func(w http.ResponseWriter, r *http.Request) {
		says("event: bye\ndata: {}\n\n", false)(w, r)
		<-r.Context().Done()
	})
	var last error
	for e, err := range c.Subscribe(ctx, client.Subscription{}) {
		if last = err; err == nil {
			require.Equal(t, "bye", e.Type)
			cancel()
		}
	}
	require.ErrorIs(t, last, context.Canceled)
}

func TestSubscribeStopsWithItsReader(t *testing.T) {
	c := dial(t, says("event: a\ndata: 1\n\nevent: b\ndata: 2\n\n", false))
	for e, err := range c.Subscribe(context.Background(), client.Subscription{}) {
		require.NoError(t, err)
		require.Equal(t, "a", e.Type)
		break
	}
}

// TestSilentStreamIsTakenForDead: without heartbeats it is opened again.
func TestSilentStreamIsTakenForDead(t *testing.T) {
	c := dial(t,
		func(w http.ResponseWriter, r *http.Request) {
			says("event: a\ndata: 1\n\n", false)(w, r)
			<-r.Context().Done()
		},
		says("event: b\ndata: 2\n\n", false),
	)
	var types []string
	for e, err := range c.Subscribe(context.Background(), client.Subscription{Silence: 2 * time.Second}) {
		require.NoError(t, err)
		if types = append(types, e.Type); len(types) == 2 {
			break
		}
	}
	require.Equal(t, []string{"a", "b"}, types)
}

// TestOversizedEventEndsTheStream: memory is bounded, and trying again is no use.
func TestOversizedEventEndsTheStream(t *testing.T) {
	for _, text := range []string{
		"data: " + strings.Repeat("x", 5<<20),
		strings.Repeat("data: "+strings.Repeat("x", 1<<20)+"\n", 9),
	} {
		var last error
		for _, err := range dial(t, says(text, false)).Subscribe(context.Background(), client.Subscription{}) {
			last = err
		}
		require.ErrorContains(t, last, "larger than")
	}
}

func TestEventData(t *testing.T) {
	done, err := client.Event{Type: "task.done", Data: []byte(`{"text":"t","task":{"id":"bash-1"}}`)}.Done()
	require.NoError(t, err)
	require.Equal(t, "bash-1", done.Task.Id)
	_, err = client.Event{Type: "bye"}.Done()
	require.Error(t, err)
}

// from asserts where a log is asked for.
func from(t *testing.T, rng string, then http.HandlerFunc) http.HandlerFunc {
	t.Helper()
	return func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Range"); got != rng || r.URL.Query().Get("follow") != "true" {
			t.Errorf("asked for %q of %s, not for %q", got, r.URL, rng)
		}
		then(w, r)
	}
}

func unsatisfiable(first, size int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Afoot-Offset", strconv.Itoa(first))
		w.Header().Set("Content-Range", fmt.Sprintf("bytes */%d", size))
		problem(w, http.StatusRequestedRangeNotSatisfiable, "range_not_satisfiable")
	}
}

func TestFollowResumesWhereItBroke(t *testing.T) {
	c := dial(t, from(t, "bytes=0-", says("one\n", true)), from(t, "bytes=4-", says("two\n", false)))
	var out bytes.Buffer
	next, err := c.Follow(context.Background(), "bash-1", 0, client.GetLogParams{}, &out)
	require.NoError(t, err)
	require.EqualValues(t, 8, next)
	require.Equal(t, "one\ntwo\n", out.String())
}

func TestFollowEnds(t *testing.T) {
	follow := func(c *client.Client, at int64, w io.Writer) (int64, error) {
		return c.Follow(context.Background(), "bash-1", at, client.GetLogParams{}, w)
	}
	_, err := follow(dial(t, from(t, "bytes=5-", unsatisfiable(9, 20))), 5, io.Discard)
	require.Equal(t, &client.BehindError{At: 5, First: 9}, err)
	next, err := follow(dial(t, from(t, "bytes=20-", unsatisfiable(9, 20))), 20, io.Discard)
	require.NoError(t, err)
	require.EqualValues(t, 20, next)
	_, err = follow(dial(t, from(t, "bytes=21-", unsatisfiable(9, 20))), 21, io.Discard)
	require.Error(t, err)
	_, err = follow(dial(t, func(w http.ResponseWriter, _ *http.Request) { problem(w, http.StatusNotFound, "unknown_task") }), 0, io.Discard)
	require.ErrorContains(t, err, "unknown_task")
	_, err = follow(dial(t, says("x", false)), 0, brokenWriter{})
	require.ErrorIs(t, err, io.ErrClosedPipe)
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestCheck(t *testing.T) {
	c := dial(t,
		func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			problem(w, http.StatusTooManyRequests, "limit_reached")
		},
		func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "a proxy's page", http.StatusBadGateway) },
		func(w http.ResponseWriter, _ *http.Request) { problem(w, http.StatusInternalServerError, "internal") },
	)
	get := func() *client.RefusalError {
		_, err := client.Check(c.GetVersion(context.Background()))
		refusal, ok := errors.AsType[*client.RefusalError](err)
		require.True(t, ok, "%v", err)
		return refusal
	}
	limited := get()
	require.Equal(t, 7*time.Second, limited.RetryAfter)
	require.True(t, limited.Temporary())
	strange := get()
	require.Equal(t, http.StatusBadGateway, strange.Status)
	require.True(t, strange.Temporary())
	require.Equal(t, "no (request r-1)", get().Error())
}
