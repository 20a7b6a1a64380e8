package sse_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"afoot/sse"

	"github.com/stretchr/testify/require"
)

func TestCloseCutsWhoDoesNotTakeTheBye(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, sse.Config{})
		defer b.end()
		dial(t, b.http, "http://afoot/?session=s", "")
		addTo(b.Hub, "s", strings.Repeat("x", 100_000))
		synctest.Wait()
		healthy := b.connect("session=t", "")
		begin := time.Now()
		require.NoError(t, b.Close(t.Context(), sse.ByeReload))
		require.Equal(t, time.Second, time.Since(begin))
		require.Equal(t, event{Name: "bye", Data: `{"reason":"reload"}`}, healthy.next())
		healthy.ended()
		refused := dial(t, b.http, "http://afoot/?session=s", "")
		require.Equal(t, http.StatusServiceUnavailable, refused.resp.StatusCode)
	})
}

// The bytes that end a response are the server's, and they are bounded as well.
func TestAClientThatDoesNotTakeTheEndHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, sse.Config{})
		defer b.end()
		conn, err := b.net.dial(t.Context(), "", "")
		require.NoError(t, err)
		_, err = fmt.Fprint(conn, "GET /?session=s HTTP/1.1\r\nHost: afoot\r\n\r\n")
		require.NoError(t, err)
		closed := make(chan error)
		lines := bufio.NewReader(conn)
		for line := ""; line != "event: bye\n"; {
			line, err = lines.ReadString('\n')
			require.NoError(t, err)
			if line == "\r\n" {
				go func() { closed <- b.Close(t.Context(), sse.ByeShutdown) }()
			}
		}
		require.NoError(t, <-closed)
		time.Sleep(2 * time.Second)
		rest, err := io.ReadAll(lines)
		require.NoError(t, err)
		require.Equal(t, "\n\r\n", string(rest), "only the rest of the chunk")
	})
}

func TestCloseGivesUpWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, sse.Config{})
		defer b.end()
		dial(t, b.http, "http://afoot/?session=s", "")
		addTo(b.Hub, "s", "1")
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		require.ErrorIs(t, b.Close(ctx, sse.ByeShutdown), context.DeadlineExceeded)
		synctest.Wait()
		require.Zero(t, b.Streams())
	})
}

func TestI4HeadersComeAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, sse.Config{})
		defer b.end()
		begin := time.Now()
		c := dial(t, b.http, "http://afoot/?session=s", "")
		require.Zero(t, time.Since(begin))
		require.Equal(t, http.StatusOK, c.resp.StatusCode)
		delete(c.resp.Header, "Date")
		require.Equal(t, http.Header{
			"Content-Type":      {"text/event-stream"},
			"Cache-Control":     {"no-store"},
			"X-Accel-Buffering": {"no"},
		}, c.resp.Header)
		_, err := io.ReadFull(c.resp.Body, make([]byte, 1))
		require.NoError(t, err)
		require.LessOrEqual(t, time.Since(begin), 15*time.Second)
	})
}
