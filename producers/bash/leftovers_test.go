package bash

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"afoot/registry"
)

func TestUnwantedLeftoversAreStopped(t *testing.T) {
	impatient, patient := newStand(t), newStand(t, patient)
	for _, c := range []struct{ command, output, detail string }{
		{"sleep 340 & echo $!; exit 3", "", "exit code: 3"},
		{"sleep 340 >/dev/null 2>&1 & echo $!; exit 3", "", "exit code: 3"},
		{"sleep 340 2>/dev/null & echo $!; kill -USR1 $$", "", "signal: SIGUSR1"},
		{`exec 3<> <(:); wait $!; (trap 'echo bye; exit' TERM; echo >&3; while :; do sleep .01; done) & read -r <&3; echo $!`, "bye\n", "exit code: 0"},
		{`exec 3<> <(:); wait $!; (trap 'head -c 300000 /dev/zero; echo bye; exit' TERM; echo >&3; while :; do sleep .01; done) & read -r <&3; echo $!`, "\x00bye\n", "exit code: 0"},
		{`exec 3<> <(:); wait $!; (trap '' TERM; echo >&3; while :; do sleep .01; done) & read -r <&3; echo $!`, "", "exit code: 0"},
	} {
		stand := patient
		if strings.Contains(c.command, "trap ''") {
			stand = impatient
		}
		for _, streams := range []string{"merged", "split"} {
			task := stand.start(fields{"command": "exec 4>&1; " + c.command, "leftovers": "stop", "streams": streams})
			o := task.end()
			require.Equal(t, c.detail, o.Detail, c.command)
			require.NotContains(t, string(o.Result), "leftovers")
			require.Contains(t, task.output(), c.output)
			require.False(t, task.Left())
			require.Nil(t, task.StopLeftovers(""))
			for line := range task.lines() {
				if pid := task.number(line); pid > 0 {
					require.False(t, alive(pid), c.command)
				}
			}
			if o.Detail == "exit code: 3" {
				require.Equal(t, registry.StatusCompleted, o.Status)
			}
		}
	}
	for _, stand := range []*stand{patient, impatient} {
		require.Eventually(t, func() bool { return stand.sink.Len() == 0 }, 20*time.Second, time.Millisecond)
	}
}

// number is the pid in a line; 0 if there is none.
func (k *task) number(line int) int {
	pid, _ := strconv.Atoi(strings.Split(k.output(), "\n")[line])
	return pid
}

// TestA3StoppingLeftoversLosesNoOutput lets a filter finish that is only slower
// than its shell.
func TestA3StoppingLeftoversLosesNoOutput(t *testing.T) {
	task := newStand(t, drained).start(fields{"command": "exec > >(sleep 0.3; cat) 2>&1; echo hi; exit 3", "leftovers": "stop"})
	require.Equal(t, "exit code: 3", task.end().Detail)
	require.Equal(t, "hi\n", task.output())
}

func TestACancelWhileLeftoversAreStoppedCounts(t *testing.T) {
	stand := newStand(t, patient)
	task := stand.start(fields{
		"command":   `exec 3<> <(:); wait $!; (trap 'echo stopping' TERM; echo >&3; while :; do sleep .01; done) & read -r <&3; exit 3`,
		"leftovers": "stop",
	})
	task.has("stopping")
	require.NoError(t, task.Cancel(""))
	require.NoError(t, task.Cancel(""))
	stand.Hurry()
	o := task.end()
	require.Equal(t, registry.StatusKilled, o.Status)
	require.Equal(t, "exit code: 3", o.Detail)
}

func TestLeftAsksTheProcesses(t *testing.T) {
	stand := newStand(t)
	mark := t.TempDir() + "/mark"
	task := stand.start(fields{
		"command": `(until [ -e "$MARK" ]; do sleep .01; done) >/dev/null 2>&1 & read a; exit 4`,
		"env":     map[string]string{"MARK": mark},
		"stdin":   "open",
	})
	require.False(t, task.Left(), "it lives")
	_, err := task.input("x\n", true)
	require.NoError(t, err)
	require.Contains(t, task.end().Detail, "exit code: 4; ")
	require.True(t, task.Left())
	require.NoError(t, os.WriteFile(mark, nil, 0o600))
	require.Eventually(t, func() bool { return !task.Left() }, 20*time.Second, time.Millisecond)
	// What was kept for them goes too.
	require.Eventually(t, func() bool {
		stand.mu.Lock()
		defer stand.mu.Unlock()
		return len(stand.haunted) == 0
	}, 20*time.Second, time.Millisecond)
	require.Eventually(t, func() bool { return task.StopLeftovers("") == nil }, 20*time.Second, time.Millisecond)
	require.False(t, task.Left())
}

// TestLeftMayBeAskedDuringAStop asks from several sides at once.
func TestLeftMayBeAskedDuringAStop(t *testing.T) {
	stand := newStand(t)
	task := stand.run(`trap '' TERM; (while :; do sleep .01; done) >/dev/null 2>&1 & exit 4`)
	task.end()
	gone := task.StopLeftovers("")
	for {
		task.Left()
		select {
		case <-gone:
			require.False(t, task.Left())
			return
		default:
		}
	}
}

// TestHaunted counts tasks and not processes, and those alone of which one lives.
func TestHaunted(t *testing.T) {
	stand := newStand(t)
	require.Zero(t, stand.Haunted())
	two := stand.run("sleep 340 >/dev/null 2>&1 & sleep 340 >/dev/null 2>&1 & exit 0")
	one := stand.run("sleep 340 >/dev/null 2>&1 & echo $!; exit 0")
	two.end()
	one.end()
	require.Equal(t, 2, stand.Haunted())
	<-two.StopLeftovers("")
	require.Equal(t, 1, stand.Haunted())
	require.NoError(t, syscall.Kill(one.pid(0), syscall.SIGKILL))
	require.Eventually(t, func() bool { return stand.Haunted() == 0 }, 20*time.Second, time.Millisecond)
}
