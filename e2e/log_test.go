package e2e

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// unzip gives what a compressed body holds.
func (a *answer) unzip(t *testing.T) []byte {
	t.Helper()
	require.Equal(t, "gzip", a.header.Get("Content-Encoding"), "%v", a.header)
	r, err := gzip.NewReader(bytes.NewReader(a.body))
	require.NoError(t, err)
	data, err := io.ReadAll(r)
	require.NoError(t, err)
	return data
}

func TestLogAsAFile(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("file")
	id := c.startSplit(t, `seq 1 50000; seq 1 9 >&2`)
	c.finish(t, id)
	for path, name := range map[string]string{"/log": id + ".log", "/log?stream=stderr": id + ".stderr.log"} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			a := c.do(t, method, "/tasks/"+id+path, nil)
			require.Equal(t, http.StatusOK, a.status)
			require.Contains(t, a.header.Get("Content-Disposition"), "attachment")
			require.Contains(t, a.header.Get("Content-Disposition"), name)
			require.Contains(t, strings.Join(a.header.Values("Vary"), ","), "Accept-Encoding")
			require.Empty(t, a.header.Get("Content-Encoding"), "nobody asked")
		}
	}
}

func TestLogCompressed(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("gzip")
	id := c.start(t, `seq 1 40000; head -c 20000 /dev/urandom`).ID
	c.finish(t, id)
	path := "/tasks/" + id + "/log"
	raw := c.log(t, id)
	for _, accept := range []string{"gzip", "br, gzip;q=0.5", "GZIP", "deflate, gzip;q=1.0, *;q=0.1"} {
		a := c.do(t, http.MethodGet, path, nil, "Accept-Encoding: "+accept)
		require.Equal(t, http.StatusOK, a.status)
		require.Less(t, len(a.body), len(raw))
		require.True(t, bytes.Equal(raw, a.unzip(t)), accept)
		require.Contains(t, strings.Join(a.header.Values("Vary"), ","), "Accept-Encoding")
		if length := a.header.Get("Content-Length"); length != "" {
			require.Equal(t, strconv.Itoa(len(a.body)), length)
		}
	}
	for _, accept := range []string{"identity", "gzip;q=0", "br", "*;q=0, identity"} {
		a := c.do(t, http.MethodGet, path, nil, "Accept-Encoding: "+accept)
		require.Equal(t, http.StatusOK, a.status)
		require.Empty(t, a.header.Get("Content-Encoding"), accept)
		require.True(t, bytes.Equal(raw, a.body))
	}
	a := c.do(t, http.MethodGet, path, nil, "Accept-Encoding: gzip", "Range: bytes=10-29")
	require.Equal(t, http.StatusPartialContent, a.status)
	require.Empty(t, a.header.Get("Content-Encoding"), "a part is of the raw bytes")
	require.Equal(t, raw[10:30], a.body)
	a = c.do(t, http.MethodGet, path+"?follow=true", nil, "Accept-Encoding: gzip")
	require.Empty(t, a.header.Get("Content-Encoding"), "what is followed comes as it is")
	require.True(t, bytes.Equal(raw, a.body))
	a = c.do(t, http.MethodHead, path, nil, "Accept-Encoding: gzip")
	require.Equal(t, http.StatusOK, a.status)
	require.Empty(t, a.body)
	if a.header.Get("Content-Encoding") == "gzip" {
		require.NotEqual(t, strconv.Itoa(len(raw)), a.header.Get("Content-Length"), "the length of what a GET would send")
	}
}

// While the task lives the log is what there is, and a range may end at any byte.
func TestLogOfALiveTask(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("live")
	f := newFeed(t)
	id := c.start(t, f.print()).ID
	f.give(t, c, id, []byte("0123456789"))
	path := "/tasks/" + id + "/log"
	require.Equal(t, "0123456789", string(c.log(t, id)))
	a := c.do(t, http.MethodHead, path, nil)
	require.Equal(t, "10", a.header.Get("Content-Length"))
	a = c.do(t, http.MethodGet, path, nil, "Range: bytes=8-20")
	require.Equal(t, http.StatusPartialContent, a.status)
	require.Equal(t, "89", string(a.body))
	a = c.do(t, http.MethodGet, path, nil, "Range: bytes=10-")
	require.Equal(t, http.StatusRequestedRangeNotSatisfiable, a.status)
	f.give(t, c, id, []byte("€"))
	a = c.do(t, http.MethodGet, path, nil, "Range: bytes=10-11")
	require.Equal(t, "\xe2\x82", string(a.body), "raw bytes")
	f.done(t)
	c.finish(t, id)
	require.Equal(t, "0123456789€", string(c.log(t, id)))
}

