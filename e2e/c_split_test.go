package e2e

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// secondStream is the other one in the answer to a read of a split task.
type secondStream struct {
	Text         string `json:"text"`
	Offset       int64  `json:"offset"`
	NextOffset   int64  `json:"nextOffset"`
	EOF          bool   `json:"eof"`
	DroppedBytes int64  `json:"droppedBytes"`
}

// both is the answer to a read of a split task.
type both struct {
	output
	Stderr *secondStream `json:"stderr"`
}

func (c *client) both(t *testing.T, id, query string, headers ...string) both {
	t.Helper()
	a := c.do(t, http.MethodGet, "/tasks/"+id+"/output?"+query, nil, headers...)
	require.Equal(t, http.StatusOK, a.status, "%s", a)
	var b both
	a.into(t, &b)
	return b
}

// startSplit starts a task with two streams.
func (c *client) startSplit(t *testing.T, command string) string {
	t.Helper()
	return c.start(t, command, fields{"streams": "split"}).ID
}

// saysApart waits until both streams hold their texts.
func (c *client) saysApart(t *testing.T, id, out, errs string) {
	t.Helper()
	for query, text := range map[string]string{"offset=0": out, "offset=0&stream=stderr": errs} {
		eventually(t, 15*time.Second, "a stream of "+id, func() bool { return strings.Contains(c.read(t, id, query).Text, text) })
	}
}

func TestSplitStreams(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("split")
	g := newGate(t)
	id := c.startSplit(t, `printf out1; printf 'err€1' >&2; `+g.wait()+`echo out2; echo err2 >/dev/stderr; exit 4`)
	c.saysApart(t, id, "out1", "err€1")
	require.Equal(t, "split", c.get(t, id).Request["streams"])

	// One read takes both, each by its own offsets.
	b := c.both(t, id, "")
	require.Equal(t, "out1", b.Text)
	require.Equal(t, [2]int64{0, 4}, [2]int64{b.Offset, b.NextOffset})
	require.Equal(t, &secondStream{Text: "err€1", NextOffset: 7}, b.Stderr)
	b = c.both(t, id, "")
	require.Empty(t, b.Text)
	require.Equal(t, &secondStream{Offset: 7, NextOffset: 7}, b.Stderr)

	// Looks select one and move nothing.
	require.Equal(t, "ut1", c.read(t, id, "offset=1").Text)
	require.Equal(t, "€1", c.read(t, id, "offset=4&stream=stderr").Text, "an offset inside a character moves back")
	c.do(t, http.MethodGet, "/tasks/"+id+"/output?offset=8&stream=stderr", nil).refused(t, http.StatusBadRequest, "invalid")

	g.open(t)
	c.finish(t, id)
	require.False(t, c.get(t, id).Reported)
	b = c.both(t, id, "wait=true")
	require.Equal(t, 4, b.Snapshot.exitCode())
	require.Equal(t, "out2\n", b.Text)
	require.True(t, b.EOF)
	require.Equal(t, &secondStream{Text: "err2\n", Offset: 7, NextOffset: 12, EOF: true}, b.Stderr)
	c.reported(t, id)

	require.Equal(t, "out1out2\n", string(c.log(t, id)))
	a := c.do(t, http.MethodGet, "/tasks/"+id+"/log?stream=stderr", nil)
	require.Equal(t, http.StatusOK, a.status, "%s", a)
	require.Equal(t, "err€1err2\n", string(a.body))
	a = c.do(t, http.MethodGet, "/tasks/"+id+"/log?stream=stderr", nil, "Range: bytes=3-5")
	require.Equal(t, http.StatusPartialContent, a.status)
	require.Equal(t, "€", string(a.body))
	require.Equal(t, "err€1err2\n", c.read(t, id, "offset=0&stream=stderr").Text, "captured output can be read again")
}

// A consuming read of the second stream alone moves that cursor alone, and the
// cursors wait for the write and for an ack as one does.
func TestSplitCursors(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("split")
	g := newGate(t)
	id := c.startSplit(t, `printf 0123456789; printf abcdefghij >&2; `+g.wait())
	c.saysApart(t, id, "0123456789", "abcdefghij")
	o := c.read(t, id, "stream=stderr&limit_bytes=3")
	require.Equal(t, "abc", o.Text)
	require.Equal(t, int64(3), o.NextOffset)
	b := c.both(t, id, "limit_bytes=4", "Afoot-Ack: explicit")
	require.Equal(t, "0123", b.Text, "the limit holds for each")
	require.Equal(t, "defg", b.Stderr.Text)
	b = c.both(t, id, "limit_bytes=5")
	require.Equal(t, "01234", b.Text, "nothing was acknowledged")
	require.Equal(t, "defgh", b.Stderr.Text)
	require.Equal(t, "ij", c.read(t, id, "stream=stderr").Text)
	b = c.both(t, id, "")
	require.Equal(t, "56789", b.Text)
	require.Empty(t, b.Stderr.Text)
	g.open(t)
	c.finish(t, id)
}

func TestSplitAckedTogether(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("split")
	id := c.startSplit(t, `printf out; printf err >&2`)
	c.finish(t, id)
	b := c.both(t, id, "", "Afoot-Ack: explicit")
	require.Equal(t, "out", b.Text)
	require.Equal(t, "err", b.Stderr.Text)
	require.False(t, c.get(t, id).Reported)
	a := c.do(t, http.MethodPost, "/tasks/"+id+"/ack", fields{"nextOffset": b.NextOffset})
	require.Equal(t, http.StatusNoContent, a.status, "%s", a)
	c.reported(t, id)
	b = c.both(t, id, "")
	require.Empty(t, b.Text)
	require.Empty(t, b.Stderr.Text, "acknowledged with it")
	require.True(t, b.Stderr.EOF)
}

