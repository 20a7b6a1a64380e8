package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// TestLeftoversTouchNobody: the pipes of leftovers come to their ends all the time while
// commands start, print and end. Each keeps what it printed, and its end is its own.
func TestLeftoversTouchNobody(t *testing.T) {
	t.Parallel()
	const leavers, talkers = 64, 24
	d := serve(t, "AFOOT_MAX_TASKS_PER_OWNER=100", "AFOOT_LOG_LEVEL=warn")
	c := d.as("crowd")
	ends := func(command, text string, code int) error {
		o, err := c.collect(t.Context(), command)
		if err == nil && (o.Snapshot.Status != "completed" || o.Snapshot.exitCode() != code || o.Text != text) {
			err = fmt.Errorf("%s: wanted code %d and %q, got %+v", command, code, text, o)
		}
		return err
	}
	var g errgroup.Group
	for n := range leavers {
		g.Go(func() error {
			for i := range 5 { // each ends a while after the output is not waited for any more
				command := fmt.Sprintf("(sleep 1.%d) & exit %d", 10+(7*n+13*i)%40, n)
				if err := ends(command, "", n); err != nil {
					return err
				}
			}
			return nil
		})
	}
	text := strings.Repeat("line\n", 5)
	for n := range talkers {
		g.Go(func() error {
			for range 20 { // the exit comes behind the end of the output
				command := fmt.Sprintf("for i in 1 2 3 4 5; do echo line; sleep .01; done; exec >&- 2>&-; sleep .01; exit %d", n)
				if err := ends(command, text, n); err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(t, g.Wait())
}
