package api_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"afoot/registry"
	"afoot/registry/registrytest"
)

// movedLog is a log whose bytes leave by themselves, as a file's do by the system.
type movedLog struct {
	registry.RawLog
	// moved counts the bytes that did, refuses makes it unable to.
	moved   *atomic.Int64
	refuses bool
}

func (l movedLog) SendTo(socket syscall.RawConn, offset, limit int64) (n int64, err error) {
	if l.refuses {
		return 0, errors.ErrUnsupported
	}
	buf := make([]byte, min(limit, 100_000))
	m, err := l.ReadAt(buf, offset)
	if m == 0 {
		return 0, err
	}
	waited := socket.Write(func(fd uintptr) bool {
		var wrote int
		wrote, err = syscall.Write(int(fd), buf[:m])
		n = int64(max(wrote, 0))
		return !errors.Is(err, syscall.EAGAIN)
	})
	l.moved.Add(n)
	return n, errors.Join(waited, err)
}

// moving makes the logs of a world move by themselves.
func (w *world) moving(refuses bool) *atomic.Int64 {
	var moved atomic.Int64
	w.faulty.openLog = func(ctx context.Context) (registry.RawLog, error) {
		log, err := w.service.OpenLog(ctx, registry.Caller{Session: "alice"}, "bash-1", "")
		return movedLog{log, &moved, refuses}, err
	}
	return &moved
}

func noise(t *testing.T, size int) string {
	t.Helper()
	data := make([]byte, size)
	if _, err := rand.Read(data); err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestFollowByTheSystem: small pieces and large ones, byte for byte, with a proper
// end; and the same where the system can't.
func TestFollowByTheSystem(t *testing.T) {
	for _, refuses := range []bool{false, true} {
		t.Run("refuses="+strconv.FormatBool(refuses), func(t *testing.T) {
			w := newWorld(t)
			work := w.start(registrytest.Script{})
			moved := w.moving(refuses)
			f := w.follow()
			w.is.Equal([]string{"chunked"}, f.res.TransferEncoding)
			w.is.EqualValues(-1, f.res.ContentLength)
			for _, size := range []int{1, 100, 16 << 10, 16<<10 + 1, 300_000, 9 << 20} {
				piece := noise(t, size)
				work.Output.Append(piece)
				buf := make([]byte, size)
				_, err := io.ReadFull(f.body, buf)
				w.is.NoError(err)
				w.is.True(bytes.Equal([]byte(piece), buf), size)
			}
			work.Output.Append("end")
			work.Complete("exit code: 0")
			rest, err := io.ReadAll(f.body)
			w.is.NoError(err)
			w.is.Equal("end", string(rest))
			w.is.Equal(!refuses, moved.Load() > 9<<20)
		})
	}
}

// TestFollowerOfAMovedLogThatFellBehind: its body breaks off, and holds nothing that
// was not printed.
func TestFollowerOfAMovedLogThatFellBehind(t *testing.T) {
	w := newWorld(t)
	work := w.start(registrytest.Script{})
	w.moving(false)
	f := w.follow()
	const size = 32 << 20 // more than sockets hold
	work.Output.Append(strings.Repeat("x", size))
	f.reads("xxxx")
	work.Output.Drop(size)
	rest, err := io.ReadAll(f.body)
	w.is.ErrorIs(err, io.ErrUnexpectedEOF)
	w.is.Less(len(rest), size)
	w.is.Equal(strings.Repeat("x", len(rest)), string(rest))
}

// TestRunningLogByTheSystem: what there is of a task that runs, with its length.
func TestRunningLogByTheSystem(t *testing.T) {
	w := newWorld(t)
	work := w.start(registrytest.Script{})
	moved := w.moving(false)
	text := noise(t, 3<<20)
	work.Output.Append(text)
	a := w.get("/tasks/bash-1/log", "Accept-Encoding", "identity").ok(http.StatusOK)
	w.is.Equal(text, string(a.body))
	w.is.Equal(strconv.Itoa(len(text)), a.header.Get("Content-Length"))
	w.is.EqualValues(len(text), moved.Load())
	a = w.get("/tasks/bash-1/log", "Range", "bytes=5-").ok(http.StatusPartialContent)
	w.is.Equal(text[5:], string(a.body))
	a = w.get("/tasks/bash-1/log", "Range", "bytes=5-9").ok(http.StatusPartialContent)
	w.is.Equal(text[5:10], string(a.body))
	w.call(http.MethodHead, "/tasks/bash-1/log", "", "Accept-Encoding", "identity").ok(http.StatusOK)
	w.call(http.MethodHead, "/tasks/bash-1/log?follow=true", "").ok(http.StatusOK)
	w.is.Contains(w.log.String(), "bytes="+strconv.Itoa(len(text))+" ", "they are accounted for")
}

// TestFollowOfAnOldClient: HTTP/1.0 has no chunks.
func TestFollowOfAnOldClient(t *testing.T) {
	w := newWorld(t)
	work := w.start(registrytest.Script{})
	w.moving(false)
	conn, err := net.Dial("tcp", w.server.Listener.Addr().String())
	w.is.NoError(err)
	defer conn.Close()
	_, err = io.WriteString(conn, "GET /tasks/bash-1/log?follow=true HTTP/1.0\r\nHost: localhost\r\nAuthorization: Bearer "+w.token+"\r\n\r\n")
	w.is.NoError(err)
	w.eventually(func() bool { return work.Output.OpenLogs() == 1 }, "followed")
	work.Output.Append("one\n")
	work.Complete("exit code: 0")
	all, err := io.ReadAll(conn)
	w.is.NoError(err)
	w.is.True(strings.HasSuffix(string(all), "\r\n\r\none\n"), "%s", all)
}
