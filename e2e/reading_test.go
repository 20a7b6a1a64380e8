package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

func TestReadsConsume(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("reads")
	one, two := newGate(t), newGate(t)
	id := c.start(t, `echo first; `+one.wait()+`echo second; `+two.wait()+`echo third`).ID
	c.says(t, id, "first")
	o := c.read(t, id, "")
	require.Equal(t, "first\n", o.Text)
	require.Equal(t, [2]int64{0, 6}, [2]int64{o.Offset, o.NextOffset})
	require.False(t, o.EOF)
	o = c.read(t, id, "")
	require.Empty(t, o.Text)
	require.Equal(t, [2]int64{6, 6}, [2]int64{o.Offset, o.NextOffset})
	one.open(t)
	c.says(t, id, "second")

	// HEAD and reads by offset consume nothing.
	a := c.do(t, http.MethodHead, "/tasks/"+id+"/output", nil)
	require.Equal(t, http.StatusOK, a.status)
	require.Empty(t, a.body)
	c.do(t, http.MethodHead, "/tasks/"+id+"/output?wait=true&timeout_ms=10", nil)
	require.Equal(t, "second\n", c.read(t, id, "offset=6").Text)
	require.Equal(t, "rst\nsecond\n", c.read(t, id, "offset=2").Text)
	o = c.read(t, id, "limit_bytes=3")
	require.Equal(t, "sec", o.Text)
	a = c.do(t, http.MethodGet, "/tasks/"+id+"/output", nil)
	require.Contains(t, a.header.Get("Cache-Control"), "no-store")
	a.into(t, &o)
	require.Equal(t, "ond\n", o.Text)

	// A wait by offset returns with new bytes, not only with the end.
	type result struct {
		o   output
		err error
	}
	looked := make(chan result, 1)
	go func() {
		a, err := c.call(t.Context(), http.MethodGet, "/tasks/"+id+"/output?wait=true&timeout_ms=30000&offset=13", nil)
		var r result
		if r.err = err; err == nil {
			r.err = json.Unmarshal(a.body, &r.o)
		}
		looked <- r
	}()
	eventually(t, 5*time.Second, "blocked look", func() bool { return c.get(t, id).Waiters == 1 })
	two.open(t)
	r := <-looked
	require.NoError(t, r.err)
	require.True(t, r.o.Text == "third\n" || r.o.Text == "" && r.o.EOF, "%+v", r.o)
	c.finish(t, id)
	require.False(t, c.get(t, id).Reported)

	a = c.do(t, http.MethodHead, "/tasks/"+id+"/output", nil)
	require.Equal(t, http.StatusOK, a.status)
	require.False(t, c.get(t, id).Reported, "HEAD reports nothing")
	o = c.read(t, id, "")
	require.Equal(t, "third\n", o.Text)
	require.True(t, o.EOF)
	o = c.read(t, id, "")
	require.Empty(t, o.Text)
	require.True(t, o.EOF)
	require.Equal(t, "first\nsecond\nthird\n", c.read(t, id, "offset=0").Text, "captured output can be read again")
}

// Many consuming readers share one cursor: each byte goes to exactly one.
func TestReadsConcurrently(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("reads")
	const size = 40000
	id := c.start(t, fmt.Sprintf(`for i in $(seq 1 40); do printf '%%01000d' $i; sleep .01; done; exit 0 # %d`, size)).ID
	var mu sync.Mutex
	var pieces []output
	var g errgroup.Group
	for r := range 6 {
		g.Go(func() error {
			for {
				query := "limit_bytes=700"
				if r%2 == 1 {
					query = "wait=true&timeout_ms=20&limit_bytes=700"
				}
				a, err := c.call(t.Context(), http.MethodGet, "/tasks/"+id+"/output?"+query, nil)
				if err != nil {
					return err
				}
				var o output
				if err := json.Unmarshal(a.body, &o); err != nil {
					return fmt.Errorf("%w: %s", err, a)
				}
				mu.Lock()
				pieces = append(pieces, o)
				mu.Unlock()
				if o.EOF {
					return nil
				}
			}
		})
	}
	require.NoError(t, g.Wait())
	sort.SliceStable(pieces, func(i, j int) bool { return pieces[i].NextOffset < pieces[j].NextOffset })
	next := int64(0)
	var text strings.Builder
	for _, p := range pieces {
		if p.Text == "" {
			continue
		}
		require.Equal(t, next, p.Offset, "no twin and no hole")
		require.LessOrEqual(t, len(p.Text), 700)
		next = p.NextOffset
		text.WriteString(p.Text)
	}
	require.Equal(t, text.String(), c.read(t, id, "offset=0").Text)
	require.Len(t, text.String(), size)
}

