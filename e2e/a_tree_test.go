package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestA1LeftoversDoNotHoldTheEnd(t *testing.T) {
	t.Parallel()
	for _, name := range nets {
		t.Run(name, func(t *testing.T) {
			net := inNet(t, name)
			rows := []struct {
				name, command, text string
				code, left          int
			}{
				{"holds both", `sleep 221 & echo done`, "done\n", 0, 1},
				{"holds stderr only", `sleep 223 >/dev/null & echo done`, "done\n", 0, 1},
				{"holds stdout only", `sleep 225 2>/dev/null & echo done`, "done\n", 0, 1},
				{"two of them", `sleep 227 & sleep 229 & echo done; exit 3`, "done\n", 3, 2},
				{"holds nothing", `sleep 231 >/dev/null 2>&1 </dev/null & echo done`, "done\n", 0, 1},
				{"nohup", `nohup sleep 233 & echo done`, "done\n", 0, 1},
				{"disowned in a subshell", `(sleep 235 & disown); echo done`, "done\n", 0, 1},
			}
			d := serve(t, net, "AFOOT_MAX_TASKS_PER_OWNER=20")
			c := d.as("a1")
			base, total := 0, 0
			for range 5 { // what it keeps ready is made bit by bit
				c.finish(t, c.start(t, "true").ID)
				base = max(base, d.descriptors())
			}
			for _, row := range rows {
				t.Run(row.name, func(t *testing.T) {
					id := c.start(t, row.command).ID
					s, text := c.finish(t, id)
					require.Less(t, s.lasted(t), patient(2*time.Second))
					require.Equal(t, "completed", s.Status)
					require.Equal(t, row.code, s.exitCode())
					require.Contains(t, text, row.text)
					require.Contains(t, s.Detail, fmt.Sprintf("exit code: %d; %d process", row.code, row.left))
					require.Contains(t, s.Detail, "left running")
					require.NotEmpty(t, s.Result["leftovers"])
					require.Len(t, d.aliveOf(id), row.left)
					total += row.left
					eventually(t, 2*time.Second, "at most its pipe's descriptor remains", func() bool {
						return d.descriptors() <= base+total+2 // two connections more, at most
					})

					c.purge(t, id)
					d.gone(t, id, grace+time.Second)
					total -= row.left
				})
			}
		})
	}
}

func TestA2DrainIsNotRearmed(t *testing.T) {
	t.Parallel()
	for _, name := range nets {
		t.Run(name, func(t *testing.T) {
			net := inNet(t, name)
			d := serve(t, net)
			c := d.as("a2")
			for name, command := range map[string]string{
				"every 0.2 s": `(while :; do echo tick; echo >>"$TICKS"; sleep .2; done) & echo fg`,
				"a flood":     `(while :; do echo tick; echo >>"$TICKS"; sleep .01; done) & echo fg`,
				"yes":         `yes tick | head -c 100000000 | while read -r x; do echo "$x"; echo >>"$TICKS"; sleep .05; done & echo fg`,
			} {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					ticks := filepath.Join(t.TempDir(), "ticks")
					id := c.start(t, command, fields{"env": fields{"TICKS": ticks}}).ID
					s, text := c.finish(t, id)
					require.Less(t, s.lasted(t), patient(2*time.Second))
					require.Equal(t, 0, s.exitCode())
					require.Contains(t, text, "fg\n")
					// What lives on goes on printing, as a file beside it tells, and that goes
					// nowhere.
					printed := func() int {
						data, err := os.ReadFile(ticks)
						require.NoError(t, err)
						return len(data)
					}
					last := printed()
					for range 3 {
						eventually(t, 10*time.Second, "further ticks", func() bool { return printed() >= last+3 })
						last = printed()
						o := c.read(t, id, "offset=0")
						require.Equal(t, s.OutputBytes, o.Snapshot.OutputBytes, "output grew after the end")
						require.Equal(t, s.OutputBytes, o.NextOffset)
						require.True(t, o.EOF)
					}
					require.NotEmpty(t, d.aliveOf(id), "what lives on is never blocked and does not die of its output")
					c.purge(t, id)
					d.gone(t, id, grace+time.Second)
				})
			}
		})
	}
}

