package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// signal sends a signal to a task.
func (c *client) signal(t *testing.T, id, name string) {
	t.Helper()
	a := c.do(t, http.MethodPost, "/tasks/"+id+"/signal", fields{"signal": name})
	require.Equal(t, http.StatusNoContent, a.status, "%s", a)
}

func TestA9SignalAndKill(t *testing.T) {
	t.Parallel()
	for _, name := range nets {
		t.Run(name, func(t *testing.T) {
			net := inNet(t, name)
			d := serve(t, net)
			c := d.as("a9")
			length := odd(t)
			id := c.start(t, `sleep `+length+` & echo up; wait`).ID
			c.says(t, id, "up")
			eventually(t, 5*time.Second, "sleep", func() bool { return len(asleep(length)) == 1 })
			c.signal(t, id, "INT")
			s, _ := c.finish(t, id)
			require.Equal(t, "killed", s.Status)
			require.Equal(t, "SIGINT", s.Result["signal"])
			require.Contains(t, s.Detail, "signal: SIGINT")
			require.False(t, s.Reported, "a signal is no kill: its end is told")
			require.Equal(t, "already-finished", c.kill(t, id).Outcome)
			eventually(t, grace+time.Second, "the kill removes the sleep", func() bool { return len(asleep(length)) == 0 })
		})
	}
}

func TestA9SignalsByName(t *testing.T) {
	t.Parallel()
	d := serve(t, "AFOOT_MAX_TASKS_PER_OWNER=30")
	c := d.as("a9")
	t.Run("what is handled", func(t *testing.T) {
		id := c.start(t, `for s in HUP INT QUIT USR1 USR2 WINCH TERM; do trap "echo got $s" $s; done; exec 3<> <(:); echo up; while :; do read -rt 0.05 -u 3; done`).ID
		c.says(t, id, "up")
		for _, name := range []string{"HUP", "INT", "QUIT", "USR1", "USR2", "WINCH", "TERM", "SIGHUP", "SIGUSR1"} {
			before := strings.Count(c.read(t, id, "offset=0").Text, "got ")
			c.signal(t, id, name)
			eventually(t, 10*time.Second, name+" arrives", func() bool {
				text := c.read(t, id, "offset=0").Text
				return strings.Count(text, "got ") == before+1 && strings.HasSuffix(text, "got "+strings.TrimPrefix(name, "SIG")+"\n")
			})
			s := c.get(t, id)
			require.Equal(t, "running", s.Status)
			require.False(t, s.Reported)
		}
		c.kill(t, id)
		c.finish(t, id)
	})
	t.Run("what is not", func(t *testing.T) {
		for _, name := range []string{"KILL", "TERM", "INT", "HUP", "USR1", "SIGKILL", "SIGQUIT"} {
			length := odd(t)
			id := c.start(t, `ulimit -c 0; exec sleep `+length).ID
			eventually(t, 10*time.Second, "sleep", func() bool { return len(asleep(length)) == 1 })
			c.signal(t, id, name)
			s, _ := c.finish(t, id)
			require.Equal(t, "killed", s.Status, name)
			require.Equal(t, "SIG"+strings.TrimPrefix(name, "SIG"), s.Result["signal"])
		}
	})
	t.Run("the whole group, as a terminal does", func(t *testing.T) {
		length := odd(t)
		id := c.start(t, `sleep `+length+` | cat; echo after`).ID
		eventually(t, 5*time.Second, "sleep", func() bool { return len(asleep(length)) == 1 })
		c.signal(t, id, "INT")
		_, text := c.finish(t, id)
		require.Empty(t, asleep(length))
		require.NotContains(t, text, "after")
	})
	t.Run("stop and go on", func(t *testing.T) {
		id := c.start(t, `exec 3<> <(:); while :; do echo tick; read -rt 0.03 -u 3; done`).ID
		c.says(t, id, "tick")
		c.signal(t, id, "STOP")
		last := int64(-1)
		eventually(t, 10*time.Second, "it stands", func() bool {
			before := last
			last = c.get(t, id).OutputBytes
			states := map[byte]bool{}
			for _, p := range d.aliveOf(id) {
				states[state(p.pid)] = true
			}
			return last == before && len(states) == 1 && states['T']
		})
		require.Equal(t, "running", c.get(t, id).Status)
		c.signal(t, id, "CONT")
		eventually(t, 10*time.Second, "it goes on", func() bool { return c.get(t, id).OutputBytes > last })
		c.signal(t, id, "SIGSTOP")
		require.Equal(t, "requested", c.kill(t, id).Outcome)
		s, _ := c.finish(t, id)
		require.Equal(t, "killed", s.Status)
		require.Empty(t, d.aliveOf(id))
	})
}

func TestA9RefusedSignals(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("a9")
	send := func(c *client, id string, body any) *answer {
		t.Helper()
		return c.do(t, http.MethodPost, "/tasks/"+id+"/signal", body)
	}
	id := c.start(t, `echo up; sleep 869; true`).ID
	c.says(t, id, "up")
	for _, body := range []any{
		fields{"signal": "NOSUCH"}, fields{"signal": ""}, fields{"signal": "SIG"}, fields{"signal": "INT "}, fields{"signal": "-9"}, fields{"signal": 9},
		fields{}, fields{"signal": "INT", "group": true}, `{`,
	} {
		send(c, id, body).refused(t, http.StatusBadRequest, "invalid")
	}
	send(d.as("a9-other"), id, fields{"signal": "KILL"}).refused(t, http.StatusForbidden, "foreign_task")
	send(d.with(d.mint(map[string]any{"sid": "a9", "scope": "tasks:read"})), id, fields{"signal": "KILL"}).refused(t, http.StatusForbidden, "forbidden")
	send(c, "bash-999", fields{"signal": "KILL"}).refused(t, http.StatusNotFound, "unknown_task")
	require.Equal(t, "running", c.get(t, id).Status)
	require.NotEmpty(t, d.aliveOf(id))
	c.kill(t, id)
	c.finish(t, id)
	require.Contains(t, send(c, id, fields{"signal": "INT"}).refused(t, http.StatusConflict, "conflict"), "killed")
	left := c.start(t, `sleep 871 & echo up`).ID
	c.finish(t, left)
	send(c, left, fields{"signal": "KILL"}).refused(t, http.StatusConflict, "conflict")
	require.NotEmpty(t, d.aliveOf(left))
	c.purge(t, left)
	send(c, left, fields{"signal": "INT"}).refused(t, http.StatusGone, "gone")
}
