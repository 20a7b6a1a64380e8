package bash

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A record goes at once, and its output when the leftovers are gone.
func TestDiscardDoesNotWaitForLeftovers(t *testing.T) {
	stand := newStand(t, func(c *Config) { c.Grace = time.Hour })
	task := stand.run(`trap "" TERM; sleep 346 >/dev/null 2>&1 & echo $!`)
	task.end()
	require.NoError(t, task.Discard())
	require.True(t, alive(task.pid(0)))
	pid, gone := task.pid(0), task.StopLeftovers("")
	require.NotNil(t, gone)
	require.Positive(t, stand.store.Total())
	stand.Hurry()
	<-gone
	require.False(t, alive(pid))
	require.NoError(t, stand.Close(t.Context()))
	require.Zero(t, stand.store.Total())
}

// What a command leaves whose record was removed before its end is stopped.
func TestADiscardedCommandLeavesNothing(t *testing.T) {
	stand := newStand(t)
	task := stand.start(fields{"command": "sleep 347 >/dev/null 2>&1 & echo $!; read a", "stdin": "open"})
	task.has("\n")
	pid := task.pid(0)
	require.NoError(t, task.Discard())
	_, err := task.Input(t.Context(), []byte("x\n"), true)
	require.NoError(t, err)
	task.end()
	require.Eventually(t, func() bool { return !task.Left() }, 20*time.Second, time.Millisecond)
	require.False(t, alive(pid))
}

// What a command still prints whose record was removed is gone with its end.
func TestADiscardedCommandKeepsNoOutput(t *testing.T) {
	stand := newStand(t)
	task := stand.start(fields{"command": "head -c 100000 /dev/zero; echo; read a; head -c 1000 /dev/zero; echo; exit 4", "stdin": "open"})
	task.has("\n")
	require.NoError(t, task.Discard())
	_, err := task.Input(t.Context(), []byte("x\n"), true)
	require.NoError(t, err)
	require.Equal(t, "exit code: 4", task.end().Detail)
	require.Zero(t, stand.store.Total())
}
