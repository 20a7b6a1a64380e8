package e2e

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A daemon that is not root can't be looked into by its tasks, which run as the same
// user.
func TestF5DaemonCanNotBeRead(t *testing.T) {
	t.Parallel()
	for _, net := range []string{"auto", "subreaper", "group"} {
		t.Run(net, func(t *testing.T) {
			t.Parallel()
			d := prepare(t, "AFOOT_NET="+net, "JWT_KEY=s3cr3t-1", "X_API_KEY=s3cr3t-2")
			uid := someone()
			d.runBy(t, uid)
			d.launch()
			d.ready()
			c := d.as("f5")
			_, text := c.finish(t, c.start(t, `id -u; env | grep -c s3cr3t
tr '\0' '\n' <"/proc/$PPID/environ" | grep -c s3cr3t
cat /proc/[0-9]*/environ 2>/dev/null | tr '\0' '\n' | grep s3cr3t | grep -v grep
for f in environ mem maps fd/ root/ cwd/ syscall; do ( : <"/proc/$PPID/$f" ) 2>/dev/null && echo "can open $f"; ls "/proc/$PPID/$f" >/dev/null 2>&1 && [ "${f%/}" != "$f" ] && echo "can list $f"; done
echo end`).ID)
			var kept []string
			for line := range strings.Lines(text) {
				if !strings.Contains(line, "denied") {
					kept = append(kept, strings.TrimSpace(line))
				}
			}
			require.Equal(t, []string{strconv.Itoa(uid), "0", "0", "end"}, kept)
			owner, err := os.Stat(fmt.Sprintf("/proc/%d/environ", d.cmd.Process.Pid))
			require.NoError(t, err)
			require.Equal(t, 0, uidOf(owner), "that is what a process that can't be dumped looks like")
		})
	}
}

// Everything works for a daemon that is not root.
func TestUnprivilegedDaemon(t *testing.T) {
	t.Parallel()
	for _, net := range []string{"auto", "subreaper", "group"} {
		t.Run(net, func(t *testing.T) {
			t.Parallel()
			d := prepare(t, "AFOOT_NET="+net, "AFOOT_MAX_TASKS_PER_OWNER=60")
			uid := someone()
			d.runBy(t, uid)
			d.launch()
			d.ready()
			c := d.as("someone")
			_, text := c.finish(t, c.start(t, `echo a; echo b >/dev/stderr; echo c >/dev/stdout; echo d; id -u; id -g`).ID)
			require.Equal(t, fmt.Sprintf("a\nb\nc\nd\n%d\n%d\n", uid, uid), text)

			id := c.start(t, `cat </dev/stdin; echo err >/dev/stderr`, stdinOpen, fields{"streams": "split"}).ID
			require.Equal(t, taken{3, true}, c.input(t, id, fields{"data": "in\n", "close": true}))
			_, text = c.finish(t, id)
			require.Equal(t, "in\n", text)

			id = c.start(t, `trap 'echo bye' INT; echo up; sleep 873 & wait; wait`).ID
			c.says(t, id, "up")
			c.signal(t, id, "INT")
			c.says(t, id, "bye")
			c.kill(t, id)
			c.finish(t, id)
			require.Empty(t, d.aliveOf(id))

			length := odd(t)
			command := `env -i setsid -f sleep ` + length + `; echo up`
			if d.net(t) == "group" {
				command = `sleep ` + length + ` & echo up`
			}
			id = c.start(t, command).ID
			s, _ := c.finish(t, id)
			require.Equal(t, "exit code: 0; 1 process left running", s.Detail)
			c.purge(t, id)
			eventually(t, grace+time.Second, "the leftover is gone", func() bool { return len(asleep(length)) == 0 })

			text = c.do(t, http.MethodPost, "/tasks", startBody("true", fields{"nice": -5})).refused(t, http.StatusBadRequest, "invalid")
			require.Contains(t, text, "nice")
			_, text = c.finish(t, c.start(t, `nice`, fields{"nice": 19}).ID)
			require.Equal(t, "19\n", text)

			if d.net(t) != "group" {
				c.wildsEndByKill(t)
			}
			begun := time.Now()
			c.start(t, `trap "" TERM; sleep 875; sleep 877`)
			d.stop()
			require.Less(t, time.Since(begun), patient(grace+3*time.Second))
		})
	}
}

// Only root can become another user.
func TestUnprivilegedDaemonCanNotRunAs(t *testing.T) {
	t.Parallel()
	d := prepare(t, "AFOOT_RUN_AS=65534:65534")
	d.runBy(t, someone())
	d.refuses("AFOOT_RUN_AS")
}