func TestAckExplicit(t *testing.T) {
	t.Parallel()
	const explicit = "Afoot-Ack: explicit"
	d := serve(t)
	c := d.as("ack")
	g := newGate(t)
	id := c.start(t, `printf 0123456789; `+g.wait()+`printf abcdef`).ID
	c.says(t, id, "0123456789")
	ack := func(n any) *answer {
		return c.do(t, http.MethodPost, "/tasks/"+id+"/ack", fields{"nextOffset": n})
	}
	ack(0).refused(t, http.StatusConflict, "conflict")
	ack(5).refused(t, http.StatusConflict, "conflict")

	require.Equal(t, "0123", c.read(t, id, "limit_bytes=4", explicit).Text)
	require.Equal(t, "0123456789", c.read(t, id, "", explicit).Text, "nothing has moved")
	require.Equal(t, "0123456789", c.read(t, id, "wait=true&timeout_ms=20", explicit).Text)
	ack(11).refused(t, http.StatusBadRequest, "invalid")
	ack(1<<40).refused(t, http.StatusBadRequest, "invalid")
	require.Equal(t, http.StatusNoContent, ack(4).status)
	require.Equal(t, "456789", c.read(t, id, "", explicit).Text, "the acknowledged part is gone, the rest is the delta")
	require.Equal(t, http.StatusNoContent, ack(2).status, "below the cursor it changes nothing")
	require.Equal(t, "456789", c.read(t, id, "").Text, "another consuming read gets the same delta")
	require.Empty(t, c.read(t, id, "").Text)

	g.open(t)
	c.finish(t, id)
	a := c.do(t, http.MethodGet, "/tasks/"+id+"/output?wait=true", nil, explicit, "Accept: text/plain")
	require.Equal(t, "abcdef\n[status: completed, exit code: 0]", string(a.body))
	require.Equal(t, "16", a.header.Get("Afoot-Next-Offset"))
	require.Equal(t, "true", a.header.Get("Afoot-Eof"))
	require.False(t, c.get(t, id).Reported)
	require.Equal(t, http.StatusNoContent, ack(16).status)
	require.True(t, c.get(t, id).Reported)
	events := c.subscribe(t, "", "")
	require.Empty(t, events.quiet(t, c))
}

// A start that collects at once obeys the same header.
func TestAckOnStart(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("ack")
	a := c.do(t, http.MethodPost, "/tasks?wait=true", startBody("echo hi"), "Afoot-Ack: explicit")
	require.Equal(t, http.StatusCreated, a.status, "%s", a)
	var o output
	a.into(t, &o)
	require.Equal(t, "hi\n", o.Text)
	require.False(t, c.get(t, o.Snapshot.ID).Reported)
	require.Equal(t, "hi\n", c.read(t, o.Snapshot.ID, "", "Afoot-Ack: explicit").Text)
	a = c.do(t, http.MethodPost, "/tasks/"+o.Snapshot.ID+"/ack", fields{"nextOffset": o.NextOffset})
	require.Equal(t, http.StatusNoContent, a.status)
	require.True(t, c.get(t, o.Snapshot.ID).Reported)
}

