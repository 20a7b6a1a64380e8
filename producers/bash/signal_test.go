package bash

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"afoot/registry"
)

// TestA9ASignalGoesToTheGroup sends INT, which a job in the background may ignore,
// and then stops the task.
func TestA9ASignalGoesToTheGroup(t *testing.T) {
	task := newStand(t).run("sleep 310 & echo $!; wait")
	task.has("\n")
	require.NoError(t, task.Signal("INT"))
	o := task.end()
	require.Equal(t, registry.StatusKilled, o.Status)
	require.Contains(t, o.Detail, "signal: SIGINT")
	if gone := task.StopLeftovers(""); gone != nil {
		<-gone
	}
	require.False(t, alive(task.pid(0)))
}

func TestSignalsByName(t *testing.T) {
	stand := newStand(t)
	for _, name := range []string{"USR1", "SIGUSR1", "sigusr1"} {
		task := stand.run(`trap 'echo heard; exit 5' USR1; echo up; while :; do read -t .05 x <> <(:); done`)
		task.has("up")
		require.NoError(t, task.Signal(name))
		o := task.end()
		require.Equal(t, registry.StatusCompleted, o.Status)
		require.Equal(t, "exit code: 5", o.Detail)
		require.Equal(t, "up\nheard\n", task.output())
	}
	task := stand.run("echo up; exec sleep 341")
	task.has("up")
	require.NoError(t, task.Signal("KILL"))
	o := task.end()
	require.Equal(t, registry.StatusKilled, o.Status)
	require.Equal(t, "signal: SIGKILL", o.Detail)
	require.Equal(t, registry.CodeConflict, registry.CodeOf(task.Signal("KILL")))
	require.Equal(t, registry.CodeInvalid, registry.CodeOf(task.Signal("NONE")))
}

func TestAStoppedTaskGoesOnAndEnds(t *testing.T) {
	stand := newStand(t)
	task := stand.run("while :; do echo tick; sleep .005; done")
	task.has("tick")
	shell := task.live.process.Pid()
	require.NoError(t, task.Signal("STOP"))
	require.Eventually(t, func() bool { return state(shell) == 'T' }, 20*time.Second, time.Millisecond)
	require.NoError(t, task.Signal("CONT"))
	size, _ := task.Size()
	<-task.Grown(size)
	require.NoError(t, task.Signal("STOP"))
	require.NoError(t, task.Cancel(""))
	require.Equal(t, registry.StatusKilled, task.end().Status)
}

func TestUnknownSignalsAreRefused(t *testing.T) {
	task := newStand(t).run("echo up; sleep 342; true")
	task.has("up")
	for _, name := range []string{"", "FOO", "SIG", "SIGSIG", "0", "9", "SEGV", "CHLD", "KILL ", "INT\x00", strings.Repeat("X", 1<<20)} {
		err := task.Signal(name)
		require.Equal(t, registry.CodeInvalid, registry.CodeOf(err), name)
		require.Less(t, len(err.Error()), 300)
	}
	require.NoError(t, task.Cancel(""))
	task.end()
}

// TestASignalRacesTheEnd holds that a signal reaches the task or is a conflict.
func TestASignalRacesTheEnd(t *testing.T) {
	stand := newStand(t)
	for range 100 {
		task := stand.run("exec sleep 0.003")
		for {
			if err := task.Signal("CONT"); err != nil {
				require.Equal(t, registry.CodeConflict, registry.CodeOf(err))
				break
			}
		}
		require.Equal(t, "exit code: 0", task.end().Detail)
		require.NoError(t, task.Discard())
	}
}