func TestA1KillStopsLeftovers(t *testing.T) {
	t.Parallel()
	for _, name := range nets {
		t.Run(name, func(t *testing.T) {
			net := inNet(t, name)
			d := serve(t, net)
			c := d.as("a1")
			for _, command := range []string{
				`sleep 237 & echo up`,
				`sleep 239 >/dev/null 2>&1 & sleep 241 & echo up; exit 3`,
				`(trap "" TERM; while :; do sleep 0.243; done) & echo up`,
			} {
				t.Run(command, func(t *testing.T) {
					t.Parallel()
					id := c.start(t, command).ID
					s, _ := c.finish(t, id)
					require.NotEmpty(t, d.aliveOf(id))
					asked := time.Now()
					k := c.kill(t, id)
					require.Less(t, time.Since(asked), patient(time.Second), "a kill of a finished task answers at once")
					require.Equal(t, "already-finished", k.Outcome)
					require.Equal(t, s.Detail, k.Snapshot.Detail)
					d.gone(t, id, grace+time.Second)
					require.Equal(t, "up\n", c.read(t, id, "").Text)
				})
			}
		})
	}
}

func TestA3LateOutputBelongsToTheTask(t *testing.T) {
	t.Parallel()
	for _, name := range nets {
		t.Run(name, func(t *testing.T) {
			net := inNet(t, name)
			d := serve(t, net)
			c := d.as("a3")
			for _, row := range []struct {
				command, text string
				code          int
			}{
				{`exec > >(sleep 0.3; cat) 2>&1; echo hi; exit 3`, "hi\n", 3},
				{`exec > >(sleep 0.2; tr a-z A-Z) 2>&1; echo hi; exit 4`, "HI\n", 4},
				{`{ sleep 0.3; echo late; } & echo early; exit 5`, "early\nlate\n", 5},
				{`exec 2> >(sleep 0.2; cat); echo oops >&2`, "oops\n", 0},
			} {
				t.Run(row.command, func(t *testing.T) {
					t.Parallel()
					id := c.start(t, row.command).ID
					eventually(t, 5*time.Second, "end", func() bool { return c.get(t, id).terminal() })
					o := c.read(t, id, "")
					require.Equal(t, row.text, o.Text)
					require.True(t, o.EOF)
					require.Equal(t, row.code, o.Snapshot.exitCode())
					// On a busy machine the last process may still be on its way out.
					require.Regexp(t, fmt.Sprintf(`^exit code: %d(;|$)`, row.code), o.Snapshot.Detail)
				})
			}
		})
	}
}

// trees are commands whose whole tree stays in the task's own group.
func trees(n int) []string {
	return []string{
		fmt.Sprintf(`sleep %d; echo after`, n+1),
		fmt.Sprintf(`sleep %d & sleep %d & wait; echo after`, n+3, n+5),
		fmt.Sprintf(`sleep %d | cat; echo after`, n+7),
		fmt.Sprintf(`(sleep %d); echo after`, n+9),
		fmt.Sprintf(`bash -c 'bash -c "sleep %d; true"; true'; echo after`, n+11),
		fmt.Sprintf(`for i in 1 2 3; do sleep %d; done; echo after`, n+13),
		fmt.Sprintf(`x=$(sleep %d; echo after); echo after`, n+15),
		fmt.Sprintf(`trap "" TERM; sleep %d; echo after`, n+17),
		fmt.Sprintf(`while :; do sleep %d; done`, n+19),
	}
}

// startTrees starts all and waits until each has its sleep. A file tells if one
// ever came behind its sleep, also when its output can no longer be read.
func startTrees(t *testing.T, c *client, commands []string) (started []string, after string) {
	t.Helper()
	after = filepath.Join(t.TempDir(), "after")
	for _, command := range commands {
		command = strings.ReplaceAll(command, "echo after", "{ echo after; echo after >>'"+after+"'; }")
		started = append(started, c.start(t, command).ID)
	}
	for i, id := range started {
		eventually(t, 10*time.Second, "sleep of "+commands[i], func() bool {
			for _, p := range c.d.aliveOf(id) {
				if strings.HasPrefix(p.cmdline, "sleep ") {
					return true
				}
			}
			return false
		})
	}
	return started, after
}

func TestA4WholeTreeEndsByKill(t *testing.T) {
	t.Parallel()
	for _, name := range nets {
		t.Run(name, func(t *testing.T) {
			net := inNet(t, name)
			d := serve(t, net, "AFOOT_MAX_TASKS_PER_OWNER=20")
			c := d.as("a4")
			started, after := startTrees(t, c, trees(400))
			for _, id := range started {
				k := c.kill(t, id)
				require.Equal(t, "requested", k.Outcome)
				require.Equal(t, "stopping", k.Snapshot.Status)
				require.True(t, k.Snapshot.Reported)
			}
			deadline := time.Now().Add(patient(grace + time.Second))
			for _, id := range started {
				d.gone(t, id, time.Until(deadline))
				s, text := c.finish(t, id)
				require.Equal(t, "killed", s.Status)
				require.NotContains(t, text, "after")
			}
			require.NoFileExists(t, after)
		})
	}
}

