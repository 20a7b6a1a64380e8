package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// serveFirst starts a daemon that is process 1 of a namespace of its own.
func serveFirst(t *testing.T, env ...string) *daemon {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can make a namespace of processes")
	}
	d := prepare(t, env...)
	d.attr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID, Unshareflags: syscall.CLONE_NEWNS}
	d.argv = []string{"bash", "-c", `mount -t proc none /proc && exec "$0" serve`, binary}
	d.launch()
	d.ready()
	return d
}

// inside gives the state letters of the processes in the namespace of the daemon, as
// its own /proc lists them.
func (d *daemon) inside(t *testing.T) map[string]byte {
	t.Helper()
	stats, err := filepath.Glob(fmt.Sprintf("/proc/%d/root/proc/[0-9]*/stat", d.cmd.Process.Pid))
	require.NoError(t, err)
	found := map[string]byte{}
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		name, rest, _ := strings.Cut(string(stat), ") ")
		if rest != "" {
			found[name] = rest[0]
		}
	}
	return found
}

func TestK3FirstProcess(t *testing.T) {
	t.Parallel()
	for _, net := range []string{"auto", "subreaper", "group"} {
		t.Run(net, func(t *testing.T) {
			t.Parallel()
			d := serveFirst(t, "AFOOT_NET="+net, "AFOOT_MAX_TASKS_PER_OWNER=100")
			c := d.as("k3")
			base := d.inside(t)
			c.finish(t, c.start(t, "true").ID)

			// A shell of 500 children that are left, each with a child of its own.
			many := c.start(t, `for i in {1..500}; do (sleep .1 & exec sleep .2) & done; wait; exit 21`).ID
			var g errgroup.Group
			for w := range 20 {
				g.Go(func() error {
					for i := range 25 {
						code := (w*25 + i) % 256
						command := fmt.Sprintf(`(sleep .1 & exec sleep .2); setsid sleep .3 & exit %d`, code)
						if i%5 == 4 {
							command = fmt.Sprintf(`setsid -f sleep .05; (sleep .03 & sleep .01 &) ; exit %d`, code)
						}
						if err := c.exits(t, command, code); err != nil {
							return err
						}
					}
					return nil
				})
			}
			require.NoError(t, g.Wait())
			s, _ := c.finish(t, many)
			require.Equal(t, 21, s.exitCode())

			eventually(t, 3*time.Second, "no zombie, and nobody left", func() bool { return len(d.inside(t)) <= len(base) })
			for name, letter := range d.inside(t) {
				require.NotEqual(t, byte('Z'), letter, name)
			}

			// A signal's death is told as truly, and a kill works.
			s, _ = c.finish(t, c.start(t, `kill -9 $$`).ID)
			require.Equal(t, "SIGKILL", s.Result["signal"])
			length := odd(t)
			id := c.start(t, `setsid sleep `+length+` & sleep `+length).ID
			if net == "group" {
				id = c.start(t, `sleep `+length+` & sleep `+length).ID
			}
			eventually(t, 5*time.Second, "sleeps", func() bool { return len(asleep(length)) >= 2 })
			c.kill(t, id)
			c.finish(t, id)
			if net != "group" {
				require.Empty(t, asleep(length))
			}
			d.stop()
			require.Empty(t, asleep(length))
		})
	}
}

// exits runs a command to its end and checks the code.
func (c *client) exits(t *testing.T, command string, code int) error {
	t.Helper()
	o, err := c.collect(t.Context(), command)
	if err != nil {
		return err
	}
	if o.Snapshot.Status != "completed" || o.Snapshot.exitCode() != code {
		return fmt.Errorf("%s: wanted code %d, got %+v", command, code, o.Snapshot)
	}
	return nil
}

// As the first process the daemon is replaced like any other: by command, and by a signal
// to whoever is process 1.
func TestK3FirstProcessIsReplaced(t *testing.T) {
	t.Parallel()
	for _, net := range []string{"auto", "subreaper", "group"} {
		t.Run(net, func(t *testing.T) {
			t.Parallel()
			d := serveFirst(t, "AFOOT_NET="+net)
			c := d.as("k3")
			g := newGate(t)
			task := c.start(t, `echo before; `+g.wait()+`echo after; exit 7`).ID
			length := odd(t)
			left := c.start(t, `sleep `+length+` >/dev/null 2>&1 & exit 5`).ID
			c.over(t, left)
			base := d.inside(t)
			for n := range 4 {
				if n%2 == 0 {
					out, errs, code := d.command("reload")
					require.Zero(t, code, "%s%s", out, errs)
				} else {
					require.NoError(t, d.cmd.Process.Signal(syscall.SIGUSR2))
				}
				eventually(t, 20*time.Second, "it was replaced", func() bool {
					return strings.Count(d.logTail(1<<20), "msg=reloaded") == n+1
				})
				c.says(t, task, "before\n")
				require.Len(t, asleep(length), 1)
				eventually(t, 5*time.Second, "everybody as before", func() bool { return len(d.inside(t)) == len(base) })
			}
			g.open(t)
			s, text := c.finish(t, task)
			require.Equal(t, 7, s.exitCode())
			require.Equal(t, "before\nafter\n", text)
			d.stop()
			require.Empty(t, asleep(length))
		})
	}
}
