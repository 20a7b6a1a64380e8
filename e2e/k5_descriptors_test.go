package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// K5: a daemon that may open few files says so to those who start, answers those
// who look, and is whole again when there is room.
func TestK5FewDescriptors(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		limit  int
		fields fields
	}{{64, nil}, {48, nil}, {64, fields{"streams": "split"}}, {64, fields{"stdin": "open"}}} {
		t.Run(fmt.Sprint(row.limit, row.fields), func(t *testing.T) {
			t.Parallel()
			d := prepare(t, "AFOOT_MAX_TASKS_PER_OWNER=200")
			d.argv = append([]string{"bash", "-c", fmt.Sprintf(`ulimit -n %d; exec "$@"`, row.limit), "daemon"}, d.argv...)
			d.launch()
			d.ready()
			c := d.as("k5")
			base := d.descriptors()

			var starting atomic.Bool
			starting.Store(true)
			var g errgroup.Group
			g.Go(func() error { // list all along, on connections old and new
				for starting.Load() {
					for _, header := range []string{"Connection: keep-alive", "Connection: close"} {
						begun := time.Now()
						a, err := c.call(t.Context(), http.MethodGet, "/tasks?limit=1000", nil, header)
						if err != nil {
							return fmt.Errorf("list: %w", err)
						}
						if took := time.Since(begun); a.status != http.StatusOK || took > patient(3*time.Second) {
							return fmt.Errorf("list took %v: %s", took, a)
						}
					}
				}
				return nil
			})
			var started []string
			refused := 0
			for range 100 {
				a := c.do(t, http.MethodPost, "/tasks", startBody("sleep 300", row.fields))
				if a.status == http.StatusCreated {
					var s snapshot
					require.NoError(t, json.Unmarshal(a.body, &s))
					started = append(started, s.ID)
					continue
				}
				reason := strings.ToLower(a.refused(t, http.StatusServiceUnavailable, "unavailable"))
				require.True(t, strings.Contains(reason, "descriptor") || strings.Contains(reason, "open files"), "the real reason: %s", reason)
				refused++
			}
			starting.Store(false)
			require.NoError(t, g.Wait())
			require.Positive(t, refused, "the limit was met")
			require.NotEmpty(t, started)
			var listed []string
			for _, s := range c.list(t, "limit=1000") {
				listed = append(listed, s.ID)
			}
			require.Equal(t, started, listed, "no phantom, and none is missing")
			for i, id := range started {
				require.Equal(t, fmt.Sprintf("bash-%d", i+1), id, "a refused start burns no id")
			}
			for _, id := range started {
				c.kill(t, id)
			}
			for _, id := range started {
				s, _ := c.finish(t, id)
				require.Equal(t, "killed", s.Status)
				require.Equal(t, "signal: SIGTERM", s.Detail)
			}
			for range 5 {
				_, text := c.finish(t, c.start(t, "echo later; exit 0", row.fields).ID)
				require.Equal(t, "later\n", text)
			}
			c.http.CloseIdleConnections()
			// Some are kept to be used again, far fewer than there may be.
			eventually(t, 5*time.Second, "descriptors are back", func() bool { return d.descriptors() <= base+row.limit/4 })
		})
	}
}
