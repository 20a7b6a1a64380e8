package e2e

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// A HEAD looks and touches nothing, whatever goes on beside it.
func TestHeadBesideEnds(t *testing.T) {
	t.Parallel()
	const n = 12
	d := serve(t, "AFOOT_MAX_TASKS_PER_OWNER=50")
	c := d.as("head")
	early := c.start(t, `echo early; exit 2`).ID
	c.finish(t, early)
	events := c.subscribe(t, "", "")
	gates := newGates(t, n)
	want := map[string]bool{early: true}
	started := []string{early}
	for _, g := range gates {
		id := c.start(t, `echo out; `+g.wait()+`exit 3`).ID
		want[id], started = true, append(started, id)
	}
	for i, g := range gates {
		g.open(t)
		for range 20 {
			for _, id := range []string{early, started[i+1]} {
				for _, query := range []string{"", "?wait=true&timeout_ms=60000"} {
					a := c.do(t, http.MethodHead, "/tasks/"+id+"/output"+query, nil)
					require.Equal(t, http.StatusOK, a.status)
				}
			}
		}
	}
	events.done(t, n+1)
	numbers := map[string]string{}
	for _, e := range events.quiet(t, c) {
		id := e.notice(t).Task.ID
		require.NotEmpty(t, e.id)
		require.True(t, want[id], "a notice of %s", id)
		require.Empty(t, numbers[id], "%s was announced twice", id)
		numbers[id] = e.id
	}
	require.Len(t, numbers, n+1)
	for _, id := range started {
		a := c.do(t, http.MethodHead, "/tasks/"+id+"/output", nil)
		require.Equal(t, "0", a.header.Get("Afoot-Offset"), "the cursor is where it was")
		require.False(t, c.get(t, id).Reported)
	}
	again := c.subscribe(t, "", events.all("task.done")[0].id)
	for _, e := range again.done(t, n) {
		if number, ok := numbers[e.notice(t).Task.ID]; ok {
			require.Equal(t, number, e.id, "one end, one number")
		}
	}
}
