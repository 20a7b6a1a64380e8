package sse_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"afoot/sse"

	"github.com/stretchr/testify/require"
)

// feeding serves feeds that send what comes out of a channel.
func feeding(t *testing.T, cfg sse.Config, right sse.Right) (hub *sse.Hub, send func(string), get func() *http.Response) {
	t.Helper()
	hub = sse.NewHub(cfg)
	sends, wakes := make(chan string, 1), make(chan struct{}, 1)
	send = func(text string) {
		sends <- text
		wakes <- struct{}{}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		feed, err := hub.OpenFeed(w, r, "s", "", right)
		if err != nil {
			status := http.StatusServiceUnavailable
			if errors.Is(err, sse.ErrTooManyStreams) {
				status = http.StatusTooManyRequests
			}
			http.Error(w, err.Error(), status)
			return
		}
		defer feed.Close()
		// Wait tells that there may be something, not what.
		for {
			select {
			case text := <-sends:
				if !feed.Send("1", "output", []byte(text)) {
					return
				}
			default:
			}
			if !feed.Wait(wakes, nil) {
				return
			}
		}
	}))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		require.NoError(t, hub.Close(ctx, sse.ByeShutdown))
		server.CloseClientConnections()
		server.Close()
	})
	return hub, send, func() *http.Response {
		res, err := server.Client().Get(server.URL)
		require.NoError(t, err)
		t.Cleanup(func() { res.Body.Close() })
		return res
	}
}

func TestFeed(t *testing.T) {
	hub, send, get := feeding(t, sse.Config{MaxStreamsPerSession: 1}, nil)
	res := get()
	require.Equal(t, "text/event-stream", res.Header.Get("Content-Type"))
	require.Equal(t, "no-store", res.Header.Get("Cache-Control"))
	require.Equal(t, http.StatusTooManyRequests, get().StatusCode)
	require.Equal(t, 1, hub.Streams())
	send(`{"a":1}`)
	in := bufio.NewReader(res.Body)
	require.Equal(t, "id: 1\nevent: output\ndata: {\"a\":1}\n\n", lines(t, in, 4))
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	require.NoError(t, hub.Close(ctx, sse.ByeReload))
	rest, err := io.ReadAll(in)
	require.NoError(t, err)
	require.Equal(t, "event: bye\ndata: {\"reason\":\"reload\"}\n\n", string(rest))
	require.Zero(t, hub.Streams())
	require.Equal(t, http.StatusServiceUnavailable, get().StatusCode)
}

func TestFeedEndsWithItsToken(t *testing.T) {
	_, _, get := feeding(t, sse.Config{Heartbeat: 10 * time.Millisecond}, lasting(time.Now().Add(200*time.Millisecond)))
	rest, err := io.ReadAll(get().Body)
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(string(rest), "event: bye\ndata: {\"reason\":\"token_expired\"}\n\n"), "%s", rest)
}

// TestCloseMeetsABusyFeedAgain: two reloads fail while the opener of a feed is busy
// elsewhere, as in a look that takes long.
func TestCloseMeetsABusyFeedAgain(t *testing.T) {
	hub := sse.NewHub(sse.Config{})
	opened, busy, goesOn := make(chan struct{}), make(chan struct{}), make(chan bool, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		feed, err := hub.OpenFeed(w, r, "s", "", nil)
		if err != nil {
			return
		}
		defer feed.Close()
		close(opened)
		<-busy
		goesOn <- feed.Send("1", "output", []byte("late"))
	}))
	defer server.Close()
	free := sync.OnceFunc(func() { close(busy) })
	defer free()
	res, err := server.Client().Get(server.URL)
	require.NoError(t, err)
	defer res.Body.Close()
	<-opened
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		require.NotPanics(t, func() { require.ErrorIs(t, hub.Close(ctx, sse.ByeReload), context.DeadlineExceeded) })
		cancel()
		hub.Reopen()
	}
	free()
	require.False(t, <-goesOn)
	require.Eventually(t, func() bool { return hub.Streams() == 0 }, patience, time.Millisecond)
	require.NoError(t, hub.Close(t.Context(), sse.ByeShutdown))
}

func lines(t *testing.T, in *bufio.Reader, n int) string {
	t.Helper()
	var all strings.Builder
	for range n {
		line, err := in.ReadString('\n')
		require.NoError(t, err)
		all.WriteString(line)
	}
	return all.String()
}
