package api_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"afoot/api/wire"
	"afoot/registry"
	"afoot/registry/registrytest"
)

// plainly looks at whole lines.
func (w *world) plainly(offset int64, more string) wire.TaskRead {
	w.t.Helper()
	return into[wire.TaskRead](w.get(fmt.Sprintf("/tasks/bash-1/output?view=plain&offset=%d%s", offset, more)).ok(http.StatusOK))
}

func TestPlainView(t *testing.T) {
	w := newWorld(t)
	work := w.start(registrytest.Script{})
	work.Output.Append("\x1b[31mred\x1b[0m\n10%\r50%\r100%")
	read := w.plainly(0, "")
	w.is.Equal("red\n", read.Text)
	w.is.EqualValues(0, read.Offset)
	w.is.EqualValues(13, read.NextOffset)
	w.is.False(read.Eof)
	w.is.Empty(w.plainly(13, "").Text, "an unfinished line waits")
	w.is.Empty(w.plainly(13, "&wait=true&timeout_ms=20").Text, "for as long as was asked")

	got := make(chan wire.TaskRead)
	go func() { got <- w.plainly(13, "&wait=true") }()
	w.waiters(work.ID, 1)
	work.Output.Append(" do")
	w.waiters(work.ID, 1)
	work.Output.Append("ne\nrest")
	read = <-got
	w.is.Equal("100% done\n", read.Text)

	next := read.NextOffset
	go func() { got <- w.plainly(next, "&wait=true") }()
	w.waiters(work.ID, 1)
	work.Complete("exit code: 0")
	read = <-got
	w.is.Equal("rest", read.Text)
	read = w.plainly(read.NextOffset, "&wait=true")
	w.is.Empty(read.Text)
	w.is.True(read.Eof)
	w.is.False(w.snapshot("bash-1").Reported)

	w.get("/tasks/bash-1/output?view=plain").refused(http.StatusBadRequest, "invalid")
	w.get("/tasks/bash-1/output?view=raw&offset=0").refused(http.StatusBadRequest, "invalid")
	w.get("/tasks/bash-1/output?view=plain&offset=99").refused(http.StatusBadRequest, "invalid")
	w.get("/tasks/bash-9/output?view=plain&offset=0").refused(http.StatusNotFound, "unknown_task")
	a := w.call(http.MethodHead, "/tasks/bash-1/output?view=plain&offset=0&wait=true", "").ok(http.StatusOK)
	w.is.Equal("true", a.header.Get("Afoot-Eof"))
	text := w.get("/tasks/bash-1/output?view=plain&offset=0", "Accept", "text/plain").ok(http.StatusOK)
	w.is.True(strings.HasPrefix(string(text.body), "red\n"), "%s", text.body)
}

// TestPlainWaitAtShutdown: it answers with what is, and when it is repeated with the end.
func TestPlainWaitAtShutdown(t *testing.T) {
	w := newWorld(t)
	work := w.start(registrytest.Script{})
	work.Output.Append("half")
	got := make(chan wire.TaskRead, 1)
	go func() { got <- w.plainly(0, "&wait=true") }()
	w.waiters(work.ID, 1)
	closing, stop := context.WithCancel(context.Background())
	stop()
	_ = w.service.Close(closing)
	select {
	case read := <-got:
		w.is.Empty(read.Text)
		w.is.False(read.Eof)
	case <-time.After(20 * time.Second):
		w.is.Fail("the look goes round and round")
	}
	go func() { got <- w.plainly(0, "&wait=true") }()
	w.waiters(work.ID, 1)
	work.Settle(registry.Outcome{Status: registry.StatusKilled})
	read := <-got
	w.is.Equal("half", read.Text)
	w.is.True(read.Eof)
	w.is.Equal(registry.DetailShutdown, read.Snapshot.Detail)
}

// countedLog counts what is read of a log.
type countedLog struct {
	registry.RawLog
	calls, bytes *atomic.Int64
}

func (l countedLog) ReadAt(p []byte, offset int64) (int, error) {
	n, err := l.RawLog.ReadAt(p, offset)
	l.bytes.Add(int64(n))
	l.calls.Add(1)
	return n, err
}

