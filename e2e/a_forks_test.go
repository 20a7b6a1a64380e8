package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// chainFor gives a chain of forks its reason to go on, which ends with the test: one
// that the daemon does not end must not outlive it.
func chainFor(t *testing.T) fields {
	t.Helper()
	path := filepath.Join(t.TempDir(), "go")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	return fields{"env": fields{"GO": path}}
}

// A tree that is another one at every look, and never listens.
func TestA5ChainOfForksEnds(t *testing.T) {
	t.Parallel()
	for _, name := range nets {
		t.Run(name, func(t *testing.T) {
			net := inNet(t, name)
			d := serve(t, net)
			c := d.as("chain")
			for _, command := range []string{
				`f(){ trap "" TERM; sleep 0.0317; [ -e "$GO" ] && f & }; echo up; f & sleep 1017; true`,
				`f(){ trap "" TERM; sleep 0.0319; [ -e "$GO" ] && f & }; echo up; f & f & f & exec sleep 1019`,
			} {
				t.Run(command, func(t *testing.T) {
					id := c.start(t, command, chainFor(t)).ID
					c.says(t, id, "up")
					asked := time.Now()
					require.Equal(t, "requested", c.kill(t, id).Outcome)
					s, _ := c.finish(t, id)
					require.Empty(t, d.aliveOf(id), "settled before the tree was gone")
					require.Less(t, time.Since(asked), patient(grace+5*time.Second))
					require.Equal(t, "killed", s.Status)
					require.NotContains(t, s.Detail, "orphan")
				})
			}
		})
	}
}

// The same as a leftover: it is seen although each member lives shorter than a look.
func TestA1ChainOfForksIsALeftover(t *testing.T) {
	t.Parallel()
	for _, name := range nets {
		t.Run(name, func(t *testing.T) {
			net := inNet(t, name)
			d := serve(t, net)
			c := d.as("chain")
			id := c.start(t, `f(){ sleep 0.0121; [ -e "$GO" ] && f & }; f >/dev/null 2>&1 & echo up`, chainFor(t)).ID
			s, text := c.finish(t, id)
			require.Equal(t, "up\n", text)
			require.Equal(t, 0, s.exitCode())
			require.Regexp(t, `^exit code: 0; [1-9][0-9]* process(es)? left running$`, s.Detail)
			require.NotEmpty(t, s.Result["leftovers"])
			require.Equal(t, "already-finished", c.kill(t, id).Outcome)
			// Between two members of the chain a look may find none: it must stay so.
			eventually(t, grace+5*time.Second, "the chain has ended", func() bool {
				for range 20 {
					if len(d.aliveOf(id)) > 0 {
						return false
					}
				}
				return true
			})
		})
	}
}

// A kill close to the natural end is believed: what it answers is what happens.
func TestG4KillNearTheEnd(t *testing.T) {
	t.Parallel()
	const workers, rounds = 5, 30
	d := serve(t)
	var g errgroup.Group
	for w := range workers {
		c := d.as(fmt.Sprintf("near-%d", w))
		g.Go(func() error {
			for range rounds {
				if err := c.nearMiss(t); err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(t, g.Wait())
}

func (c *client) nearMiss(t *testing.T) error {
	t.Helper()
	a, err := c.call(t.Context(), http.MethodPost, "/tasks", startBody(`sleep .02`))
	if err != nil || a.status != http.StatusCreated {
		return fmt.Errorf("start: %w %s", err, a)
	}
	var s snapshot
	if err := json.Unmarshal(a.body, &s); err != nil {
		return err
	}
	// The place of the kill, not a wait for a fact.
	<-time.After(10*time.Millisecond + time.Duration(rand.Int64N(int64(20*time.Millisecond))))
	a, err = c.call(t.Context(), http.MethodDelete, "/tasks/"+s.ID, nil)
	if err != nil {
		return err
	}
	var k killed
	if err := json.Unmarshal(a.body, &k); err != nil {
		return fmt.Errorf("%w: %s", err, a)
	}
	var last snapshot
	if err := c.until(t.Context(), s.ID, func(s snapshot) bool { last = s; return s.terminal() }); err != nil {
		return err
	}
	switch {
	case !last.Reported:
		return fmt.Errorf("a kill reports: %+v", last)
	case k.Outcome == "requested" && a.status == http.StatusAccepted:
		if last.Status != "killed" {
			return fmt.Errorf("requested, and then %+v", last)
		}
	case k.Outcome == "already-finished" && a.status == http.StatusOK:
		if !k.Snapshot.terminal() || k.Snapshot.Status != last.Status || k.Snapshot.Detail != last.Detail ||
			k.Snapshot.FinishedAt == nil || *k.Snapshot.FinishedAt != *last.FinishedAt {
			return fmt.Errorf("already finished as %+v, and then %+v", k.Snapshot, last)
		}
		if last.Status != "completed" || last.Detail != "exit code: 0" {
			return fmt.Errorf("nobody stopped it: %+v", last)
		}
	default:
		return fmt.Errorf("kill: %s", a)
	}
	return nil
}
