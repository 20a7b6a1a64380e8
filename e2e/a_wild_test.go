package e2e

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// wild is a command that leaves its group or session, or does not go when told. Its
// sleeps are numbered {0}, {1}, …; the first of them sleep before it is stopped, the
// others are born during the stop, if at all.
type wild struct {
	name, command string
	first         int
	// traceless ones have left everything that tells whose they are before anybody could
	// look. A cgroup knows them; a subreaper only if there is one tree, and at its end.
	traceless bool

	lengths []string
}

// traced leaves out what a net can't know.
func traced(net string, rows []wild) []wild {
	if net == "cgroup" {
		return rows
	}
	return slices.DeleteFunc(rows, func(row wild) bool { return row.traceless })
}

// wilds are trees whose leader lives.
func wilds() []wild {
	return []wild{
		{"own sessions", `setsid sleep {0} & setsid bash -c "setsid sleep {1} & wait" & wait`, 2, false, nil},
		{"without environment", `env -i setsid -f sleep {0}; exec sleep {1}`, 2, false, nil},
		{"forked three times", `(env -i setsid -f setsid -f setsid -f sleep {0} >/dev/null 2>&1 &); sleep {1}; true`, 2, true, nil},
		{"daemon by the book", `setsid bash -c 'cd /; exec </dev/null >/dev/null 2>&1; umask 0; (setsid sleep {0} &) ; exit 0'; sleep {1}; true`, 2, false, nil},
		{"nohup and disowned", `nohup setsid sleep {0} >/dev/null 2>&1 & disown; nohup bash -c 'sleep {1}; true' & disown; sleep {2}; true`, 3, false, nil},
		{"coprocess", `coproc env -i setsid sleep {0}; sleep {1}; true`, 2, false, nil},
		{"process substitutions", `exec 3> >(setsid sleep {0}); cat <(env -i setsid sleep {1}) >/dev/null`, 2, false, nil},
		{"substituted command", `x=$(setsid sleep {0}); echo "$x"`, 1, false, nil},
		{"deaf in its own session", `setsid bash -c 'trap "" TERM; sleep {0}; sleep {2}' & sleep {1} & wait`, 2, false, nil},
		{"jobs with groups", `set -m; sleep {0} & sleep {1} | cat & setsid sleep {2} & wait`, 3, false, nil},
		{"stopped", `sleep {0} & until grep -qa ^sleep /proc/$!/cmdline; do sleep .01; done; kill -STOP $!; setsid bash -c 'sleep {1} & kill -STOP $$; wait' & sleep {2} & wait`, 3, false, nil},
		{"stopped leader", `setsid sleep {0} & sleep {1} & until grep -qa ^sleep /proc/$!/cmdline; do sleep .01; done; kill -STOP $!; kill -STOP $$; true`, 2, false, nil},
		{"stopped and deaf", `setsid bash -c 'trap "" TERM CONT; sleep {0} & kill -STOP $$; wait' & sleep {1}; true`, 2, false, nil},
		{"born in a trap", `trap 'env -i setsid -f sleep {1}; exit 0' TERM; sleep {0} & wait`, 1, false, nil},
		{"born in many traps", `for i in 1 2 3; do setsid bash -c 'trap "env -i setsid -f sleep {1}; setsid sleep {2} & " TERM; while :; do sleep 0.05; done' & done; sleep {0} & wait`, 1, false, nil},
		{"phoenix", `setsid bash -c 'f() { trap "setsid -f bash -c \"trap : TERM; sleep {1}; sleep {2}\"" TERM; while :; do sleep 0.07; done; }; f' & sleep {0}; true`, 1, false, nil},
		{"leader gone first", `trap 'exit 0' TERM; setsid bash -c 'trap "" TERM; exec sleep {0}' & sleep {1} & wait`, 2, false, nil},
		{"closed everything", `setsid bash -c 'exec <&- >&- 2>&-; sleep {0}; true' & exec <&- >&- 2>&-; sleep {1}; true`, 2, false, nil},
		{"another name", `setsid bash -c 'exec -a "[kworker/0:0]" sleep {0}' & sleep {1}; true`, 1, false, nil},
	}
}