// TestPlainWaitReadsWhatIsNew: a long line that comes in pieces is not read again with each.
func TestPlainWaitReadsWhatIsNew(t *testing.T) {
	w := newWorld(t)
	work := w.start(registrytest.Script{})
	var calls, bytes atomic.Int64
	w.faulty.openLog = func(c ctx) (registry.RawLog, error) {
		log, err := w.service.OpenLog(c, registry.Caller{Session: "alice"}, work.ID, "")
		return countedLog{log, &calls, &bytes}, err
	}
	const long = 1 << 20
	work.Output.Append(strings.Repeat("x", long))
	got := make(chan wire.TaskRead)
	go func() { got <- w.plainly(0, "&wait=true") }()
	w.waiters(work.ID, 1)
	for range 20 {
		before := calls.Load()
		work.Output.Append("y")
		w.eventually(func() bool { return calls.Load() > before }, "it looks at what came")
		w.waiters(work.ID, 1)
	}
	work.Output.Append("z\n")
	w.is.Len((<-got).Text, long+22)
	w.is.Less(bytes.Load(), int64(4*long))
}

// TestPlainLinesAreWhole: however small the pages, they join to the same text.
func TestPlainLinesAreWhole(t *testing.T) {
	w := newWorld(t)
	var raw, want strings.Builder
	for i := range 50 {
		fmt.Fprintf(&raw, "old\r\x1b[2K\x1b[1m%s\x1b[m\n", strings.Repeat("界", i))
		want.WriteString(strings.Repeat("界", i) + "\n")
	}
	w.ended(raw.String())
	for _, limit := range []int{1, 7, 64, 1000, 1 << 20} {
		var got strings.Builder
		for at := int64(0); ; {
			read := w.plainly(at, fmt.Sprintf("&limit_bytes=%d", limit))
			got.WriteString(read.Text)
			at = read.NextOffset
			if read.Eof {
				break
			}
			w.is.Greater(read.NextOffset, read.Offset, "progress")
		}
		w.is.Equal(want.String(), got.String(), limit)
	}
}

// TestPlainLineWithoutEnd: it is cut at 8 MiB, so that there is progress.
func TestPlainLineWithoutEnd(t *testing.T) {
	w := newWorld(t)
	work := w.start(registrytest.Script{})
	work.Output.Append(strings.Repeat("x", registry.MaxPageBytes-1))
	w.is.Empty(w.plainly(0, "").Text)
	work.Output.Append("yz")
	read := w.plainly(0, "&limit_bytes=10")
	w.is.EqualValues(registry.MaxPageBytes, read.NextOffset)
	w.is.True(strings.HasSuffix(read.Text, "xy"))
	w.is.Len(read.Text, registry.MaxPageBytes)
}

func TestPlainViewBehindDroppedBytes(t *testing.T) {
	w := newWorld(t)
	work := w.start(registrytest.Script{})
	work.Output.Append("0123\n\x1b[1mone\n")
	work.Output.Drop(5)
	read := w.plainly(0, "")
	w.is.Equal("one\n", read.Text)
	w.is.EqualValues(5, read.Offset)
	w.is.EqualValues(5, read.DroppedBytes)
	w.is.Equal("[5 bytes of older output were dropped]\none\n[status: running]",
		string(w.get("/tasks/bash-1/output?view=plain&offset=0", "Accept", "text/plain").body))
}

func TestPlainViewOfFinalOutput(t *testing.T) {
	w := newWorld(t)
	work := w.start(registrytest.Script{Final: true})
	w.is.Empty(w.plainly(0, "").Text)
	got := make(chan wire.TaskRead)
	go func() { got <- w.plainly(0, "&wait=true") }()
	w.waiters(work.ID, 1)
	work.Settle(registry.Outcome{Status: registry.StatusCompleted, Output: "a\rb\n\x1b[1mtail"})
	read := <-got
	w.is.Equal("b\ntail", read.Text)
	w.is.True(read.Eof)
	read = w.plainly(0, "&limit_bytes=1")
	w.is.Equal("b\n", read.Text)
	w.is.False(read.Eof)
}