func TestTextsForModels(t *testing.T) {
	t.Parallel()
	d := serve(t, "AFOOT_MAX_TASKS_PER_OWNER=30")
	c := d.as("text")
	plain := func(id, query string) *answer {
		t.Helper()
		a := c.do(t, http.MethodGet, "/tasks/"+id+"/output?"+query, nil, "Accept: text/plain")
		require.Equal(t, http.StatusOK, a.status, "%s", a)
		require.True(t, strings.HasPrefix(a.header.Get("Content-Type"), "text/plain"), "%v", a.header)
		return a
	}
	id := c.start(t, `printf 'no newline'; sleep 803`).ID
	c.says(t, id, "no newline")
	a := plain(id, "")
	require.Equal(t, "no newline\n[status: running]", string(a.body))
	for name, value := range map[string]string{"Afoot-Offset": "0", "Afoot-Next-Offset": "10", "Afoot-Eof": "false", "Afoot-Dropped-Bytes": "0"} {
		require.Equal(t, value, a.header.Get(name), name)
	}
	require.Equal(t, "(no new output)\n[status: running]", string(plain(id, "").body))
	c.kill(t, id)
	c.finish(t, id)
	require.Equal(t, "no newline\n[status: killed, signal: SIGTERM]", string(plain(id, "offset=0").body))

	wide := strings.Repeat("界", 100)
	for limit, text := range map[int]string{
		1000: wide + "\n[status: completed, exit code: 0]",
		// 33 bytes of status line, 20 of the marker with both newlines, 27 are left
		80: strings.Repeat("界", 9) + "\n[output truncated]\n[status: completed, exit code: 0]",
		20: "leted, exit code: 0]",
		1:  "]",
	} {
		id := c.start(t, "printf '"+wide+"'", fields{"outputLimitBytes": limit}).ID
		c.finish(t, id)
		got := string(plain(id, "").body)
		require.LessOrEqual(t, len(got), limit)
		require.Equal(t, text, got, "limit %d", limit)
		require.Equal(t, wide, c.read(t, id, "offset=0").Text, "JSON text is not cut")
	}
	for limit, text := range map[int]string{48: "界界界\n[output truncated]\n[status: running]", 20: "d]\n[status: running]"} {
		id := c.start(t, "printf '"+wide+"'; sleep 805", fields{"outputLimitBytes": limit}).ID
		c.says(t, id, wide)
		require.Equal(t, text, string(plain(id, "").body))
		c.kill(t, id)
	}
}

func TestPagesByOffset(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("pages")
	id := c.start(t, `seq 1 100000`).ID
	_, whole := c.finish(t, id)
	var joined strings.Builder
	offset := int64(0)
	for {
		o := c.read(t, id, fmt.Sprintf("offset=%d&limit_bytes=65536", offset))
		require.LessOrEqual(t, len(o.Text), 65536)
		require.Equal(t, offset, o.Offset)
		require.Zero(t, o.DroppedBytes)
		joined.WriteString(o.Text)
		offset = o.NextOffset
		if o.EOF {
			break
		}
		require.Len(t, o.Text, 65536)
	}
	require.Equal(t, whole, joined.String())
	o := c.read(t, id, "offset=0&limit_bytes=99999999999999")
	require.Len(t, o.Text, len(whole), "larger than the maximum is clamped")
	o = c.read(t, id, "limit_bytes=10")
	require.False(t, o.EOF, "a page that is not the last is not the end")
	require.Equal(t, whole[:10], o.Text)
	require.Equal(t, whole[10:], c.read(t, id, "").Text)
}

func TestDroppedHead(t *testing.T) {
	t.Parallel()
	const limit = 1 << 20
	d := serve(t, "AFOOT_OUTPUT_MAX_BYTES=1MiB")
	c := d.as("dropped")
	id := c.start(t, `seq 1 700000`).ID // 4,788,895 bytes
	var all strings.Builder
	for i := range 700000 {
		fmt.Fprintln(&all, i+1)
	}
	whole := all.String()
	eventually(t, 30*time.Second, "end", func() bool { return c.get(t, id).terminal() })
	s := c.get(t, id)
	require.Equal(t, int64(len(whole)), s.OutputBytes)
	require.GreaterOrEqual(t, s.DroppedBytes, int64(len(whole)-limit))
	require.Less(t, s.DroppedBytes, int64(len(whole)-limit/2), "about the limit is kept")

	o := c.read(t, id, "offset=0")
	require.Equal(t, s.DroppedBytes, o.Offset, "an offset below the first kept byte starts there")
	require.Equal(t, s.DroppedBytes, o.DroppedBytes)
	require.Equal(t, whole[o.Offset:], o.Text)
	a := c.do(t, http.MethodGet, "/tasks/"+id+"/log", nil)
	require.Equal(t, strconv.FormatInt(s.DroppedBytes, 10), a.header.Get("Afoot-Offset"))
	require.Equal(t, whole[s.DroppedBytes:], string(a.body))
	for _, r := range []string{"bytes=0-9", fmt.Sprintf("bytes=%d-", s.DroppedBytes-1)} {
		a = c.do(t, http.MethodGet, "/tasks/"+id+"/log", nil, "Range: "+r)
		require.Equal(t, http.StatusRequestedRangeNotSatisfiable, a.status, "%s", a)
		require.Contains(t, a.String()+fmt.Sprint(a.header), strconv.FormatInt(s.DroppedBytes, 10), "names the first kept byte")
	}
	a = c.do(t, http.MethodGet, "/tasks/"+id+"/log", nil, fmt.Sprintf("Range: bytes=%d-%d", s.DroppedBytes+5, s.DroppedBytes+14))
	require.Equal(t, http.StatusPartialContent, a.status)
	require.Equal(t, whole[s.DroppedBytes+5:s.DroppedBytes+15], string(a.body))
	a = c.do(t, http.MethodGet, "/tasks/"+id+"/output", nil, "Accept: text/plain")
	require.True(t, strings.HasPrefix(string(a.body), fmt.Sprintf("[%d bytes of older output were dropped]\n", s.DroppedBytes)), "%.100s", a.body)
	require.Equal(t, strconv.FormatInt(s.DroppedBytes, 10), a.header.Get("Afoot-Dropped-Bytes"))
	require.Equal(t, strconv.FormatInt(s.DroppedBytes, 10), a.header.Get("Afoot-Offset"))
}