// leavers are those whose leader ends at once.
func leavers() []wild {
	return []wild{
		{"subshell", `(setsid sleep {0} >/dev/null 2>&1 &); echo up`, 1, false, nil},
		{"without environment", `env -i setsid -f sleep {0} >/dev/null 2>&1; echo up`, 1, true, nil},
		{"holds the output", `env -i setsid -f sleep {0}; echo up`, 1, false, nil},
		{"nohup", `nohup setsid sleep {0} >/dev/null 2>&1 & disown; echo up`, 1, false, nil},
		{"coprocess", `coproc setsid sleep {0} 2>/dev/null; echo up`, 1, false, nil},
		{"substitution", `exec 3> >(exec setsid sleep {0} >/dev/null 2>&1); echo up`, 1, false, nil},
		{"two", `setsid -f sleep {0} >/dev/null 2>&1; sleep {1} >/dev/null 2>&1 & echo up`, 2, false, nil},
		{"stopped", `setsid sleep {0} >/dev/null 2>&1 & until grep -qa ^sleep /proc/$!/cmdline; do sleep .01; done; echo up; exec bash -c 'kill -STOP '$!`, 1, false, nil},
	}
}

// begin starts all, each with lengths of its own, and waits for their first sleeps.
func (c *client) begin(t *testing.T, rows []wild) (started []string) {
	t.Helper()
	for i := range rows {
		row := &rows[i]
		for n := 0; strings.Contains(row.command, fmt.Sprintf("{%d}", n)); n++ {
			length := odd(t)
			row.lengths = append(row.lengths, length)
			row.command = strings.ReplaceAll(row.command, fmt.Sprintf("{%d}", n), length)
		}
		started = append(started, c.start(t, row.command).ID)
	}
	for _, row := range rows {
		for _, length := range row.lengths[:row.first] {
			eventually(t, 15*time.Second, row.name+": sleep "+length, func() bool { return len(saying("\x00"+length)) > 0 })
		}
	}
	return started
}

// nobody checks that no process of the rows lives, now.
func nobody(t *testing.T, rows []wild) {
	t.Helper()
	for _, row := range rows {
		for _, length := range row.lengths {
			require.Empty(t, saying(length), "%s: %s", row.name, row.command)
		}
	}
}

// wildsEndByKill kills all that the daemon's net can know, at once.
func (c *client) wildsEndByKill(t *testing.T) {
	t.Helper()
	rows := traced(c.d.net(t), wilds())
	started := c.begin(t, rows)
	for _, id := range started {
		c.kill(t, id)
	}
	for _, id := range started {
		c.finish(t, id)
	}
	nobody(t, rows)
}

func TestA6WildTreesEndByKill(t *testing.T) {
	t.Parallel()
	for _, name := range wideNets {
		t.Run(name, func(t *testing.T) {
			net := inNet(t, name)
			d := serve(t, net, "AFOOT_MAX_TASKS_PER_OWNER=40")
			c := d.as("a6")
			rows := traced(name, wilds())
			started := c.begin(t, rows)
			asked := time.Now()
			for _, id := range started {
				require.Equal(t, "requested", c.kill(t, id).Outcome)
			}
			for i, id := range started {
				s, _ := c.finish(t, id)
				nobody(t, rows[i:i+1])
				require.Empty(t, d.aliveOf(id), rows[i].name)
				require.Equal(t, "killed", s.Status, rows[i].name)
				require.NotContains(t, s.Detail, "orphan", rows[i].name)
			}
			require.Less(t, time.Since(asked), patient(grace+time.Second))
			nobody(t, rows)
		})
	}
}

