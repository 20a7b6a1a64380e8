package sse_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"afoot/sse"

	"github.com/stretchr/testify/require"
)

// accountant is a middleware's writer: its Flush has no error to give.
type accountant struct {
	http.ResponseWriter
	flushes *int
}

func (a accountant) Flush()                      { *a.flushes++; a.ResponseWriter.(http.Flusher).Flush() }
func (a accountant) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// opaque is one that hides what is beneath.
type opaque struct{ http.ResponseWriter }

func (o opaque) Flush() { o.ResponseWriter.(http.Flusher).Flush() }

func wrapped(wrap func(http.ResponseWriter) http.ResponseWriter) func(*httptest.Server) {
	return func(s *httptest.Server) {
		inner := s.Config.Handler
		s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			inner.ServeHTTP(wrap(w), r)
		})
	}
}

func TestAWrapperThatSwallowsErrorsDoesNotFakeADelivery(t *testing.T) {
	var flushes int
	h := newHouse(t, sse.Config{WriteTimeout: 100 * time.Millisecond, LogSize: 10_000}, narrowServer,
		wrapped(func(w http.ResponseWriter) http.ResponseWriter { return accountant{w, &flushes} }))
	conn := stuck(t, h.server.Listener.Addr().String(), "session=s")
	defer func() { _ = conn.Close() }()
	h.streams(1)
	// Small enough to wait in the server's buffer until the flush, and more than
	// the kernel takes.
	pad := strings.Repeat("x", 1000)
	for n := range 10_000 {
		h.add("s", strconv.Itoa(n)+pad)
	}
	h.streams(0)
	arrived := 0
	require.Error(t, parse(conn, func(event) { arrived++ }))
	require.Less(t, arrived, 9_000)
	require.GreaterOrEqual(t, flushes, arrived, "the wrapper keeps its accounts")
	c := h.connect("s", "")
	for n := arrived; n < 10_000; n++ {
		require.Equal(t, strconv.Itoa(n)+pad, c.next().Data)
	}
}

func TestAWriterThatHidesErrorsIsRefused(t *testing.T) {
	h := newHouse(t, sse.Config{}, wrapped(func(w http.ResponseWriter) http.ResponseWriter { return opaque{w} }))
	c := dial(t, h.server.Client(), h.url("s"), "")
	require.Equal(t, http.StatusInternalServerError, c.resp.StatusCode)
	require.Zero(t, h.Streams())
}

// Over HTTP/2 a write deadline that is left behind would end an idle stream.
func TestHTTP2(t *testing.T) {
	h := newHouse(t, sse.Config{WriteTimeout: time.Second, Heartbeat: time.Hour}, func(s *httptest.Server) {
		s.EnableHTTP2 = true
		s.TLS = &tls.Config{MinVersion: tls.VersionTLS13}
		s.Config.ReadTimeout, s.Config.WriteTimeout = 0, 0
	})
	c := h.connect("s", "")
	require.Equal(t, 2, c.resp.ProtoMajor)
	require.Empty(t, c.resp.Header.Get("Connection"))
	h.add("s", "1")
	c.notices("1")

	unread := dial(t, h.server.Client(), h.url("t"), "")
	require.Equal(t, http.StatusOK, unread.resp.StatusCode)
	h.streams(2)
	big := strings.Repeat("x", 8<<20) // more than the client's window
	h.add("t", big)
	h.streams(1) // more than the write time-out has passed by now
	again := h.connect("t", "")
	again.notices(big)

	h.add("s", "2")
	c.notices("2")
	c.close()
	again.close()
	h.streams(0)
}

// buffer is a connection in memory.
type buffer struct {
	bytes.Buffer
	header  http.Header
	flushed chan struct{}
}

func (b *buffer) Header() http.Header              { return b.header }
func (b *buffer) WriteHeader(int)                  {}
func (b *buffer) FlushError() error                { b.flushed <- struct{}{}; return nil }
func (b *buffer) SetWriteDeadline(time.Time) error { return nil }

// FuzzWire sends any notice through the whole room and reads it as a client does.
func FuzzWire(f *testing.F) {
	f.Add("task.done", []byte(`{"a":1}`))
	f.Add("", []byte(""))
	f.Add("x\ry", []byte("id: \n\rid: \n"))
	f.Add("x\n\ny", []byte("\r\n\r\n: no comment\nevent: e\x00"))
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		hub := sse.NewHub(sse.Config{Epoch: "e"})
		ctx, cancel := context.WithCancel(context.Background())
		w := &buffer{header: http.Header{}, flushed: make(chan struct{})}
		done := make(chan error)
		go func() {
			done <- hub.Serve(w, httptest.NewRequestWithContext(ctx, "GET", "/", nil), sse.Subscription{Session: "s"})
		}()
		<-w.flushed
		hub.Append("s", sse.Notice{Event: name, Data: bytes.Clone(data)})
		<-w.flushed
		cancel()
		require.NoError(t, <-done)
		require.NoError(t, hub.Close(context.Background(), sse.ByeShutdown))

		name, _, _ = strings.Cut(strings.ReplaceAll(name, "\r", "\n"), "\n")
		want := strings.ReplaceAll(strings.ReplaceAll(string(data), "\r\n", "\n"), "\r", "\n")
		if want == "" {
			want = "{}"
		}
		var got []event
		require.ErrorContains(t, parse(&w.Buffer, func(e event) { got = append(got, e) }), "EOF")
		require.Equal(t, []event{{ID: "e-1", Name: name, Data: want}}, got)
	})
}
