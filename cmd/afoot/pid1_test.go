package main

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// K3 in short: as process 1 nobody stays a zombie and every exit code is true.
func TestProcess1(t *testing.T) {
	t.Parallel()
	probe := exec.Command("unshare", "--pid", "--fork", "--mount-proc", "--kill-child", "true")
	if err := probe.Run(); err != nil {
		t.Skip("no PID namespace may be made here: ", err)
	}
	r := newRig(t, "AFOOT_MAX_TASKS_PER_OWNER=100")
	cmd := exec.Command("unshare", "--pid", "--fork", "--mount-proc", "--kill-child", r.command().Path, "serve")
	cmd.Env, cmd.Dir = r.env, r.home
	r.launch(cmd)
	r.waitReady()
	for range 20 {
		r.ok("run", "-d", "--", "(setsid sleep 0.1 &) ; (sleep 0.1 & exec true); exit 5")
	}
	r.eventually("all have ended as they should", func() bool {
		for _, task := range r.tasks() {
			if task.FinishedAt == 0 {
				return false
			}
			require.InDelta(t, 5, task.Result["exitCode"], 0, task.Detail)
		}
		return true
	})
	require.Equal(t, "1\n", r.ok("run", "--", `awk '/^PPid/ {print $2}' /proc/$PPID/status`), "the daemon is a child of process 1")
	r.eventually("no zombie is left", func() bool {
		return r.ok("run", "--", `grep -lE '^State:.Z' /proc/[0-9]*/status 2>/dev/null; true`) == ""
	})
	// Signals of the container's keeper go to process 1.
	init := strings.Fields(printed(t, "pgrep", "-P", strconv.Itoa(r.daemon.Process.Pid)))
	require.Len(t, init, 1)
	pid, err := strconv.Atoi(init[0])
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, syscall.SIGTERM))
	require.NoError(t, r.ended(r.soon()), "its exit code is the daemon's")
}

// When the daemon dies in a container so does everything else in it.
func TestProcess1EndsWithTheDaemon(t *testing.T) {
	t.Parallel()
	if err := exec.Command("unshare", "--pid", "--fork", "--mount-proc", "--kill-child", "true").Run(); err != nil {
		t.Skip("no PID namespace may be made here: ", err)
	}
	r := newRig(t)
	cmd := exec.Command("unshare", "--pid", "--fork", "--mount-proc", "--kill-child", r.command().Path, "serve")
	cmd.Env, cmd.Dir = r.env, r.home
	r.launch(cmd)
	r.waitReady()
	r.ok("run", "-d", "--", "trap '' TERM; setsid sleep 361.1 & sleep 361.2")
	r.eventually("it is up", func() bool { return len(alive(t, "361.1", "361.2")) == 2 })
	init := strings.TrimSpace(printed(t, "pgrep", "-P", strconv.Itoa(r.daemon.Process.Pid)))
	daemon, err := strconv.Atoi(strings.TrimSpace(printed(t, "pgrep", "-f", "serve", "-P", init)))
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(daemon, syscall.SIGKILL))
	require.Error(t, r.ended(r.soon()))
	require.Equal(t, exitSignal+int(syscall.SIGKILL), cmd.ProcessState.ExitCode())
	r.eventually("nobody is left", func() bool { return len(alive(t, "361.1", "361.2")) == 0 })
}

func printed(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).Output()
	require.NoError(t, err)
	return string(out)
}
