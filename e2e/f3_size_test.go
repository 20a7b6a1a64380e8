package e2e

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A script that no argument can hold goes by descriptor, and its input is its own.
func TestF3LongCommands(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("f3")
	for _, size := range []int{1000, 131000, 131071, 131072, 131073, 200000, 700000, 1<<20 - 1000} {
		t.Run(strconv.Itoa(size), func(t *testing.T) {
			t.Parallel()
			command := ": '" + strings.Repeat("x", size) + "'; "
			s, text := c.finish(t, c.start(t, command+`cat | wc -c; echo ok; exit 7`).ID)
			require.Equal(t, "0\nok\n", text)
			require.Equal(t, 7, s.exitCode())

			id := c.start(t, command+`read -r x; echo "<$x>"; cat | wc -c; echo "$#"; echo ok`, stdinOpen).ID
			c.input(t, id, fields{"data": "one\ntwo\n", "close": true})
			_, text = c.finish(t, id)
			require.Equal(t, "<one>\n4\n0\nok\n", text)

			s, text = c.finish(t, c.start(t, command+"\n(").ID)
			require.Equal(t, 2, s.exitCode(), text)
			require.Contains(t, text, "bash")
			require.Contains(t, text, "syntax error")
		})
	}
	long := strings.Repeat("x", 1<<20+1)
	c.do(t, http.MethodPost, "/tasks", startBody(long)).refused(t, http.StatusRequestEntityTooLarge, "too_large")
}

// A long script is killed, signalled and stopped like any other.
func TestF3LongCommandIsKilled(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("f3")
	length := odd(t)
	id := c.start(t, ": '"+strings.Repeat("x", 200000)+"'; trap 'echo bye; exit 3' TERM; echo up; sleep "+length+" & wait").ID
	c.says(t, id, "up")
	c.kill(t, id)
	s, text := c.finish(t, id)
	require.Equal(t, "killed", s.Status)
	require.Equal(t, "up\nbye\n", text)
	require.Equal(t, 3, s.exitCode())
	require.Empty(t, asleep(length))
}

func TestF3EnvironmentTooLarge(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("f3")
	value := strings.Repeat("v", 140000)
	a := c.do(t, http.MethodPost, "/tasks", startBody("true", fields{"env": fields{"FINE": "x", "HUGE_ONE": value}}))
	text := a.refused(t, http.StatusBadRequest, "invalid")
	require.Contains(t, text, "HUGE_ONE")
	require.NotContains(t, text, "vvvv")
	fits := strings.Repeat("v", 130000)
	s, text := c.finish(t, c.start(t, `echo ${#LONG}`, fields{"env": fields{"LONG": fits}}).ID)
	require.Equal(t, "bash-1", s.ID, "no id was burnt")
	require.Equal(t, "130000\n", text)
	for _, name := range []string{"", "A=B", "=", "AFOOT_X", "AFOOT_SESSION"} {
		c.do(t, http.MethodPost, "/tasks", startBody("true", fields{"env": fields{name: "x"}})).refused(t, http.StatusBadRequest, "invalid")
	}
	require.Equal(t, "bash-2", c.start(t, "true").ID)
}
