package e2e

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Whoever takes an answer and leaves at once, as curl does, has had it: the text is
// not given again and no notice follows.
func TestH4TakenAndLeft(t *testing.T) {
	t.Parallel()
	d := serve(t, "AFOOT_MAX_TASKS_PER_OWNER=200")
	c := d.as("oneshot")
	const rounds = 40
	for _, query := range []string{"?wait=true", "", "?wait=true&timeout_ms=60000"} {
		for range rounds {
			id := c.start(t, "echo x").ID
			if query == "" {
				c.finish(t, id)
			}
			w, err := d.dial()
			require.NoError(t, err)
			require.NoError(t, w.ask(c, "/tasks/"+id+"/output"+query))
			res, err := http.ReadResponse(w.r, &http.Request{Method: http.MethodGet})
			require.NoError(t, err)
			_, err = io.ReadFull(res.Body, make([]byte, res.ContentLength))
			require.NoError(t, err)
			require.NoError(t, w.conn.Close())
			eventually(t, 10*time.Second, "the end is reported", func() bool { return c.get(t, id).Reported })
		}
	}
	events := c.subscribe(t, "", "")
	require.Empty(t, events.quiet(t, c), "notices of what was taken")
}

// pastNotice reads a stream to the end of its next notice.
func (w *wire) pastNotice() error {
	for seen := false; ; {
		line, err := w.r.ReadString('\n')
		if err != nil {
			return err
		}
		seen = seen || strings.HasPrefix(line, "event: task.done")
		if seen && strings.TrimSpace(line) == "" {
			return nil
		}
	}
}

// The same on a stream: a notice that was read is not pending any more, however
// soon its reader left.
func TestH6ReadAndLeft(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("leaver")
	for range 40 {
		id := c.start(t, "true").ID
		w, err := d.dial()
		require.NoError(t, err)
		require.NoError(t, w.ask(c, "/events"))
		require.NoError(t, w.pastNotice(), id)
		require.NoError(t, w.conn.Close())
		eventually(t, 10*time.Second, "the stream is over", func() bool { return d.streams(t) == 0 })
	}
	events := c.subscribe(t, "", "")
	require.Empty(t, events.quiet(t, c), "notices that were read")
}
