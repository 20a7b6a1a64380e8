package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const nobodysID = 65534

func uidOf(info os.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Uid) }

// serveAs starts a daemon of root whose tasks are nobody's.
func serveAs(t *testing.T, env ...string) *daemon {
	t.Helper()
	d := prepare(t, append([]string{"AFOOT_RUN_AS=65534:65534"}, env...)...)
	d.openTo(t)
	require.NoError(t, os.Chown(d.work, nobodysID, nobodysID))
	d.launch()
	d.ready()
	return d
}

func TestRunAs(t *testing.T) {
	t.Parallel()
	for _, name := range nets {
		t.Run(name, func(t *testing.T) {
			net := inNet(t, name)
			d := serveAs(t, net, "AFOOT_MAX_TASKS_PER_OWNER=60", "JWT_KEY=s3cr3t-1", "HOME=/root", "USER=root", "LOGNAME=root")
			c := d.as("runas")
			run := func(command string, more ...fields) (snapshot, string) {
				t.Helper()
				return c.finish(t, c.start(t, command, more...).ID)
			}
			t.Run("who it is", func(t *testing.T) {
				_, text := run(`id -u; id -g; id -G; grep -E '^Cap(Inh|Prm|Eff)|^Groups' /proc/self/status | tr -s '\t ' ' '; touch here && stat -c %u here`)
				require.Regexp(t, `^65534\n65534\n65534\nGroups:( 65534)? ?\nCapInh: 0+\nCapPrm: 0+\nCapEff: 0+\n65534\n$`, text)
				_, text = run(`echo "$HOME"`)
				require.NotEqual(t, "/root\n", text, "root's home is not its own")
				_, text = run(`echo "$HOME"`, fields{"env": fields{"HOME": "/mine"}})
				require.Equal(t, "/mine\n", text)
				_, text = run(`echo "$USER $LOGNAME"`)
				require.NotContains(t, text, "root")
			})
			t.Run("what it can't reach", func(t *testing.T) {
				_, text := run(`for p in "$STATE" "$STATE/x" /proc/$PPID/environ /proc/$PPID/mem "$SECRET"; do ls "$p" >/dev/null 2>&1 && { cat "$p" || ls "$p"/*; } >/dev/null 2>&1 && echo "reads $p"; done
: >"$STATE/x" 2>/dev/null && echo writes; cat /proc/[0-9]*/environ 2>/dev/null | tr '\0' '\n' | grep -c s3cr3t`,
					fields{"env": fields{"STATE": d.state, "SECRET": filepath.Join(filepath.Dir(d.work), "secret")}})
				var kept []string
				for line := range strings.Lines(text) {
					if !strings.Contains(line, "denied") {
						kept = append(kept, line)
					}
				}
				require.Equal(t, []string{"0\n"}, kept)
				_, text = run(`kill -0 $PPID && echo signals`)
				require.NotContains(t, text, "signals")
				info, err := os.Stat(d.state)
				require.NoError(t, err)
				require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
				require.Equal(t, 0, uidOf(info))
			})
			t.Run("C15 output by name", func(t *testing.T) {
				for _, more := range []fields{nil, {"stdin": "open"}} {
					_, text := run(`echo a; echo b >/dev/stderr; echo c >/dev/stdout; echo d; echo e >>/proc/self/fd/2; sh -c 'echo f >/dev/fd/1'`, more)
					require.Equal(t, "a\nb\nc\nd\ne\nf\n", text)
				}
				id := c.start(t, `echo a; echo b >/dev/stderr; echo c >/dev/stdout; echo d >&2`, fields{"streams": "split"}).ID
				c.finish(t, id)
				a := c.do(t, http.MethodGet, "/tasks/"+id+"/log", nil)
				require.Equal(t, "a\nc\n", string(a.body))
				a = c.do(t, http.MethodGet, "/tasks/"+id+"/log?stream=stderr", nil)
				require.Equal(t, "b\nd\n", string(a.body))
			})
			t.Run("input", func(t *testing.T) {
				id := c.start(t, `read -r x </dev/stdin; echo "<$x>"; cat /proc/self/fd/0; wc -c`, stdinOpen).ID
				c.input(t, id, fields{"data": "one\n"})
				c.says(t, id, "<one>")
				c.input(t, id, fields{"data": "two\n", "close": true})
				_, text := c.finish(t, id)
				require.Equal(t, "<one>\ntwo\n0\n", text)
			})
			t.Run("long script", func(t *testing.T) {
				s, text := run(": '" + strings.Repeat("x", 200000) + "'; id -u; cat | wc -c; exit 3")
				require.Equal(t, "65534\n0\n", text)
				require.Equal(t, 3, s.exitCode())
			})
			t.Run("limits", func(t *testing.T) {
				_, text := run(`nice; id -u`, fields{"nice": 19})
				require.Equal(t, "19\n65534\n", text)
			})
			t.Run("workdirs", func(t *testing.T) {
				dir := filepath.Join(filepath.Dir(d.work), "closed-"+hexText(3))
				require.NoError(t, os.Mkdir(dir, 0o700))
				a := c.do(t, http.MethodPost, "/tasks", startBody("pwd", fields{"workdir": dir}))
				require.Contains(t, a.refused(t, http.StatusBadRequest, "invalid"), dir)
			})
			t.Run("the end", func(t *testing.T) {
				id := c.start(t, `trap 'echo got' INT; echo up; sleep 879 & wait; sleep 881`).ID
				c.says(t, id, "up")
				c.signal(t, id, "INT")
				c.says(t, id, "got")
				require.Equal(t, "requested", c.kill(t, id).Outcome)
				s, _ := c.finish(t, id)
				require.Equal(t, "killed", s.Status)
				require.Empty(t, d.aliveOf(id))
				length := odd(t)
				id = c.start(t, `sleep `+length+` & echo up`).ID
				s, _ = c.finish(t, id)
				require.Equal(t, "exit code: 0; 1 process left running", s.Detail)
				c.purge(t, id)
				eventually(t, grace+time.Second, "the leftover is gone", func() bool { return len(asleep(length)) == 0 })
				if netName(net) == "group" {
					return
				}
				c.wildsEndByKill(t)
			})
		})
	}
}

func TestRunAsThatIsNone(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can run processes as somebody else")
	}
	for _, value := range []string{"nobody", "65534", "65534:", ":65534", "-1:-1", "65534:65534:1", "4294967296:1", "a:b", " 1:1"} {
		prepare(t, "AFOOT_RUN_AS="+value).refuses("AFOOT_RUN_AS")
	}
}