func TestA6WildTreesEndByDisposal(t *testing.T) {
	t.Parallel()
	for _, name := range wideNets {
		t.Run(name, func(t *testing.T) {
			net := inNet(t, name)
			d := serve(t, net, "AFOOT_MAX_TASKS_PER_OWNER=40")
			session := d.as("a6")
			rows, left := traced(name, wilds()), traced(name, leavers())
			agent := session.open(t, fields{})
			agent.begin(t, append(rows, left...))
			begun := time.Now()
			a := session.do(t, http.MethodDelete, "/agents/"+agent.agent, nil)
			require.Equal(t, http.StatusNoContent, a.status, "%s", a)
			nobody(t, rows)
			nobody(t, left)
			require.Empty(t, d.alive())
			require.Less(t, time.Since(begun), patient(grace+time.Second))
		})
	}
}

func TestA6WildTreesEndByShutdown(t *testing.T) {
	t.Parallel()
	for _, name := range wideNets {
		t.Run(name, func(t *testing.T) {
			net := inNet(t, name)
			d := serve(t, net, "AFOOT_MAX_TASKS_PER_OWNER=40")
			rows, left := wilds(), leavers()
			d.as("a6").begin(t, append(rows, left...))
			begun := time.Now()
			d.stop()
			nobody(t, rows)
			nobody(t, left)
			require.Less(t, time.Since(begun), patient(grace+2*time.Second))
		})
	}
}

func TestA6WildTreesEndByTimeout(t *testing.T) {
	t.Parallel()
	for _, name := range wideNets {
		t.Run(name, func(t *testing.T) {
			net := inNet(t, name)
			d := serve(t, net, "AFOOT_MAX_TASKS_PER_OWNER=40")
			c := d.as("a6")
			var rows []wild
			for _, row := range traced(name, wilds()) {
				length := odd(t)
				row.lengths = []string{length}
				for n := range 5 {
					row.command = strings.ReplaceAll(row.command, fmt.Sprintf("{%d}", n), length)
				}
				rows = append(rows, row)
			}
			var started []string
			for _, row := range rows {
				started = append(started, c.start(t, row.command, fields{"timeoutMs": 1500}).ID)
			}
			for i, id := range started {
				s, _ := c.finish(t, id)
				nobody(t, rows[i:i+1])
				require.Equal(t, "killed", s.Status, rows[i].name)
				require.Contains(t, s.Detail, "timed out after 1500", rows[i].name)
			}
		})
	}
}

func TestA11WildLeftovers(t *testing.T) {
	t.Parallel()
	for _, name := range wideNets {
		t.Run(name, func(t *testing.T) {
			net := inNet(t, name)
			d := serve(t, net, "AFOOT_MAX_TASKS_PER_OWNER=40")
			c := d.as("a11")
			rows := traced(name, leavers())
			started := c.begin(t, rows)
			for i, id := range started {
				row := rows[i]
				s, text := c.finish(t, id)
				require.Equal(t, "up\n", text, row.name)
				require.Equal(t, "completed", s.Status, row.name)
				require.Equal(t, 0, s.exitCode(), row.name)
				within := time.Second
				if row.name == "holds the output" {
					within = 2 * time.Second
				}
				require.Less(t, s.lasted(t), patient(within), row.name)
				require.Contains(t, s.Detail, "exit code: 0; ", row.name)
				require.Contains(t, s.Detail, "left running", row.name)
				told := map[int]string{}
				list, ok := s.Result["leftovers"].([]any)
				require.True(t, ok, "%s: %+v", row.name, s.Result)
				for _, l := range list {
					one, ok := l.(map[string]any)
					require.True(t, ok, "%+v", s.Result)
					pid, ok := one["pid"].(float64)
					require.True(t, ok, "%+v", s.Result)
					told[int(pid)] = fmt.Sprint(one["command"])
				}
				for _, length := range row.lengths {
					for _, pid := range asleep(length) {
						// One that has made a session for itself a moment ago is named by that still.
						require.Regexp(t, "sleep|setsid", told[pid], "%s: %+v", row.name, s.Result)
					}
				}
			}
			for i, id := range started {
				if i%2 == 0 {
					asked := time.Now()
					require.Equal(t, "already-finished", c.kill(t, id).Outcome)
					require.Less(t, time.Since(asked), patient(time.Second), "at once")
				} else {
					c.purge(t, id)
				}
			}
			for _, row := range rows {
				eventually(t, grace+time.Second, row.name+" has gone", func() bool {
					for _, length := range row.lengths {
						if len(saying(length)) > 0 {
							return false
						}
					}
					return true
				})
			}
		})
	}
}

