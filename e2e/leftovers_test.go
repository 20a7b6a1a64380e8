package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// With leftovers: "stop" a command ends when nobody of it lives.
func TestA1LeftoversAreStopped(t *testing.T) {
	t.Parallel()
	for _, name := range nets {
		t.Run(name, func(t *testing.T) {
			net := inNet(t, name)
			d := serve(t, net, "AFOOT_MAX_TASKS_PER_OWNER=30")
			c := d.as("stop")
			rows := []struct {
				command    string
				code       int
				deaf, wide bool
			}{
				{`sleep {0} & echo up`, 0, false, false},
				{`sleep {0} >/dev/null 2>&1 & sleep {0} & echo up; exit 3`, 3, false, false},
				{`nohup sleep {0} >/dev/null 2>&1 & disown; echo up`, 0, false, false},
				{`(trap "" TERM; sleep {0}; sleep {0}) >/dev/null 2>&1 & echo up; exit 4`, 4, true, false},
				{`sleep {0} & kill -STOP $!; echo up`, 0, false, false},
				{`setsid sleep {0} & echo up`, 0, false, true},
				{`env -i setsid -f sleep {0}; echo up`, 0, false, true},
				{`env -i setsid -f bash -c 'trap "" TERM; sleep {0}; sleep {0}'; echo up`, 0, true, true},
				{`echo up; exit 5`, 5, false, false},
			}
			for _, row := range rows {
				if row.wide && netName(net) == "group" {
					continue
				}
				t.Run(row.command, func(t *testing.T) {
					t.Parallel()
					length := odd(t)
					id := c.start(t, strings.ReplaceAll(row.command, "{0}", length), fields{"leftovers": "stop"}).ID
					s, text := c.finish(t, id)
					require.Empty(t, saying(length), "ended before they were gone")
					require.Equal(t, "up\n", text)
					require.Equal(t, "completed", s.Status, "nobody asked for its end")
					require.Equal(t, row.code, s.exitCode())
					require.NotContains(t, s.Detail, "left running")
					require.False(t, s.Reported)
					if row.deaf {
						require.GreaterOrEqual(t, s.lasted(t), grace-50*time.Millisecond, "asked first")
					}
					require.Less(t, s.lasted(t), patient(grace+2*time.Second))
					require.Equal(t, "already-finished", c.kill(t, id).Outcome)
				})
			}
		})
	}
}

// A kill and the end of the daemon while leftovers are being stopped.
func TestA1LeftoversAreStoppedMeanwhile(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("stop")
	length := odd(t)
	command := `(trap "" TERM; sleep ` + length + `; sleep ` + length + `) >/dev/null 2>&1 & echo up`
	id := c.start(t, command, fields{"leftovers": "stop"}).ID
	c.says(t, id, "up")
	c.kill(t, id)
	s, _ := c.finish(t, id)
	require.True(t, s.terminal())
	require.Empty(t, saying(length))

	id = c.start(t, command, fields{"leftovers": "stop"}).ID
	c.says(t, id, "up")
	begun := time.Now()
	d.stop()
	require.Less(t, time.Since(begun), patient(grace+2*time.Second))
	require.Empty(t, saying(length))
}

func TestA1LeftoversFieldIsChecked(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("stop")
	for _, value := range []any{"kill", "", "STOP", true, 1, []string{"stop"}} {
		c.do(t, http.MethodPost, "/tasks", startBody("true", fields{"leftovers": value})).refused(t, http.StatusBadRequest, "invalid")
	}
	id := c.start(t, "true", fields{"leftovers": "stop"}).ID
	require.Equal(t, "bash-1", id)
	require.Equal(t, "stop", c.get(t, id).Request["leftovers"])
	id = c.start(t, "true", fields{"leftovers": "keep"}).ID
	c.finish(t, id)
}
