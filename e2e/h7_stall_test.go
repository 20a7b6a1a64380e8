package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// An answer that was only begun is no delivery: cursor, status and notice stay
// until somebody gets all of it.
func TestH7CutWithinTheAnswer(t *testing.T) {
	t.Parallel()
	const size = 8000000
	d := serve(t)
	for name, row := range map[string]struct {
		query   string
		headers []string
		first   bool // ask before the end
	}{
		"read":           {"", nil, false},
		"wait":           {"wait=true&timeout_ms=30000", nil, true},
		"text":           {"", []string{"Accept: text/plain"}, false},
		"wait as text":   {"wait=true&timeout_ms=30000", []string{"Accept: text/plain"}, true},
		"a limited page": {"limit_bytes=7900000", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := d.as("stall " + name)
			events := c.subscribe(t, "", "")
			g := newGate(t)
			id := c.start(t, g.wait()+`head -c 8000000 /dev/zero | tr '\0' x; exit 3`).ID
			over := func() {
				g.open(t)
				eventually(t, 30*time.Second, "end", func() bool { return c.get(t, id).terminal() })
			}
			if !row.first {
				over()
			}
			w, err := d.dial()
			require.NoError(t, err)
			require.NoError(t, w.conn.SetReadBuffer(8192))
			require.NoError(t, w.ask(c, "/tasks/"+id+"/output?"+row.query, row.headers...))
			if row.first {
				eventually(t, 5*time.Second, "blocked wait", func() bool { return c.get(t, id).Waiters == 1 })
				over()
			}
			_, err = w.r.ReadByte() // the answer has begun
			require.NoError(t, err)
			require.False(t, c.get(t, id).Reported)
			require.NoError(t, w.cut())

			require.Equal(t, []string{id}, ids(t, events.done(t, 1)))
			require.False(t, c.get(t, id).Reported)
			o := c.read(t, id, "")
			require.Zero(t, o.Offset, "the delta is unread")
			require.Len(t, o.Text, size)
			require.True(t, o.EOF)
		})
	}
}

// A reader that takes nothing holds up nobody but, for a bounded time, the next
// consuming reader of the same task.
func TestH7StalledReaderHoldsNobody(t *testing.T) {
	t.Parallel()
	d := serve(t, "AFOOT_WRITE_TIMEOUT=5s")
	c := d.as("stall")
	id := c.start(t, `head -c 8000000 /dev/zero | tr '\0' x`).ID
	c.finish(t, id)
	w, err := d.dial()
	require.NoError(t, err)
	defer func() { _ = w.conn.Close() }()
	require.NoError(t, w.conn.SetReadBuffer(8192))
	require.NoError(t, w.ask(c, "/tasks/"+id+"/output"))
	_, err = w.r.ReadByte()
	require.NoError(t, err)
	begun := time.Now()
	require.Len(t, c.read(t, id, "offset=0").Text, 8000000)
	require.Len(t, c.list(t, ""), 1)
	require.Equal(t, "already-finished", c.kill(t, id).Outcome)
	_, text := c.finish(t, c.start(t, "echo other").ID)
	require.Equal(t, "other\n", text)
	require.Less(t, time.Since(begun), patient(10*time.Second))
	require.Len(t, c.read(t, id, "").Text, 8000000, "then it is the next one's turn")
	require.Less(t, time.Since(begun), patient(15*time.Second))
}

// A wait keeps its bound also where it stands behind a reader that takes nothing.
func TestG3WaitBehindAStalledReader(t *testing.T) {
	t.Parallel()
	const size = 20000000
	d := serve(t)
	c := d.as("behind")
	id := c.start(t, fmt.Sprintf(`head -c %d /dev/zero | tr '\0' x; echo; sleep 915`, size-1)).ID
	eventually(t, 30*time.Second, "output", func() bool { return c.get(t, id).OutputBytes == size })
	w, err := d.dial()
	require.NoError(t, err)
	defer func() { _ = w.conn.Close() }()
	require.NoError(t, w.conn.SetReadBuffer(4096))
	require.NoError(t, w.ask(c, "/tasks/"+id+"/output"))
	_, err = w.r.ReadByte()
	require.NoError(t, err)
	for range 2 {
		begun := time.Now()
		o := c.read(t, id, "wait=true&timeout_ms=500")
		require.Less(t, time.Since(begun), patient(5*time.Second))
		require.Equal(t, "running", o.Snapshot.Status)
		require.False(t, o.EOF)
		require.False(t, o.Snapshot.Reported)
		require.Equal(t, int64(size), o.Snapshot.OutputBytes)
	}
	require.NoError(t, w.cut())
	o := c.read(t, id, "")
	require.Zero(t, o.Offset, "nothing was consumed")
	require.NotEmpty(t, o.Text)
}

func TestBadInputWithoutLength(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("chunked")
	for name, row := range map[string]struct {
		body   string
		status int
		code   string
	}{
		"too large": {`{"kind":"bash","command":"true","label":"` + strings.Repeat("x", 3<<20) + `"}`, 413, "too_large"},
		"blanks":    {strings.Repeat(" ", 3<<20), 413, "too_large"},
		"broken":    {`{"kind":"bash","command":"tr`, 400, "invalid"},
	} {
		req, err := c.request(t.Context(), http.MethodPost, "/tasks", row.body)
		require.NoError(t, err)
		req.ContentLength = -1
		res, err := c.http.Do(req)
		require.NoError(t, err, name)
		body := make([]byte, 4096)
		n, _ := res.Body.Read(body)
		require.NoError(t, res.Body.Close())
		(&answer{status: res.StatusCode, header: res.Header, body: body[:n]}).refused(t, row.status, row.code)
	}
	require.Equal(t, "bash-1", c.start(t, "true").ID)
}
