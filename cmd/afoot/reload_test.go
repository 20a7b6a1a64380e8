package main

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"afoot/registry/journal"
)

func TestReloadTakesUpTheFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "afoot.env")
	write := func(text string) {
		t.Helper()
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	write("AFOOT_MAX_TASKS_PER_OWNER=1\nAFOOT_KILL_GRACE=1m\n")
	r := newRig(t, "AFOOT_ENV_FILE="+file, "AFOOT_RETAIN_AGE=1h")
	r.serve()
	id := strings.TrimSpace(r.ok("run", "-d", "--", "trap '' TERM; echo up; sleep 381; sleep 381"))
	r.eventually("it is up", func() bool { return r.tasks()[0].OutputBytes > 0 })
	_, stderr, code := r.afoot("run", "-d", "--", "true")
	require.NotZero(t, code)
	require.Contains(t, stderr, "AFOOT_MAX_TASKS_PER_OWNER")

	require.Contains(t, r.ok("reload"), "the configuration has not changed\n")
	write("AFOOT_MAX_TASKS_PER_OWNER=5\nAFOOT_KILL_GRACE=100ms\nAFOOT_HEARTBEAT=1s\nAFOOT_RETAIN_AGE=2h\n")
	said := r.ok("reload")
	require.Contains(t, said, "AFOOT_MAX_TASKS_PER_OWNER was taken up\n")
	require.Contains(t, said, "AFOOT_KILL_GRACE was taken up\n")
	require.Contains(t, said, "AFOOT_HEARTBEAT was taken up\n")
	require.NotContains(t, said, "RETAIN_AGE", "the environment wins")
	require.Contains(t, r.ok("reload"), "the configuration has not changed\n")
	r.ok("run", "--", "true")
	r.ok("kill", id)
	r.eventually("the new grace holds", func() bool { return r.tasks()[0].FinishedAt != 0 })

	write("AFOOT_MAX_TASKS_PER_OWNER=none\nAFOOT_KILL_GRACE=1s\n")
	_, stderr, code = r.afoot("reload", "--json")
	require.Equal(t, exitUsage, code, "the command reads the same file")
	require.Contains(t, stderr, "AFOOT_MAX_TASKS_PER_OWNER")
	require.NoError(t, r.daemon.Process.Signal(syscall.SIGUSR2))
	r.eventually("it says why not", func() bool { return strings.Contains(r.out.String(), "not reloaded") })
	r.env = append(r.env, "AFOOT_ENV_FILE=")
	_, stderr, code = r.afoot("reload")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "AFOOT_MAX_TASKS_PER_OWNER")
	for range 4 {
		r.ok("run", "-d", "--", "sleep 382")
	}
	require.Len(t, r.tasks(), 6, "five at a time are still allowed")
}

func TestReloadBySignal(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "afoot.env")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	r := newRig(t, "AFOOT_ENV_FILE="+file)
	for i, pair := range r.env {
		if strings.HasPrefix(pair, "AFOOT_LOG_LEVEL=") {
			r.env[i] = "X=1"
		}
	}
	r.serve()
	require.NoError(t, os.WriteFile(file, []byte("AFOOT_LOG_LEVEL=error\n"), 0o600))
	require.NoError(t, r.daemon.Process.Signal(syscall.SIGUSR2))
	r.eventually("the level is taken up", func() bool {
		require.NoError(t, syscall.Kill(r.watchdogs()[0], 0))
		before := strings.Count(r.out.String(), "level=INFO")
		r.ok("run", "--", "true")
		return strings.Count(r.out.String(), "level=INFO") == before && !strings.Contains(r.out.String(), "reloaded changes")
	})
}

// A new binary that refuses leaves the old one as it is.
func TestReloadAsksTheNewBinary(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	self, err := os.Executable()
	require.NoError(t, err)
	path := filepath.Join(dir, "afoot")
	require.NoError(t, exec.Command("cp", self, path).Run())
	r := newRig(t)
	cmd := exec.Command(path, "serve")
	cmd.Env, cmd.Dir = r.env, r.home
	r.launch(cmd)
	t.Cleanup(r.stop)
	r.waitReady()
	replace := func(text string) {
		t.Helper()
		require.NoError(t, os.WriteFile(path+".new", []byte(text), 0o700))
		require.NoError(t, os.Rename(path+".new", path))
	}
	replace("#!/bin/sh\necho afoot: the journal is too old; exit 1\n")
	_, stderr, code := r.afoot("reload")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "refuses, so the old one goes on: the journal is too old")
	replace("#!/no/such/shell\n")
	_, stderr, code = r.afoot("reload")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "so the old one goes on")
	require.NoError(t, os.Remove(path))
	_, stderr, _ = r.afoot("reload")
	require.Contains(t, stderr, "no binary to reload")
	require.Equal(t, "x\n", r.ok("run", "--", "echo x"))
}

func TestCheckChangesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	require.Contains(t, r.ok("serve", "--check"), "can serve")
	require.NoDirExists(t, r.state)
	r.serve()
	r.ok("run", "--", "true")
	require.Contains(t, r.ok("serve", "--check"), "can serve", "while a daemon runs")
	r.stop()
	require.NoError(t, os.WriteFile(journalPath(r.state), []byte("x"), 0o600))
	_, stderr, code := r.afoot("serve", "--check")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "damaged")
	require.NoError(t, os.Remove(journalPath(r.state)))
	for _, env := range []string{"AFOOT_WORKDIR=/no/such", "AFOOT_TLS_CERT=/no/such", "AFOOT_JWT_SECRET_FILE=/no/such", "AFOOT_HOSTS=*"} {
		bad := newRig(t, env)
		_, stderr, code := bad.afoot("serve", "--check")
		require.NotZero(t, code, env)
		require.NotEmpty(t, stderr)
	}
	bad := newRig(t, "AFOOT_JWKS=/no/such", "AFOOT_JWT_ISSUER=i", "AFOOT_JWT_AUDIENCE=a")
	_, stderr, code = bad.afoot("serve", "--check")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "JWKS")
	require.NoDirExists(t, bad.state)
}

// What keeps a daemon from starting keeps it from being replaced: the tasks would end
// with the one that is there.
func TestReloadRefusesWhatCannotStart(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "afoot.env")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	r := newRig(t, "AFOOT_ENV_FILE="+file)
	r.serve()
	r.env = append(r.env, "AFOOT_ENV_FILE=")
	for _, c := range []struct{ text, says string }{
		{"AFOOT_JWKS=/no/such\nAFOOT_JWT_ISSUER=i\nAFOOT_JWT_AUDIENCE=a\n", "the JWKS file /no/such"},
		{"AFOOT_BASH_TIMEOUT=11m\n", "AFOOT_BASH_TIMEOUT_MAX"},
	} {
		require.NoError(t, os.WriteFile(file, []byte(c.text), 0o600))
		_, stderr, code := r.afoot("reload")
		require.Equal(t, exitFailed, code, c.text)
		require.Contains(t, stderr, c.says)
		require.Equal(t, "x\n", r.ok("run", "--", "echo x"))
		// What was refused leaves nothing behind that would win against the mended file.
		require.NoError(t, os.WriteFile(file, []byte("AFOOT_HEARTBEAT=7s\n"), 0o600))
		r.ok("reload")
		require.NoError(t, os.WriteFile(file, nil, 0o600))
		require.Contains(t, r.ok("reload"), "AFOOT_HEARTBEAT")
	}
}

func TestBackup(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	dir := t.TempDir()
	_, stderr, code := r.afoot("backup", filepath.Join(dir, "none"))
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "no journal")
	require.NoDirExists(t, r.state)
	r.serve()
	r.ok("run", "--", "echo one")
	whole := filepath.Join(dir, "running")
	require.Contains(t, r.ok("backup", whole), "the secret and captured output are not")
	_, stderr, code = r.afoot("backup", whole)
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "exist")
	r.stop()
	cmd := r.command("backup", "stopped")
	cmd.Dir = dir
	_, stderr, code = r.finish(cmd)
	require.Zero(t, code, stderr)
	for _, name := range []string{"running", "stopped"} {
		report, err := journal.Inspect(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Empty(t, report.Problems)
		require.EqualValues(t, 1, report.Rows["tasks"])
		require.Equal(t, os.FileMode(0o600), modeOf(t, filepath.Join(dir, name)))
	}

	// Back to it.
	left, err := filepath.Glob(journalPath(r.state) + "*")
	require.NoError(t, err)
	for _, path := range left {
		require.NoError(t, os.Remove(path))
	}
	require.NoError(t, os.Rename(whole, journalPath(r.state)))
	require.NoError(t, os.Remove(filepath.Join(r.state, "secret")))
	r.serve()
	require.Len(t, r.tasks(), 1)
	require.Equal(t, "one\n", r.ok("logs", "bash-1"))
}