func TestLogRanges(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("log")
	id := c.start(t, `printf 'a\0b\xff\n0123456789'`).ID
	c.finish(t, id)
	whole := "a\x00b\xff\n0123456789"
	path := "/tasks/" + id + "/log"
	a := c.do(t, http.MethodGet, path, nil)
	require.Equal(t, whole, string(a.body))
	require.Equal(t, "15", a.header.Get("Content-Length"))
	require.Equal(t, "0", a.header.Get("Afoot-Offset"))
	require.Equal(t, "bytes", a.header.Get("Accept-Ranges"))
	require.Equal(t, "nosniff", a.header.Get("X-Content-Type-Options"))
	require.NotContains(t, a.header.Get("Content-Type"), "html")
	a = c.do(t, http.MethodHead, path, nil)
	require.Equal(t, http.StatusOK, a.status)
	require.Empty(t, a.body)
	require.Equal(t, "15", a.header.Get("Content-Length"))
	for _, row := range []struct {
		value  string
		status int
		body   string
		where  string
	}{
		{"bytes=0-0", 206, whole[:1], "bytes 0-0/15"},
		{"bytes=2-5", 206, whole[2:6], "bytes 2-5/15"},
		{"bytes=5-", 206, whole[5:], "bytes 5-14/15"},
		{"bytes=-4", 206, whole[11:], "bytes 11-14/15"},
		{"bytes=-100", 206, whole, "bytes 0-14/15"},
		{"bytes=10-999", 206, whole[10:], "bytes 10-14/15"},
		{"bytes=15-", 416, "", "bytes */15"},
		{"bytes=99-100", 416, "", "bytes */15"},
		{"chunks=1-2", 200, whole, ""},
	} {
		a := c.do(t, http.MethodGet, path, nil, "Range: "+row.value)
		require.Equal(t, row.status, a.status, "%s: %s", row.value, a)
		require.Equal(t, row.where, a.header.Get("Content-Range"), row.value)
		if row.status != 416 {
			require.Equal(t, row.body, string(a.body), row.value)
		}
	}
	require.False(t, c.get(t, id).Reported, "the log consumes nothing")
	empty := c.start(t, "true").ID
	c.finish(t, empty)
	a = c.do(t, http.MethodGet, "/tasks/"+empty+"/log", nil)
	require.Equal(t, http.StatusOK, a.status)
	require.Empty(t, a.body)
}

func TestLogFollow(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("log")
	one, two := newGate(t), newGate(t)
	id := c.start(t, `printf first; `+one.wait()+`printf second; `+two.wait()+`printf '\xffthird'`).ID
	req, err := c.request(t.Context(), http.MethodGet, "/tasks/"+id+"/log?follow=true", nil)
	require.NoError(t, err)
	res, err := c.http.Do(req)
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	require.Equal(t, http.StatusOK, res.StatusCode)
	piece := make([]byte, 5)
	_, err = io.ReadFull(res.Body, piece)
	require.NoError(t, err)
	require.Equal(t, "first", string(piece), "at once, while the task lives")
	one.open(t)
	piece = make([]byte, 6)
	_, err = io.ReadFull(res.Body, piece)
	require.NoError(t, err)
	require.Equal(t, "second", string(piece))
	two.open(t)
	rest, err := io.ReadAll(res.Body)
	require.NoError(t, err, "the end is clean")
	require.Equal(t, "\xffthird", string(rest))
	a := c.do(t, http.MethodGet, "/tasks/"+id+"/log?follow=true", nil)
	require.Equal(t, "firstsecond\xffthird", string(a.body), "of an ended task: all, then the end")
	require.False(t, c.get(t, id).Reported)
}
