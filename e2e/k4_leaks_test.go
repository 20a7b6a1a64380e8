package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// goroutines counts those of the daemon.
func (d *daemon) goroutines(t *testing.T) int {
	t.Helper()
	a := d.with(d.mint(map[string]any{"scope": "metrics"})).do(t, http.MethodGet, "/metrics", nil)
	for line := range strings.Lines(string(a.body)) {
		if count, ok := strings.CutPrefix(line, "go_goroutines "); ok {
			n, err := strconv.ParseFloat(strings.TrimSpace(count), 64)
			require.NoError(t, err)
			return int(n)
		}
	}
	require.Fail(t, "no go_goroutines in /metrics", "%s", a.body)
	return 0
}

// What tasks took is given back at their end, whatever end it was.
func TestK4NothingIsKept(t *testing.T) {
	t.Parallel()
	for _, name := range nets {
		t.Run(name, func(t *testing.T) {
			net := inNet(t, name)
			d := prepare(t, net, "AFOOT_MAX_TASKS_PER_OWNER=400")
			// The system's room for arguments and environment is a part of the stack's.
			d.argv = []string{"bash", "-c", `ulimit -s 1024; exec "$0" serve`, binary}
			d.launch()
			d.ready()
			c := d.as("k4")
			groups := ""
			for range 3 {
				_, text := c.finish(t, c.start(t, `cat /proc/self/cgroup; cat`, stdinOpen, fields{"streams": "split", "leftovers": "stop"}).kicked(t, c))
				for line := range strings.Lines(text) {
					if path, ok := strings.CutPrefix(line, "0::"); ok {
						groups = strings.TrimSpace(path)
					}
				}
			}
			burst := func(n, parallel int) error {
				var g errgroup.Group
				g.SetLimit(parallel)
				for i := range n {
					g.Go(func() error { return c.various(t, i) })
				}
				return g.Wait()
			}
			require.NoError(t, burst(60, 60)) // what is made once, or kept to be used again, is there
			base := d.counted(t, groups)
			require.NoError(t, burst(300, 20))

			before := len(c.list(t, ""))
			huge := fields{}
			for i := range 10 {
				huge["V"+strconv.Itoa(i)] = strings.Repeat("v", 100000)
			}
			for range 10 {
				a := c.do(t, http.MethodPost, "/tasks", startBody("true", fields{"env": huge}))
				require.GreaterOrEqual(t, a.status, 400, "%s", a)
				require.Equal(t, "application/problem+json", a.header.Get("Content-Type"))
				require.NotContains(t, string(a.body), "internal")
				c.do(t, http.MethodPost, "/tasks", startBody("true", fields{"workdir": "/no/such", "stdin": "open", "streams": "split"})).
					refused(t, http.StatusBadRequest, "invalid")
			}
			require.Len(t, c.list(t, ""), before, "no phantom")

			var killed []string
			for i := range 20 {
				command := []string{`echo up; sleep 883 & wait`, `echo up; cat; sleep 885; true`, `echo up; exec sleep 887`, `sleep 889 & echo up`}[i%4]
				killed = append(killed, c.start(t, command, stdinOpen, fields{"streams": []string{"merged", "split"}[i/4%2]}).ID)
			}
			for _, id := range killed {
				c.says(t, id, "up")
				c.kill(t, id)
			}
			for _, id := range killed {
				c.finish(t, id)
				d.gone(t, id, grace+time.Second)
			}
			var last counts
			begun := time.Now()
			for {
				last = d.counted(t, groups)
				if last.within(base) {
					break
				}
				require.Less(t, time.Since(begun), patient(2*time.Second), "base %+v, now %+v: %v", base, last, d.links())
			}
			require.Equal(t, name == "cgroup", last.groups > 0)
			d.stop()
			if root, err := cgroupRoot(); err == nil && name == "cgroup" {
				require.NoDirExists(t, filepath.Dir(filepath.Join(root, groups)), "a daemon that has ended keeps no group")
			}
		})
	}
}

// A leftover that ends by itself gives back what it was known by, though nobody asks.
func TestK4LeftoversThatEndByThemselves(t *testing.T) {
	t.Parallel()
	for _, name := range nets {
		t.Run(name, func(t *testing.T) {
			d := serve(t, inNet(t, name), "AFOOT_MAX_TASKS_PER_OWNER=40")
			c := d.as("k4")
			require.NoError(t, c.exits(t, "exit 2", 2))
			leave := func(n int) {
				gates := newGates(t, n)
				for _, g := range gates {
					id := c.start(t, `{ `+g.wait()+`} >/dev/null 2>&1 & exit 0`).ID
					s, _ := c.finish(t, id)
					require.Contains(t, s.Detail, "left running")
				}
				for _, g := range gates {
					g.open(t)
				}
			}
			leave(2)
			eventually(t, 5*time.Second, "they have gone", func() bool { return len(d.alive()) == 0 })
			base := d.counted(t, "")
			leave(20)
			eventually(t, 5*time.Second, "they have gone", func() bool { return len(d.alive()) == 0 })
			eventually(t, 2*time.Second, "descriptors are back", func() bool {
				return d.counted(t, "").descriptors <= base.descriptors+8
			})
		})
	}
}

// various runs one of several kinds of work to its own end.
func (c *client) various(t *testing.T, i int) error {
	t.Helper()
	code := i % 256
	switch i % 10 {
	case 7:
		// Not NULs: as JSON each takes six bytes, and most of the test's time was theirs.
		return c.exits(t, fmt.Sprintf(`head -c 300000 /dev/zero | tr '\0' x; exit %d`, code), code)
	case 8:
		return c.exits(t, fmt.Sprintf(`sleep 0.05 & setsid sleep 0.04 & wait; exit %d`, code), code)
	case 9:
		return c.exits(t, fmt.Sprintf(`: '%s'; exit %d`, strings.Repeat("x", 140000), code), code)
	}
	return c.exits(t, fmt.Sprintf(`echo %d; exit %d`, i, code), code)
}

// kicked ends the input of a task that reads and gives its id.
func (s snapshot) kicked(t *testing.T, c *client) string {
	t.Helper()
	c.input(t, s.ID, fields{"close": true})
	return s.ID
}

// links says what the daemon's descriptors are.
func (d *daemon) links() []string {
	paths, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", d.cmd.Process.Pid))
	for i, path := range paths {
		paths[i], _ = os.Readlink(path)
	}
	return paths
}

// counts are what a daemon holds.
type counts struct{ descriptors, goroutines, groups int }

// within allows for what is kept to be used again, which is less than any kind of work
// here would leak, and for groups that wait to be used.
func (c counts) within(base counts) bool {
	return c.descriptors <= base.descriptors+8 && c.goroutines <= base.goroutines+4 && c.groups <= base.groups+64
}

// counted counts with one connection open, its own. Groups are those beside that
// of a task, and it; 0 where tasks have none.
func (d *daemon) counted(t *testing.T, task string) counts {
	t.Helper()
	d.http.CloseIdleConnections()
	n := counts{goroutines: d.goroutines(t), descriptors: d.descriptors()}
	root, err := cgroupRoot()
	if err != nil {
		return n
	}
	if own, err := cgroupPath(d.cmd.Process.Pid); err == nil && task != "" && own != task {
		n.groups = groupsBelow(t, filepath.Dir(filepath.Join(root, task)))
	}
	return n
}
