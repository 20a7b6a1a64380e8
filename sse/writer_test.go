package sse_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"afoot/sse"

	"github.com/stretchr/testify/require"
)

// accountant is a middleware's writer: its Flush has no error to give.
type accountant struct {
	http.ResponseWriter
	flushes *atomic.Int32
}

func (a accountant) Flush()                      { a.flushes.Add(1); a.ResponseWriter.(http.Flusher).Flush() }
func (a accountant) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// opaque is one that hides what is beneath.
type opaque struct{ http.ResponseWriter }

func (o opaque) Flush() { o.ResponseWriter.(http.Flusher).Flush() }

func TestAWrapperThatSwallowsErrorsDoesNotFakeADelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var flushes atomic.Int32
		b := newBubble(t, sse.Config{WriteTimeout: time.Second},
			func(w http.ResponseWriter) http.ResponseWriter { return accountant{w, &flushes} })
		defer b.end()
		dial(t, b.http, "http://afoot/?session=s", "")
		addTo(b.Hub, "s", "1") // waits in the server's buffer until the flush
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Zero(t, b.Streams())
		require.EqualValues(t, 2, flushes.Load(), "the wrapper keeps its accounts")
		b.connect("session=s", "").notices("1")
	})
}

func TestAWriterThatHidesErrorsIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, sse.Config{}, func(w http.ResponseWriter) http.ResponseWriter { return opaque{w} })
		defer b.end()
		c := dial(t, b.http, "http://afoot/?session=s", "")
		require.Equal(t, http.StatusInternalServerError, c.resp.StatusCode)
		require.Zero(t, b.Streams())
	})
}

// Over HTTP/2 a write deadline that is left behind would end an idle stream.
func TestHTTP2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, sse.Config{WriteTimeout: time.Second, Heartbeat: time.Hour})
		b.speakHTTP2()
		defer b.end()
		c := b.connect("session=s", "")
		require.Equal(t, 2, c.resp.ProtoMajor)
		require.Empty(t, c.resp.Header.Get("Connection"))
		addTo(b.Hub, "s", "1")
		c.notices("1")

		unread := dial(t, b.http, "http://afoot/?session=t", "")
		require.Equal(t, http.StatusOK, unread.resp.StatusCode)
		big := strings.Repeat("x", 8<<20) // more than the client's window
		addTo(b.Hub, "t", big)
		synctest.Wait()
		require.Equal(t, 2, b.Streams())
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, 1, b.Streams(), "only the one that was stuck is cut")
		b.connect("session=t", "").notices(big)

		addTo(b.Hub, "s", "2")
		c.notices("2")
		c.close()
		synctest.Wait()
		require.Equal(t, 1, b.Streams())
	})
}

// buffer is a connection in memory. Every flush waits for its verdict.
type buffer struct {
	bytes.Buffer
	header  http.Header
	flushes chan error
}

func newBuffer() *buffer { return &buffer{header: http.Header{}, flushes: make(chan error)} }

func (b *buffer) Header() http.Header              { return b.header }
func (b *buffer) WriteHeader(int)                  {}
func (b *buffer) Flush()                           { _ = b.FlushError() }
func (b *buffer) FlushError() error                { return <-b.flushes }
func (b *buffer) SetWriteDeadline(time.Time) error { return nil }

// late is a buffer whose error comes when the wrapper's flush is over already.
type late struct{ *buffer }

func (l late) Flush()            {}
func (l late) FlushError() error { return l.buffer.FlushError() }

func TestOnlyAFlushWithoutErrorInALiveRequestDelivers(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		name      string
		wrap      func(*buffer) http.ResponseWriter
		leaves    bool
		gone      bool
		err       error
		delivered bool
	}{
		{name: "written", delivered: true},
		{name: "failed", err: broken},
		{name: "failed unseen by a wrapper", err: broken, wrap: func(b *buffer) http.ResponseWriter {
			return accountant{late{b}, new(atomic.Int32)}
		}},
		{name: "taken by a client who left with it", leaves: true, delivered: true},
		{name: "sent to a client who had left", gone: true},
		{name: "sent to a client who had left, and noticed", leaves: true, gone: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hub := sse.NewHub(sse.Config{})
				addTo(hub, "s", "1")
				try := func(w http.ResponseWriter, flushes chan error, leaves, gone bool, verdict error) {
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					done := make(chan error)
					go func() {
						done <- hub.Serve(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil), sse.Subscription{Session: "s", Gone: func() bool { return gone }})
					}()
					flushes <- nil // headers
					synctest.Wait()
					if leaves {
						cancel()
					}
					select {
					case flushes <- verdict:
					default: // nothing to flush
					}
					synctest.Wait()
					cancel()
					require.NoError(t, <-done)
				}
				first, second := newBuffer(), newBuffer()
				var w http.ResponseWriter = first
				if c.wrap != nil {
					w = c.wrap(first)
				}
				try(w, first.flushes, c.leaves, c.gone, c.err)
				require.Contains(t, first.String(), "data: 1\n")
				try(second, second.flushes, false, false, nil)
				require.Equal(t, c.delivered, second.Len() == 0)
				require.NoError(t, hub.Close(t.Context(), sse.ByeShutdown))
			})
		})
	}
}

// FuzzWire sends any notice through the whole room and reads it as a client does.
func FuzzWire(f *testing.F) {
	f.Add("task.done", []byte(`{"a":1}`))
	f.Add("", []byte(""))
	f.Add("x\ry", []byte("id: \n\rdata: \n"))
	f.Add("x\n\ny", []byte("\r\n\r\n: no comment\nevent: e\x00"))
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		hub := sse.NewHub(sse.Config{Epoch: "e"})
		ctx, cancel := context.WithCancel(context.Background())
		w := newBuffer()
		done := make(chan error)
		go func() {
			done <- hub.Serve(w, httptest.NewRequestWithContext(ctx, "GET", "/", nil), sse.Subscription{Session: "s"})
		}()
		w.flushes <- nil
		hub.Append("s", sse.Notice{Event: name, Data: bytes.Clone(data)})
		w.flushes <- nil
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
