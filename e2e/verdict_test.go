package e2e

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// verdict is what a race came to: how the task ended, how many notices it may have, and
// what it printed.
type verdict struct {
	status       string
	foreground   bool
	least, most  int
	text         string
	textMayBeCut bool // text is the whole of it, of which less may have been printed
}

// verdicts are those of all races of a test.
type verdicts struct {
	mu  sync.Mutex
	all map[string]verdict
}

func (v *verdicts) put(id string, one verdict) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, twice := v.all[id]; twice {
		return fmt.Errorf("%s twice", id)
	}
	if v.all == nil {
		v.all = make(map[string]verdict)
	}
	v.all[id] = one
	return nil
}

// agree compares every verdict with every other view of its task.
func (v *verdicts) agree(t *testing.T, c *client, events *stream) {
	t.Helper()
	notices := map[string]int{}
	for _, e := range events.quiet(t, c) {
		n := e.notice(t)
		notices[n.Task.ID]++
		require.Equal(t, v.all[n.Task.ID].status, n.Task.Status, "the notice of %s", n.Task.ID)
	}
	for id := range v.all {
		c.reported(t, id)
	}
	listed := map[string]toolTask{}
	for _, s := range c.labelled(t, "") {
		listed[s.ID] = s
	}
	for id, want := range v.all {
		s, err := c.whole(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, want.status, s.Status, "%s: %+v", id, s)
		require.Equal(t, want.foreground, s.Foreground, "%s: %+v", id, s)
		require.Equal(t, s.Status, listed[id].Status, "the list's %s", id)
		require.Equal(t, s.Foreground, listed[id].Foreground, "the list's %s", id)
		require.Equal(t, s.Reported, listed[id].Reported, "the list's %s", id)
		require.True(t, s.Reported, "%s was delivered by one way or another: %+v", id, s)
		require.GreaterOrEqual(t, notices[id], want.least, "notices of %s: %+v", id, s)
		require.LessOrEqual(t, notices[id], want.most, "notices of %s: %+v", id, s)
		log := string(c.log(t, id))
		if want.textMayBeCut {
			require.True(t, strings.HasPrefix(want.text, log), "the log of %s: %q", id, log)
		} else {
			require.Equal(t, want.text, log, "the log of %s", id)
		}
	}
}