func TestSplitText(t *testing.T) {
	t.Parallel()
	d := serve(t, "AFOOT_MAX_TASKS_PER_OWNER=30")
	c := d.as("split")
	for _, row := range []struct {
		command string
		out     string
		errs    string
	}{
		{`echo o; echo e >&2`, "o", "e"},
		{`printf o; printf e >&2`, "o", "e"},
		{`echo e >&2`, "", "e"},
		{`echo o`, "o", ""},
		{`true`, "", ""},
	} {
		id := c.startSplit(t, row.command)
		c.finish(t, id)
		a := c.do(t, http.MethodGet, "/tasks/"+id+"/output", nil, "Accept: text/plain")
		text := string(a.body)
		require.True(t, strings.HasSuffix(text, "\n[status: completed, exit code: 0]"), "%q", text)
		require.Equal(t, row.errs != "", strings.Contains(text, "[stderr]\n"), "%q", text)
		if row.errs != "" {
			require.Contains(t, text, "[stderr]\n"+row.errs+"\n[status:")
		}
		if row.out != "" {
			require.True(t, strings.HasPrefix(text, row.out+"\n["), "%q", text)
		}
		if row.out == "" && row.errs == "" {
			require.True(t, strings.HasPrefix(text, "(no new output)\n"), "%q", text)
		}
	}
	for limit := 1; limit < 90; limit += 8 {
		id := c.start(t, `printf '界%.0s' {1..30}; printf '€%.0s' {1..30} >&2`, fields{"streams": "split", "outputLimitBytes": limit}).ID
		c.finish(t, id)
		a := c.do(t, http.MethodGet, "/tasks/"+id+"/output", nil, "Accept: text/plain")
		require.LessOrEqual(t, len(a.body), limit, "%s", a)
		require.NotContains(t, string(a.body), "\uFFFD")
	}
}

// Both streams are captured whole, whatever their sizes and whoever closes one.
func TestSplitSizes(t *testing.T) {
	t.Parallel()
	d := serve(t, "AFOOT_OUTPUT_MAX_BYTES=2MiB")
	c := d.as("split")
	const bound = 2 << 20
	for _, row := range []struct {
		command   string
		out, errs int64
	}{
		{`head -c 1000000 /dev/zero; head -c 70000 /dev/zero >&2`, 1000000, 70000},
		{`head -c 1000000 /dev/zero >&2 & head -c 1000000 /dev/zero; wait`, 1000000, 1000000},
		{`exec 2>&-; echo gone >&2; head -c 100 /dev/zero`, 100, 0},
		{`exec >&-; head -c 300 /dev/zero >&2`, 0, 300},
		{`head -c 5000000 /dev/zero >&2; echo done`, 5, 5000000},
	} {
		id := c.startSplit(t, row.command)
		c.over(t, id)
		for query, size := range map[string]int64{"": row.out, "&stream=stderr": row.errs} {
			o := c.read(t, id, fmt.Sprintf("offset=%d%s", size, query))
			require.Equal(t, size, o.NextOffset, "%s %s", row.command, query)
			require.True(t, o.EOF)
			require.GreaterOrEqual(t, o.DroppedBytes, max(0, size-bound))
			a := c.do(t, http.MethodHead, "/tasks/"+id+"/log?"+strings.TrimPrefix(query, "&"), nil)
			require.Equal(t, strconv.FormatInt(size-o.DroppedBytes, 10), a.header.Get("Content-Length"))
		}
		require.Equal(t, row.out+row.errs, c.get(t, id).OutputBytes, "the snapshot counts all output")
	}
}

func TestSplitRefusals(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("split")
	for _, bad := range []any{"both", "", 1, nil, "SPLIT"} {
		a := c.do(t, http.MethodPost, "/tasks", startBody("true", fields{"streams": bad}))
		if bad == nil && a.status == http.StatusCreated {
			continue
		}
		a.refused(t, http.StatusBadRequest, "invalid")
	}
	merged := c.start(t, `echo o; echo e >&2`, fields{"streams": "merged"}).ID
	_, text := c.finish(t, merged)
	require.Equal(t, "o\ne\n", text)
	require.Nil(t, c.both(t, merged, "offset=0").Stderr)
	for _, path := range []string{"/output?stream=stderr", "/output?stream=stderr&offset=0", "/log?stream=stderr", "/output?stream=x", "/log?stream=x"} {
		c.do(t, http.MethodGet, "/tasks/"+merged+path, nil).refused(t, http.StatusBadRequest, "invalid")
	}
	require.Equal(t, "o\ne\n", c.read(t, merged, "stream=stdout").Text)
	split := c.startSplit(t, `echo o; echo e >&2`)
	c.finish(t, split)
	require.Equal(t, "o\n", c.read(t, split, "offset=0&stream=stdout").Text)
	require.Equal(t, "o\n", string(c.do(t, http.MethodGet, "/tasks/"+split+"/log?stream=stdout", nil).body))
	c.do(t, http.MethodGet, "/tasks/"+split+"/output?stream=both", nil).refused(t, http.StatusBadRequest, "invalid")
	c.purge(t, split)
	c.do(t, http.MethodGet, "/tasks/"+split+"/log?stream=stderr", nil).refused(t, http.StatusGone, "gone")
}