// A follower that fell behind the kept part gets what it was sent so far, true to
// the byte, and then no good end: never a hole.
func TestLogFollowerFallsBehind(t *testing.T) {
	t.Parallel()
	const lines = 2000000
	d := serve(t, "AFOOT_OUTPUT_MAX_BYTES=1MiB")
	c := d.as("behind")
	g := newGate(t)
	id := c.start(t, `echo first; `+g.wait()+fmt.Sprintf(`seq -f %%012.0f 1 %d`, lines)).ID
	c.says(t, id, "first")
	w, err := d.dial()
	require.NoError(t, err)
	require.NoError(t, w.conn.SetReadBuffer(64<<10))
	require.NoError(t, w.ask(c, "/tasks/"+id+"/log?follow=true"))
	res, err := http.ReadResponse(w.r, nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, res.StatusCode)
	head := make([]byte, 6)
	_, err = io.ReadFull(res.Body, head)
	require.NoError(t, err)
	require.Equal(t, "first\n", string(head))
	g.open(t)
	eventually(t, 30*time.Second, "end", func() bool { return c.get(t, id).terminal() })
	require.Greater(t, c.get(t, id).DroppedBytes, int64(20000000))

	require.NoError(t, w.conn.SetDeadline(time.Now().Add(patient(30*time.Second))))
	rest, err := io.ReadAll(res.Body)
	require.Error(t, err, "an answer with a hole must not end well; it has %d bytes", len(rest))
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "it is aborted, not left hanging")
	require.NoError(t, w.conn.Close())
	for i := 0; i+13 <= len(rest); i += 13 {
		require.Equal(t, fmt.Sprintf("%012d\n", i/13+1), string(rest[i:i+13]), "at byte %d", i)
	}
	// Who begins anew is told where it begins.
	a := c.do(t, http.MethodGet, "/tasks/"+id+"/log?follow=true", nil)
	require.Equal(t, strconv.FormatInt(c.get(t, id).DroppedBytes, 10), a.header.Get("Afoot-Offset"))
	require.True(t, strings.HasSuffix(string(a.body), fmt.Sprintf("%012d\n", lines)))
}

// One that keeps up with a task far beyond the limit gets every byte.
func TestLogFollowerKeepsUp(t *testing.T) {
	t.Parallel()
	const lines = 60000
	d := serve(t, "AFOOT_OUTPUT_MAX_BYTES=1MiB")
	c := d.as("keeps up")
	f := newFeed(t)
	id := c.start(t, f.print()).ID
	f.give(t, c, id, []byte("first\n"))
	req, err := c.request(t.Context(), http.MethodGet, "/tasks/"+id+"/log?follow=true", nil)
	require.NoError(t, err)
	res, err := c.http.Do(req)
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	head := make([]byte, 6)
	_, err = io.ReadFull(res.Body, head)
	require.NoError(t, err)
	var block bytes.Buffer
	for i := range lines {
		fmt.Fprintf(&block, "%063d\n", i)
		if block.Len() < 256<<10 && i+1 < lines {
			continue
		}
		f.give(t, c, id, block.Bytes())
		got := make([]byte, block.Len())
		_, err := io.ReadFull(res.Body, got)
		require.NoError(t, err)
		require.True(t, bytes.Equal(block.Bytes(), got), "up to line %d", i)
		block.Reset()
	}
	f.done(t)
	rest, err := io.ReadAll(res.Body)
	require.NoError(t, err, "the end is clean")
	require.Empty(t, rest)
	c.finish(t, id)
	require.Positive(t, c.get(t, id).DroppedBytes)
}

// Readers that stopped hold up neither the end of a task nor its removal.
func TestLogStoppedReaders(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("stopped")
	id := c.start(t, `head -c 30000000 /dev/zero`).ID
	c.over(t, id)
	for _, path := range []string{"/log", "/log?follow=true", "/output?offset=0", "/events"} {
		d.stopped(t, c, "/tasks/"+id+path)
	}
	begun := time.Now()
	require.Len(t, c.log(t, id), 30000000)
	c.read(t, id, "limit_bytes=10")
	c.purge(t, id)
	require.Less(t, time.Since(begun), patient(5*time.Second))
	c.do(t, http.MethodGet, "/tasks/"+id+"/log", nil).refused(t, http.StatusGone, "gone")
}

// A plain look at a log that is written faster than it is sent gives what was kept.
func TestLogOfAFastWriter(t *testing.T) {
	t.Parallel()
	c := serve(t, "AFOOT_OUTPUT_MAX_BYTES=64KiB").as("log-fast")
	id := c.start(t, `while :; do seq 100000 200000; done`).ID
	for range 60 {
		a := c.do(t, http.MethodGet, "/tasks/"+id+"/log", nil)
		require.Equal(t, http.StatusOK, a.status)
		require.Equal(t, a.header.Get("Content-Length"), strconv.Itoa(len(a.body)))
		lines := strings.Split(string(a.body), "\n")
		for i := 2; i < len(lines)-1; i++ { // the first may be cut, the last too
			before, err := strconv.Atoi(lines[i-1])
			require.NoError(t, err)
			want := strconv.Itoa(before + 1)
			if before == 200000 {
				want = "100000"
			}
			require.Equal(t, want, lines[i])
		}
	}
	c.kill(t, id)
}
