package bash

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"afoot/producers/output"
	"afoot/producers/proc"
	"afoot/registry"
)

// asNobody makes a stand whose commands run as a user of their own, or skips where
// that is not allowed.
func asNobody(t *testing.T, user proc.User, change ...func(*Config)) *stand {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root runs commands as somebody else")
	}
	return newStand(t, append([]func(*Config){func(c *Config) {
		c.RunAs, c.Workdir = &user, "/"
		c.Env = append(c.Env, "HOME=/root", "USER=root", "LOGNAME=root")
	}}, change...)...)
}

func TestCommandsRunAsAnotherUser(t *testing.T) {
	for _, c := range []struct {
		user     proc.User
		identity string
	}{
		{proc.User{UID: 65534, GID: 65534}, "65534 65534 65534 /nonexistent u=nobody l=nobody\n"},
		{proc.User{UID: 54321, GID: 12345}, "54321 12345 12345 / u=none l=none\n"},
	} {
		stand := asNobody(t, c.user)
		identity := "echo $(id -u) $(id -g) $(id -G) $HOME u=${USER-none} l=${LOGNAME-none}\n"
		for _, long := range []string{"", ": '" + strings.Repeat("x", maxStringBytes) + "'\n"} {
			task := stand.run(long + identity + "grep CapEff /proc/self/status")
			require.Equal(t, "exit code: 0", task.end().Detail)
			require.Equal(t, c.identity+"CapEff:\t0000000000000000\n", task.output())
		}
	}
}

func TestC15TheStreamsBelongToTheUser(t *testing.T) {
	stand := asNobody(t, proc.User{UID: 65534, GID: 65534})
	task := stand.run("echo a; echo b >/dev/stderr; echo c >/dev/stdout; echo d")
	require.Equal(t, "exit code: 0", task.end().Detail)
	require.Equal(t, "a\nb\nc\nd\n", task.output())

	task = stand.start(fields{"command": "cat </dev/stdin; echo b >/dev/stderr; echo c >/dev/stdout", "streams": "split", "stdin": "open"})
	_, err := task.input("a\n", true)
	require.NoError(t, err)
	require.Equal(t, "exit code: 0", task.end().Detail)
	require.Equal(t, "a\nc\n", task.output())
	require.Equal(t, "b\n", task.errors())
}

// TestTheUserHasNoWayToTheState tries the files and the daemon itself.
func TestTheUserHasNoWayToTheState(t *testing.T) {
	dir := filepath.Join(open(t), "state")
	stand := asNobody(t, proc.User{UID: 65534, GID: 65534}, func(c *Config) {
		store, err := output.NewStore(output.Config{Dir: dir})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, store.Close()) })
		c.Store = store
	})
	secret := stand.run("echo s3cr3t")
	secret.end()
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	require.NoError(t, err)
	require.NotEmpty(t, logs)
	for _, attempt := range []string{
		"ls " + dir, "cat " + strings.Join(logs, " "), "touch " + dir + "/x",
		"cat /proc/$PPID/environ", "ls -l /proc/$PPID/fd", "cat /proc/$PPID/fd/*", "kill -0 $PPID",
	} {
		task := stand.run(attempt + " && echo got in")
		require.NotEqual(t, "exit code: 0", task.end().Detail, attempt)
		require.NotContains(t, task.output(), "s3cr3t")
		require.NotContains(t, task.output(), "got in")
	}
}

func TestAWorkdirOfSomebodyElseIsRefused(t *testing.T) {
	stand := asNobody(t, proc.User{UID: 65534, GID: 65534})
	base := open(t)
	private := filepath.Join(base, "private")
	require.NoError(t, os.Mkdir(private, 0o700))
	inside := filepath.Join(private, "inside")
	require.NoError(t, os.Mkdir(inside, 0o755))
	for _, dir := range []string{private, inside} {
		plan, err := stand.prepare(fields{"command": "true", "workdir": dir})
		if err == nil {
			_, err = plan.Start(t.Context(), registry.Launch{ID: "bash-1"})
		}
		require.Equal(t, registry.CodeInvalid, registry.CodeOf(err))
		require.ErrorContains(t, err, dir)
		require.ErrorContains(t, err, "user 65534 and group 65534")
		require.ErrorContains(t, err, "permission denied")
	}
	require.NoError(t, os.Chown(private, 65534, 0))
	task := stand.start(fields{"command": "pwd; touch x && echo made", "workdir": private})
	require.Equal(t, "exit code: 0", task.end().Detail)
	require.Equal(t, private+"\nmade\n", task.output())
}

func TestTheUsersProcessesAreStopped(t *testing.T) {
	stand := asNobody(t, proc.User{UID: 65534, GID: 65534})
	task := stand.run("sleep 343 & echo $!; wait; true")
	task.has("\n")
	require.NoError(t, task.Signal("CONT"))
	require.NoError(t, task.Cancel(""))
	require.Equal(t, registry.StatusKilled, task.end().Status)
	require.False(t, alive(task.pid(0)))
}

// TestAShellThatTheUserCannotRunIsNoStart holds the proof at the start.
func TestAShellThatTheUserCannotRunIsNoStart(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root runs commands as somebody else")
	}
	dir := t.TempDir() // nobody else's
	shell := filepath.Join(dir, "shell")
	data, err := os.ReadFile("/bin/bash")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(shell, data, 0o700))
	stand := newStand(t)
	_, err = New(Config{Shell: shell, RunAs: &proc.User{UID: 65534, GID: 65534}, Store: stand.store, Sink: stand.Producer.sink})
	require.ErrorContains(t, err, "as user 65534 and group 65534: permission denied")
}

// TestAShellThatDiesAsTheUserIsNoStart says what it died of.
func TestAShellThatDiesAsTheUserIsNoStart(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root runs commands as somebody else")
	}
	for command, says := range map[string]string{"kill -9 $$": "signal: SIGKILL", "exit 7": "exit code: 7"} {
		shell := filepath.Join(open(t), "shell")
		require.NoError(t, os.WriteFile(shell, []byte("#!/bin/bash\n"+command+"\n"), 0o700))
		require.NoError(t, os.Chmod(shell, 0o755))
		stand := newStand(t)
		_, err := New(Config{Shell: shell, RunAs: &proc.User{UID: 65534, GID: 65534}, Store: stand.store, Sink: stand.Producer.sink})
		require.ErrorContains(t, err, "as user 65534 and group 65534: "+says)
	}
}

// open gives a directory that everybody may look into.
func open(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "bash") //nolint:usetesting // the test's own lies in one that is nobody else's
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o755))
	return dir
}