func TestA4WholeTreeEndsByDisposal(t *testing.T) {
	t.Parallel()
	for _, name := range nets {
		t.Run(name, func(t *testing.T) {
			net := inNet(t, name)
			d := serve(t, net, "AFOOT_MAX_TASKS_PER_OWNER=20")
			session := d.as("a4")
			c := session.open(t, fields{})
			_, after := startTrees(t, c, trees(430))
			begun := time.Now()
			a := session.do(t, http.MethodDelete, "/agents/"+c.agent, nil)
			require.Equal(t, http.StatusNoContent, a.status, "%s", a)
			require.Empty(t, d.alive(), "the answer comes only when the work has really stopped")
			require.Less(t, time.Since(begun), patient(grace+time.Second))
			require.NoFileExists(t, after)
		})
	}
}

func TestA4WholeTreeEndsByShutdown(t *testing.T) {
	t.Parallel()
	for _, name := range nets {
		t.Run(name, func(t *testing.T) {
			net := inNet(t, name)
			d := serve(t, net, "AFOOT_MAX_TASKS_PER_OWNER=20")
			_, after := startTrees(t, d.as("a4"), trees(460))
			begun := time.Now()
			d.stop()
			require.Less(t, time.Since(begun), patient(grace+2*time.Second))
			require.NoFileExists(t, after)
		})
	}
}

func TestA5EscalationOutlivesTheLeader(t *testing.T) {
	t.Parallel()
	for _, name := range nets {
		t.Run(name, func(t *testing.T) {
			net := inNet(t, name)
			d := serve(t, net)
			c := d.as("a5")
			for _, row := range []struct{ command, stubborn string }{
				{`bash -c 'trap "" TERM; exec sleep 506' & trap 'exit 0' TERM; echo up; wait`, "sleep 506"},
				{`bash -c 'trap "" TERM; sleep 507; sleep 509' & echo up; wait`, "sleep 507"},
				{`(trap "" TERM; sleep 511 | cat) & echo up; exec sleep 513`, "sleep 511"},
			} {
				t.Run(row.command, func(t *testing.T) {
					t.Parallel()
					id := c.start(t, row.command).ID
					c.says(t, id, "up")
					eventually(t, 5*time.Second, row.stubborn, func() bool {
						for _, p := range d.aliveOf(id) {
							if p.cmdline == row.stubborn {
								return true
							}
						}
						return false
					})
					asked := time.Now()
					c.kill(t, id)
					s, _ := c.finish(t, id)
					require.Empty(t, d.aliveOf(id), "settled before the tree was gone")
					took := time.Since(asked)
					require.GreaterOrEqual(t, took, grace-50*time.Millisecond)
					require.Less(t, took, patient(grace+time.Second))
					require.Equal(t, "killed", s.Status)
				})
			}
		})
	}
}

func TestA10CleanSignalDispositions(t *testing.T) {
	t.Parallel()
	for name, argv := range map[string][]string{
		"plain":                {binary, "serve"},
		"nohup":                {"nohup", binary, "serve"},
		"background of a bash": {"bash", "-c", `trap "" INT QUIT USR1; exec "$0" serve`, binary},
	} {
		t.Run(name, func(t *testing.T) {
			d := prepare(t)
			d.argv = argv
			d.launch()
			d.ready()
			c := d.as("a10")
			_, text := c.finish(t, c.start(t, `grep -E 'Sig(Ign|Blk)' /proc/self/status`).ID)
			require.Equal(t, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n", text)
		})
	}
}

func TestA11WorkThatHoldsNothing(t *testing.T) {
	t.Parallel()
	for _, name := range nets {
		t.Run(name, func(t *testing.T) {
			net := inNet(t, name)
			d := serve(t, net)
			c := d.as("a11")
			for _, command := range []string{
				`(sleep 515 >/dev/null 2>&1 &); echo up`,
				`sleep 517 </dev/null >/dev/null 2>&1 & disown; echo up`,
				`(nohup sleep 519 >/dev/null 2>&1 &) ; echo up`,
			} {
				id := c.start(t, command).ID
				s, text := c.finish(t, id)
				require.Less(t, s.lasted(t), patient(time.Second))
				require.Equal(t, 0, s.exitCode())
				require.Equal(t, "up\n", text)
				require.Len(t, d.aliveOf(id), 1)
				require.Equal(t, "already-finished", c.kill(t, id).Outcome)
				d.gone(t, id, grace+time.Second)
			}
		})
	}
}