// Where only the order of births tells whose somebody is, one tree is enough.
func TestA6TracelessBesideNobody(t *testing.T) {
	t.Parallel()
	for _, name := range wideNets {
		t.Run(name, func(t *testing.T) {
			net := inNet(t, name)
			for _, row := range append(wilds(), leavers()...) {
				if !row.traceless {
					continue
				}
				d := serve(t, net)
				c := d.as("a6")
				rows := []wild{row}
				id := c.begin(t, rows)[0]
				c.kill(t, id)
				s, _ := c.finish(t, id)
				require.NotContains(t, s.Detail, "orphan")
				eventually(t, grace+time.Second, row.name+" has gone", func() bool { return len(saying(rows[0].lengths[0])) == 0 })
				d.stop()
			}
		})
	}
}

// A tree in a group that it made below its own belongs to the task all the same, and
// nothing of it stays.
func TestA6NestedControlGroups(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("tasks of a daemon that is not root may not own their group")
	}
	needCgroup(t)
	const nest = `m=$(awk '$3=="cgroup2"{print $2; exit}' /proc/self/mounts); g=$m$(sed -n 's/^0:://p' /proc/self/cgroup)
mkdir "$g/one" "$g/one/two" "$g/empty" || exit 9
env -i setsid bash -c 'echo $$ >"$1/one/two/cgroup.procs" || exit 9; trap "" TERM; sleep {0}; sleep {0}' - "$g" >/dev/null 2>&1 &
echo "$g"; `
	d := serve(t, "AFOOT_NET=cgroup")
	session := d.as("nest")
	for name, row := range map[string]struct {
		last string
		stop func(t *testing.T, c *client, id string)
	}{
		"kill":     {"wait", func(t *testing.T, c *client, id string) { t.Helper(); c.kill(t, id); c.finish(t, id) }},
		"leftover": {"exit 0", func(t *testing.T, c *client, id string) { t.Helper(); c.finish(t, id); c.kill(t, id) }},
		"purge":    {"exit 0", func(t *testing.T, c *client, id string) { t.Helper(); c.finish(t, id); c.purge(t, id) }},
		"disposal": {"wait", func(t *testing.T, c *client, _ string) {
			t.Helper()
			require.Equal(t, http.StatusNoContent, session.do(t, http.MethodDelete, "/agents/"+c.agent, nil).status)
		}},
		"by itself": {`until grep -q . "$g/one/two/cgroup.procs"; do sleep .01; done; echo 1 >"$g/one/cgroup.kill"; wait`, func(t *testing.T, c *client, id string) {
			t.Helper()
			s, _ := c.finish(t, id)
			require.Equal(t, "completed", s.Status)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := session.open(t, fields{})
			length := odd(t)
			id := c.start(t, strings.ReplaceAll(nest, "{0}", length)+row.last).ID
			c.says(t, id, "\n")
			dir := strings.TrimSpace(c.read(t, id, "offset=0").Text)
			if name != "by itself" {
				eventually(t, 10*time.Second, "sleep in a nested group", func() bool {
					found := asleep(length)
					if len(found) != 1 {
						return false
					}
					group, err := cgroupOf(found[0])
					return err == nil && group == dir+"/one/two"
				})
				require.DirExists(t, dir)
			}
			row.stop(t, c, id)
			eventually(t, grace+2*time.Second, "nobody and nothing is left", func() bool {
				_, err := os.Stat(dir)
				return os.IsNotExist(err) && len(saying(length)) == 0
			})
		})
	}
}