func TestControlIsForTheOwnUser(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.serve()
	require.Equal(t, os.FileMode(0o600), modeOf(t, filepath.Join(r.state, controlName)))
	conn, err := net.Dial("unix", filepath.Join(r.state, controlName))
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	_, err = conn.Write([]byte(`{"do":"dance"}` + "\n"))
	require.NoError(t, err)
	answer := make([]byte, 1000)
	n, err := conn.Read(answer)
	require.NoError(t, err)
	require.Contains(t, string(answer[:n]), "does not know how to")
	r.ok("reload")
	r.stop()
	require.NoFileExists(t, filepath.Join(r.state, controlName), "also behind a reload")
	_, stderr, code := r.afoot("reload")
	require.Equal(t, exitNoDaemon, code)
	require.Contains(t, stderr, "no daemon runs")
}

// Sockets have short addresses, directories may have long names.
func TestControlInADeepDirectory(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	deep := filepath.Join(r.home, strings.Repeat("d", 100), strings.Repeat("e", 100))
	require.NoError(t, os.MkdirAll(filepath.Dir(deep), 0o700))
	r.env = append(r.env, "AFOOT_STATE_DIR="+deep)
	r.serve()
	require.Contains(t, r.ok("reload"), "has not changed")
}

func TestSupervisorIsTold(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	require.NoError(t, err)
	messages := make(chan string, 1000) // it reads all the time, as a supervisor does
	go func() {
		defer close(messages)
		buf := make([]byte, 4096)
		for n, err := socket.Read(buf); err == nil; n, err = socket.Read(buf) {
			messages <- string(buf[:n])
		}
	}()
	defer func() {
		require.NoError(t, socket.Close())
		for range messages {
			continue
		}
	}()
	told := func(want string) string {
		t.Helper()
		for late := time.After(20 * time.Second); ; {
			select {
			case text := <-messages:
				if strings.Contains(text, want) {
					return text
				}
			case <-late:
				require.Fail(t, "it is not told", want)
			}
		}
	}
	r := newRig(t, "NOTIFY_SOCKET="+path, "WATCHDOG_USEC=200000")
	r.serve()
	require.Contains(t, told("READY=1"), "STATUS=listening on 127.0.0.1")
	told("WATCHDOG=1")
	told("WATCHDOG=1")
	require.Equal(t, "\n", r.ok("run", "--", "echo $NOTIFY_SOCKET$WATCHDOG_USEC"))
	r.ok("reload")
	require.Contains(t, told("RELOADING=1"), "MONOTONIC_USEC=")
	told("READY=1")
	r.stop()
	told("STOPPING=1")
}

// A supervisor that reads nothing holds neither a reload nor the end.
func TestSupervisorThatReadsNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	require.NoError(t, err)
	defer func() { require.NoError(t, socket.Close()) }()
	r := newRig(t, "NOTIFY_SOCKET="+path, "WATCHDOG_USEC=2000")
	r.serve()
	conn, err := net.Dial("unixgram", path)
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	r.eventually("its queue is full", func() bool {
		_ = conn.SetWriteDeadline(time.Now().Add(time.Millisecond))
		_, err := conn.Write([]byte("x"))
		return errors.Is(err, os.ErrDeadlineExceeded)
	})
	r.ok("reload")
	r.stop()
}

// Whatever the umask, the socket is closed to others from its first moment.
func TestControlIsNeverOpen(t *testing.T) {
	dir := t.TempDir()
	before := syscall.Umask(0)
	defer syscall.Umask(before)
	stop, seen := make(chan struct{}), make(chan os.FileMode, 1)
	go func() {
		var worst os.FileMode
		for {
			select {
			case <-stop:
				seen <- worst
				return
			default:
			}
			if info, err := os.Lstat(filepath.Join(dir, controlName)); err == nil {
				worst |= info.Mode().Perm() &^ 0o600
			}
		}
	}()
	for range 2000 {
		listener, err := listenControl(dir)
		require.NoError(t, err)
		require.NoError(t, listener.Close())
	}
	close(stop)
	require.Zero(t, <-seen)
}
