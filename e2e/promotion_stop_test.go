package e2e

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestPromotionAgainstStop ends the daemon, well or suddenly, around the time at which
// it lets go of commands. Whatever a caller was told is still true after the next start.
func TestPromotionAgainstStop(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(*testing.T, *daemon){
		"well": func(t *testing.T, d *daemon) {
			t.Helper()
			require.NoError(t, d.cmd.Process.Signal(syscall.SIGTERM))
			require.True(t, d.waitExit(20*time.Second))
		},
		"suddenly": func(t *testing.T, d *daemon) { t.Helper(); d.die(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := serve(t, "AFOOT_MAX_TASKS_PER_OWNER=100")
			c := d.as("stop")
			var answered int
			for range 3 {
				answered += c.promotionAgainstStop(t, stop)
			}
			t.Logf("%d calls were answered", answered)
		})
	}
}

// promotionAgainstStop runs one life of the daemon.
func (c *client) promotionAgainstStop(t *testing.T, stop func(*testing.T, *daemon)) (answered int) {
	t.Helper()
	const calls = 12
	answers := make([]*toolResult, calls)
	var all sync.WaitGroup
	label := "stop " + hexText(4)
	for i := range calls {
		all.Go(func() {
			r, err := c.tryTool(t.Context(), "bash", shell("printf a; exec sleep 924", fields{"yield_ms": 150 + rand.IntN(150), "description": label}))
			if err == nil {
				answers[i] = &r
			}
		})
	}
	eventually(t, 10*time.Second, "all have printed", func() bool {
		tasks := c.labelled(t, label)
		return len(tasks) == calls && !slices.ContainsFunc(tasks, func(s toolTask) bool { return s.OutputBytes == 0 })
	})
	<-time.After(time.Duration(rand.IntN(250)) * time.Millisecond) // the place of the end
	stop(t, c.d)
	all.Wait()
	c.d.again()
	events := c.subscribe(t, "", "")
	notices := map[string]int{}
	for _, e := range events.quiet(t, c) {
		notices[e.notice(t).Task.ID]++
	}
	told := map[string]*toolResult{}
	for _, r := range answers {
		if r == nil {
			continue
		}
		answered++
		id := r.Value.id()
		if r.IsError {
			require.Contains(t, r.text(), "The daemon is shutting down; task ")
			id = strings.Fields(strings.TrimPrefix(r.text(), "The daemon is shutting down; task "))[0]
		}
		told[id] = r
	}
	for _, s := range c.labelled(t, label) {
		r, known := told[s.ID]
		require.True(t, s.terminal(), "%+v", s)
		if s.Foreground {
			require.True(t, s.Reported, "%+v", s)
			require.Zero(t, notices[s.ID])
			require.False(t, known && !r.IsError, "%s was let go of: %+v", s.ID, r)
			continue
		}
		if known && r.Value.EOF { // the answer told the end
			require.True(t, s.Reported, "%+v", s)
			require.Zero(t, notices[s.ID])
			continue
		}
		require.Equal(t, 1, notices[s.ID], "%+v, and its caller was told %+v", s, r)
		rest := c.good(t, "task_output", fields{"task_id": s.ID}).Value
		if known && r.Value.Text == "a" {
			require.Contains(t, []string{"", "a"}, rest.Text, "%s", s.ID) // the answer's text may come again
		} else {
			require.Equal(t, "a", rest.Text, "%s, and its caller was told %+v", s.ID, r)
		}
	}
	return answered
}
