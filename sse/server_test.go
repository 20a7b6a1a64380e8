package sse_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"testing"
	"time"

	"afoot/sse"

	"github.com/stretchr/testify/require"
)

// handler serves the hub's streams; the query is the subscription.
func handler(hub *sse.Hub) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		sub := sse.Subscription{
			Session:     q.Get("session"),
			Caller:      q.Get("caller"),
			Agent:       q.Get("agent"),
			Observe:     q.Has("observe"),
			LastEventID: r.Header.Get("Last-Event-ID"),
		}
		if ms, err := strconv.ParseInt(q.Get("until"), 10, 64); err == nil {
			sub.Right = lasting(time.UnixMilli(ms))
		}
		switch err := hub.Serve(w, r, sub); {
		case err == nil:
		case errors.Is(err, sse.ErrTooManyStreams):
			http.Error(w, err.Error(), http.StatusTooManyRequests)
		case errors.Is(err, sse.ErrClosed):
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		default:
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}
}

// lasting is a right that ends at a time.
type lasting time.Time

func (l lasting) Ended() bool { return !time.Now().Before(time.Time(l)) }

func (l lasting) Watch(end func()) (stop func()) {
	timer := time.AfterFunc(time.Until(time.Time(l)), end)
	return func() { timer.Stop() }
}

// house is a hub behind a real server on loopback.
type house struct {
	*sse.Hub
	t      *testing.T
	server *httptest.Server
}

func newHouse(t *testing.T, cfg sse.Config, adapt ...func(*httptest.Server)) *house {
	t.Helper()
	if cfg.Epoch == "" {
		cfg.Epoch = "e"
	}
	if cfg.Coalesce == 0 {
		cfg.Coalesce = time.Millisecond
	}
	h := &house{Hub: sse.NewHub(cfg), t: t}
	h.server = httptest.NewUnstartedServer(handler(h.Hub))
	for _, a := range adapt {
		a(h.server)
	}
	h.server.Start()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		require.NoError(t, h.Close(ctx, sse.ByeShutdown))
		require.Zero(t, h.Streams())
		h.server.Close()
	})
	return h
}

func (h *house) url(session string, more ...string) string {
	q := url.Values{"session": {session}}
	for i := 0; i+1 < len(more); i += 2 {
		q.Set(more[i], more[i+1])
	}
	return h.server.URL + "/?" + q.Encode()
}

func (h *house) connect(session, lastID string, more ...string) *client {
	h.t.Helper()
	return connect(h.t, h.server.Client(), h.url(session, more...), lastID)
}

// add appends notices of agent "a" with these data.
func (h *house) add(session string, data ...string) {
	addTo(h.Hub, session, data...)
}

func addTo(hub *sse.Hub, session string, data ...string) {
	for _, d := range data {
		hub.Append(session, sse.Notice{Key: d, Owner: "a#1", Agent: "a", Event: "task.done", Data: []byte(d)})
	}
}

// recorded waits until the hub knows that everything the client got was written:
// it is, before the next event of that stream is chosen.
func (h *house) recorded(session string, c *client) {
	h.t.Helper()
	h.Poke(session, "")
	require.Equal(h.t, "tasks.changed", c.next().Name)
}

// streams waits until that many are open.
func (h *house) streams(n int) {
	h.t.Helper()
	require.Eventually(h.t, func() bool { return h.Streams() == n }, patience, time.Millisecond)
}

// pipes is a network in memory without any buffer, for tests in virtual time.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.done); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	c, s := net.Pipe()
	p.conns <- s
	return c, nil
}

// bubble is a hub behind a real server on pipes; to be made inside a synctest
// bubble, with the end to be deferred.
type bubble struct {
	*sse.Hub
	t    *testing.T
	net  *pipes
	http *http.Client
	end  func()
	// speakHTTP2 is for before the first connection.
	speakHTTP2 func()
}

func newBubble(t *testing.T, cfg sse.Config, wrap ...func(http.ResponseWriter) http.ResponseWriter) *bubble {
	t.Helper()
	if cfg.Journal == nil {
		cfg.Epoch = "e"
	}
	hub, err := sse.OpenHub(t.Context(), cfg)
	require.NoError(t, err)
	b := &bubble{Hub: hub, t: t, net: &pipes{conns: make(chan net.Conn), done: make(chan struct{})}}
	serve := handler(b.Hub)
	// Streams outlive the server's time-outs.
	server := &http.Server{ReadTimeout: time.Second, WriteTimeout: time.Second, Protocols: new(http.Protocols)}
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, f := range wrap {
			w = f(w)
		}
		serve(w, r)
	})
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{DialContext: b.net.dial, Protocols: new(http.Protocols)}
	transport.Protocols.SetHTTP1(true)
	b.http = &http.Client{Transport: transport}
	go func() { _ = server.Serve(b.net) }()
	b.speakHTTP2 = func() {
		transport.Protocols.SetHTTP1(false)
		transport.Protocols.SetUnencryptedHTTP2(true)
	}
	b.end = func() {
		require.NoError(t, b.Close(context.Background(), sse.ByeShutdown))
		transport.CloseIdleConnections()
		require.NoError(t, server.Close())
	}
	return b
}

func (b *bubble) connect(query, lastID string) *client {
	b.t.Helper()
	return connect(b.t, b.http, "http://afoot/?"+query, lastID)
}
