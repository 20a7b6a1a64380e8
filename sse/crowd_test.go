package sse_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"afoot/sse"

	"github.com/stretchr/testify/require"
)

// narrow makes the kernel buffer little on the server's side.
type narrow struct{ net.Listener }

func (l narrow) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		err = c.(*net.TCPConn).SetWriteBuffer(4 << 10)
	}
	return c, err
}

func narrowServer(s *httptest.Server) { s.Listener = narrow{s.Listener} }

// stuck opens a stream on a connection of its own that nobody reads before the
// end of the test.
func stuck(t *testing.T, addr, query string) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	require.NoError(t, conn.(*net.TCPConn).SetReadBuffer(4<<10))
	_, err = fmt.Fprintf(conn, "GET /?%s HTTP/1.1\r\nHost: afoot\r\n\r\n", query)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
}

func TestI5FiftyStoppedSubscribers(t *testing.T) {
	const ends = 2000
	h := newHouse(t, sse.Config{MaxStreamsPerSession: 51, WriteTimeout: 2 * time.Second}, narrowServer)
	for range 50 {
		stuck(t, h.server.Listener.Addr().String(), "session=s")
	}
	h.streams(50)
	c := h.connect("s", "")
	pad := strings.Repeat("x", 1000)
	room := make(chan struct{}, 500) // as many tasks can end at once
	go func() {
		for n := range ends {
			room <- struct{}{}
			h.add("s", strconv.Itoa(n)+pad)
		}
	}()
	for n := range ends {
		e := c.next()
		require.Equal(t, strconv.Itoa(n)+pad, e.Data)
		require.Equal(t, "e-"+strconv.Itoa(n+1), e.ID)
		<-room
	}
	h.streams(1) // the others are cut, by the time-out or as lagging
	for n := range 20 {
		again := h.connect("s", fmt.Sprint("e-", ends-n))
		h.add("s", "after")
		for range n {
			again.next()
		}
		again.notices("after")
		again.close()
	}
}

func TestAHundredStreamsClosedAtOnce(t *testing.T) {
	h := newHouse(t, sse.Config{})
	all := make([]*client, 100)
	for i := range all {
		all[i] = h.connect(strconv.Itoa(i%10), "")
	}
	h.streams(100)
	errs := make(chan error, 3)
	for range cap(errs) {
		go func() { errs <- h.Close(context.Background(), sse.ByeShutdown) }()
	}
	for range cap(errs) {
		require.NoError(t, <-errs)
	}
	require.Zero(t, h.Streams())
	for _, c := range all {
		require.Equal(t, event{Name: "bye", Data: `{"reason":"shutdown"}`}, c.next())
		c.ended()
	}
	require.ErrorIs(t, h.Serve(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil), sse.Subscription{}), sse.ErrNotStreaming)
}

// Every session has a reader that is cut again and again and resumes, and some
// have one that is stuck. Every notice must arrive once, in order.
func TestAThousandSessionsWithStuckReadersAndReconnects(t *testing.T) {
	const sessions, ends = 1000, 20
	h := newHouse(t, sse.Config{WriteTimeout: 200 * time.Millisecond, Coalesce: time.Millisecond}, narrowServer)
	h.server.Client().Timeout = 0
	addr := h.server.Listener.Addr().String()
	var wg sync.WaitGroup
	for s := range sessions {
		session, pad := strconv.Itoa(s), strings.Repeat("x", 500)
		if s%10 == 0 {
			pad = strings.Repeat("x", 10_000) // more than the kernel takes
			stuck(t, addr, "session="+session+"&observe")
		}
		wg.Go(func() {
			for n := range ends {
				h.add(session, strconv.Itoa(n)+pad)
				h.Poke(session, "a")
				if n%7 == 0 {
					h.PokeAll("")
				}
				h.Withdraw(session, "no such key")
				h.DropOwner(session, "no such owner")
			}
		})
		wg.Go(func() {
			last, want := "", 0
			for want < ends {
				conn, err := net.Dial("tcp", addr)
				if err != nil {
					t.Error(err)
					return
				}
				fmt.Fprintf(conn, "GET /?session=%s HTTP/1.0\r\nHost: afoot\r\nLast-Event-ID: %s\r\n\r\n", session, last)
				_ = conn.SetReadDeadline(time.Now().Add(patience))
				cut := rand.IntN(6)
				err = parse(conn, func(e event) {
					if e.Name != "task.done" || want == ends || cut < 0 {
						return
					}
					if e.Data != strconv.Itoa(want)+pad {
						t.Errorf("session %s: want %d, got %s", session, want, e.Data[:8])
						want = ends
					}
					want++
					last = e.ID
					if cut--; cut < 0 || want == ends {
						_ = conn.Close()
					}
				})
				_ = conn.Close()
				if t.Failed() {
					t.Log(session, err)
					return
				}
			}
		})
	}
	wg.Wait()
	h.streams(0) // the stuck ones were cut
}

// Notices are taken back while their stream is writing them.
func TestWithdrawAndDropRaceWithTheWriter(t *testing.T) {
	h := newHouse(t, sse.Config{LogSize: 50, LogMax: 1})
	c := h.connect("s", "")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for n := range 500 {
				h.add("s", strconv.Itoa(n))
				if n%2 == 0 {
					h.Withdraw("s", strconv.Itoa(n))
				} else {
					h.DropOwner("s", "a#1")
				}
			}
		})
	}
	wg.Wait()
	h.add("s", "last")
	numbers := 0
	for e := c.next(); e.Data != "last"; e = c.next() {
		require.Equal(t, "task.done", e.Name)
		n, err := strconv.Atoi(strings.TrimPrefix(e.ID, "e-"))
		require.NoError(t, err)
		require.Greater(t, n, numbers)
		numbers = n
	}
	require.Equal(t, "e-2001", c.lastID)
}
