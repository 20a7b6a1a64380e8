package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A second end of an agent answers when the first has done its work, not before.
func TestSecondDisposalWaitsToo(t *testing.T) {
	t.Parallel()
	d := serve(t)
	for _, which := range []string{"default", "numbered"} {
		t.Run(which, func(t *testing.T) {
			t.Parallel()
			session := d.as("twice-" + which)
			agent, name := session, "default"
			if which == "numbered" {
				agent = session.open(t, fields{})
				name = agent.agent
			}
			id := agent.start(t, `trap "" TERM; echo up; while :; do sleep 0.913; done`).ID
			session.says(t, id, "up")
			type result struct {
				status int
				alive  []process
				err    error
			}
			results := make(chan result, 3)
			dispose := func() {
				a, err := session.call(t.Context(), http.MethodDelete, "/agents/"+name, nil)
				if err != nil {
					results <- result{err: err}
					return
				}
				results <- result{a.status, d.aliveOf(id), nil}
			}
			go dispose()
			eventually(t, 5*time.Second, "the first is under way", func() bool {
				a := session.do(t, http.MethodGet, "/tasks/"+id, nil)
				return a.status != http.StatusOK || !strings.Contains(string(a.body), `"running"`)
			})
			require.NotEmpty(t, d.aliveOf(id), "the grace is not over")
			go dispose()
			go dispose()
			for range 3 {
				r := <-results
				require.NoError(t, r.err)
				require.Contains(t, []int{http.StatusNoContent, http.StatusGone}, r.status)
				require.Empty(t, r.alive, "answered %d while the work went on", r.status)
			}
			if which == "default" {
				require.Equal(t, "default", session.start(t, "true").Agent)
			}
		})
	}
}
