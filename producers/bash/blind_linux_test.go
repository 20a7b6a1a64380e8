package bash

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// blind takes all descriptors that are still to be had, until the returned function is
// called.
func blind(t *testing.T) (see func()) {
	t.Helper()
	var old unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &old))
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: old.Max}))
	see = func() { require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &old)) }
	t.Cleanup(see)
	return see
}

// Who is left when the daemon lacks descriptors can't be named. They are owned all the
// same: in the detail, for a kill of the ended task, and for the end of the daemon.
func TestLeftoversThatCanNotBeCountedAreOwned(t *testing.T) {
	for _, net := range movingNets(t) {
		t.Run(net, func(t *testing.T) {
			stand := newStand(t, func(c *Config) { c.Net, c.Drain = net, 10*time.Millisecond })
			const command = "sleep 341 >/dev/null 2>&1 & echo $!; read a"
			var tasks []*task
			for range 2 {
				k := stand.start(fields{"command": command, "stdin": "open"})
				k.has("\n")
				tasks = append(tasks, k)
			}
			see := blind(t)
			for _, k := range tasks {
				_, err := k.Input(context.Background(), []byte("x\n"), true)
				require.NoError(t, err)
			}
			for _, k := range tasks {
				o := k.end()
				require.Equal(t, "exit code: 0; processes may be left running", o.Detail)
				require.JSONEq(t, `{"exitCode":0}`, string(o.Result))
				require.True(t, k.Left())
			}
			gone := tasks[0].StopLeftovers("enough") // they are in the group of their shell
			see()
			<-gone
			require.False(t, alive(tasks[0].pid(0)))
			require.True(t, alive(tasks[1].pid(0)))
			require.NoError(t, stand.Close(t.Context()))
			require.False(t, alive(tasks[1].pid(0)))
		})
	}
}

// A stop that can't see to its end holds the end of the task up for a while only, and goes
// on until who is left is found.
func TestAStopWithoutDescriptorsGoesOnBehindTheEnd(t *testing.T) {
	stand := newStand(t)
	if name, reason := stand.Net(); name == "group" {
		t.Skipf("no net that sees it: %s", reason)
	}
	const session = "setsid sleep 342 >/dev/null 2>&1 & p=$!; until [ \"$(ps -o sid= $p | tr -d ' ')\" = $p ]; do :; done; echo $p; "
	cancelled := stand.run(session + "sleep 343")
	unwanted := stand.start(fields{"command": session + "read a", "stdin": "open", "leftovers": "stop"})
	cancelled.has("\n")
	unwanted.has("\n")
	see := blind(t)
	require.NoError(t, cancelled.Cancel(""))
	_, err := unwanted.Input(context.Background(), []byte("x\n"), true)
	require.NoError(t, err)
	require.Equal(t, "exit code: 0; processes may be left running", unwanted.end().Detail)
	require.Equal(t, "signal: SIGTERM; processes may be left running", cancelled.end().Detail)
	see()
	for _, k := range []*task{cancelled, unwanted} {
		require.Eventually(t, func() bool { return !k.Left() }, 20*time.Second, 5*time.Millisecond)
		require.False(t, alive(k.pid(0)))
	}
}
