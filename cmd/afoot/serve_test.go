package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"afoot/api/client"
)

// soon is long enough for a shutdown that waits for nothing.
func (r *rig) soon() time.Duration { return 30 * time.Second }

func TestK2SecondDaemonNamesTheFirst(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.serve()
	stdout, stderr, code := r.afoot("serve")
	require.NotZero(t, code)
	require.Empty(t, stdout)
	require.Contains(t, stderr, "process "+strconv.Itoa(r.daemon.Process.Pid))
	require.Contains(t, stderr, r.state)
	require.Empty(t, r.tasks(), "the first one goes on")
}

func TestJ3RefusesToListenWithoutKeys(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	write := func(text string, mode os.FileMode) {
		t.Helper()
		require.NoError(t, os.WriteFile(secret, []byte(text), 0o600))
		require.NoError(t, os.Chmod(secret, mode))
	}
	good := strings.Repeat("k", 32)
	for _, c := range []struct {
		name, text string
		mode       os.FileMode
		env        []string
		says       string
	}{
		{"no keys", "", 0, []string{"AFOOT_ADDR=0.0.0.0:0", "AFOOT_HOSTS=a.example"}, "AFOOT_JWT_SECRET_FILE"},
		{"no hosts", good, 0o600, []string{"AFOOT_ADDR=0.0.0.0:0", "AFOOT_JWT_SECRET_FILE=" + secret}, "AFOOT_HOSTS"},
		{"empty", "", 0o600, []string{"AFOOT_JWT_SECRET_FILE=" + secret}, "empty"},
		{"short", "short", 0o600, []string{"AFOOT_JWT_SECRET_FILE=" + secret}, "32"},
		{"readable by all", good, 0o644, []string{"AFOOT_JWT_SECRET_FILE=" + secret}, "chmod 600"},
		{"missing", "", 0, []string{"AFOOT_JWT_SECRET_FILE=/no/such/file"}, "/no/such/file"},
		{"wait", "", 0, []string{"AFOOT_WAIT_DEFAULT=11m"}, "AFOOT_WAIT_MAX"},
		{"workdir", "", 0, []string{"AFOOT_WORKDIR=/no/such/dir"}, "AFOOT_WORKDIR"},
		{"host", "", 0, []string{"AFOOT_HOSTS=*"}, "AFOOT_HOSTS"},
		{"certificate", "", 0, []string{"AFOOT_TLS_CERT=/no/cert", "AFOOT_TLS_KEY=/no/key"}, "AFOOT_TLS_CERT"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.mode != 0 {
				write(c.text, c.mode)
			}
			r := newRig(t, c.env...)
			_, stderr, code := r.afoot("serve")
			require.NotZero(t, code)
			require.Contains(t, stderr, c.says)
			require.NotContains(t, stderr, good)
		})
	}
}

func TestJ5EverythingInTheStateDirectoryIsPrivate(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	cmd := exec.Command("bash", "-c", `umask 0; exec "$0" serve`, r.command().Path)
	cmd.Env, cmd.Dir = r.env, r.home
	r.launch(cmd)
	t.Cleanup(r.stop)
	r.waitReady()
	require.Equal(t, "0000\n", r.ok("run", "--", "umask"), "tasks keep the daemon's")
	count := 0
	require.NoError(t, filepath.WalkDir(r.state, func(path string, entry fs.DirEntry, err error) error {
		require.NoError(t, err)
		count++
		want := os.FileMode(0o600)
		if entry.IsDir() {
			want = 0o700
		}
		require.Equal(t, want, modeOf(t, path), path)
		return nil
	}))
	require.Greater(t, count, 5, "directory, lock, listen, secret, output and one log")
}

func TestJ5PlantedOutputDirectory(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	target := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(target, "precious"), nil, 0o644))
	require.NoError(t, os.Mkdir(r.state, 0o700))
	require.NoError(t, os.Symlink(target, filepath.Join(r.state, outputName)))
	_, stderr, code := r.afoot("serve")
	require.NotZero(t, code)
	require.Contains(t, stderr, "output")
	require.FileExists(t, filepath.Join(target, "precious"))
}

// A10, F6: what the daemon inherited stays with it.
func TestInheritedSignalsAndDescriptorsDoNotReachTasks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	cmd := exec.Command("bash", "-c", `trap "" HUP INT TSTP TTIN TTOU USR1; exec 9</etc/passwd "$0" serve`, r.command().Path)
	cmd.Env, cmd.Dir = r.env, r.home
	r.launch(cmd)
	t.Cleanup(r.stop)
	r.waitReady()
	require.Regexp(t, `^SigIgn:\s+0+\n$`, r.ok("run", "--", "grep SigIgn /proc/self/status"))
	require.Equal(t, "0\n1\n2\n3\n", r.ok("run", "--", "ls /proc/self/fd"), "3 is the directory itself")
	for _, sig := range []os.Signal{syscall.SIGHUP, os.Interrupt} {
		require.NoError(t, r.daemon.Process.Signal(sig))
	}
	require.Equal(t, "alive\n", r.ok("run", "--", "echo alive"))
}

func TestInterruptEndsAForegroundDaemon(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	// Tests that run behind a shell's & ignore SIGINT, and their children would; a signal
	// that is handled is not inherited.
	handled := make(chan os.Signal, 1)
	signal.Notify(handled, os.Interrupt)
	r.serve()
	signal.Stop(handled)
	require.NoError(t, r.daemon.Process.Signal(os.Interrupt))
	require.NoError(t, r.ended(r.soon()))
	require.NoFileExists(t, filepath.Join(r.state, listenName))
}

// K9 without its clock: everybody who waits is told.
func TestShutdownAnswersEverybody(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.serve()
	events := r.begin("events", "--json", "--after", "nonsense-1")
	require.Contains(t, events.line(t), `"gap"`, "the stream is open")
	id := strings.TrimSpace(r.ok("run", "-d", "--", "echo up; sleep 329; true"))
	wait := r.begin("output", "--wait", id)
	r.eventually("the wait is blocked", func() bool {
		var task client.TaskDescription
		info, err := readListenInfo(r.state)
		require.NoError(t, err)
		a := &app{cfg: &Config{StateDir: r.state}, session: defaultSession}
		remote, err := a.connect()
		require.NoError(t, err, info)
		defer func() { require.NoError(t, remote.close()) }()
		task, err = decode[client.TaskDescription](remote.GetTask(t.Context(), id, &client.GetTaskParams{}))
		return err == nil && task.Waiters == 1 && task.OutputBytes > 0
	})
	require.NoError(t, r.daemon.Process.Signal(syscall.SIGTERM))
	require.Equal(t, "up", wait.line(t))
	_ = wait.code() // it was answered and asked again: it met the end, or no daemon any more
	for line := ""; !strings.Contains(line, `"bye"`); line = events.line(t) {
		require.NotContains(t, line, "task.done")
	}
	require.NoError(t, r.ended(r.soon()))
}

// Live tasks and leftovers that ignore SIGTERM are given the same grace.
func TestK9OneGraceForEverything(t *testing.T) {
	t.Parallel()
	r := newRig(t, "AFOOT_KILL_GRACE=6s")
	r.serve()
	require.Equal(t, "up\n", r.ok("run", "--", `mkfifo f; (trap "" TERM; echo >f; while :; do sleep 0.333; done) >/dev/null 2>&1 & read x <f; echo up`))
	r.ok("run", "-d", "--", `trap "" TERM; echo up; while :; do sleep 0.331; done`)
	r.eventually("the task is up", func() bool { return r.tasks()[1].OutputBytes > 0 })
	require.Contains(t, r.tasks()[0].Detail, "left running")
	begun := time.Now()
	require.NoError(t, r.daemon.Process.Signal(syscall.SIGTERM))
	require.NoError(t, r.ended(r.soon()))
	require.Less(t, time.Since(begun), 11800*time.Millisecond, "two graces would take 12 s")
	require.Empty(t, printed(t, "bash", "-c", `cat /proc/[0-9]*/cmdline 2>/dev/null | tr "\\0" "\n" | grep -x "0[.]33[13]" || true`), "somebody is left")
}

// Whatever comes while the daemon ends, and however often, it ends in order.
func TestNoSignalBreaksOffTheEnd(t *testing.T) {
	t.Parallel()
	for range 5 {
		tmp := t.TempDir()
		r := newRig(t, "AFOOT_STATE_DIR=memory:", "TMPDIR="+tmp)
		r.serve()
		for range time.Tick(50 * time.Microsecond) {
			_ = r.daemon.Process.Signal(syscall.SIGUSR2)
			if r.daemon.Process.Signal(syscall.SIGTERM) != nil {
				break // it has ended
			}
		}
		require.NoError(t, r.ended(r.soon()), r.out.String())
		left, err := os.ReadDir(tmp)
		require.NoError(t, err)
		require.Empty(t, left)
	}
}

func TestEndWithNobodyToReadTheLog(t *testing.T) {
	t.Parallel()
	r := newRig(t, "AFOOT_LOG_LEVEL=info")
	cmd := r.command("serve")
	logged, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	r.eventually("the daemon listens", func() bool {
		_, err := readListenInfo(r.state)
		return err == nil
	})
	require.NoError(t, logged.Close())
	_, _, code := r.afoot("run", "--", "kill -PIPE $$")
	require.Equal(t, 141, code, "for tasks the signal is what it was")
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait())
	require.NoFileExists(t, filepath.Join(r.state, remainsName))
}

// A daemon that is killed while it removes its directory leaves the rest to the watchdog.
func TestKilledWhileItClears(t *testing.T) {
	t.Parallel()
	tmp := t.TempDir()
	r := newRig(t, "AFOOT_STATE_DIR=memory:", "TMPDIR="+tmp)
	r.serve()
	dirs, err := filepath.Glob(filepath.Join(tmp, scratchPrefix+"*"))
	require.NoError(t, err)
	require.Len(t, dirs, 1)
	const many = 5000
	for i := range many {
		require.NoError(t, os.WriteFile(filepath.Join(dirs[0], fmt.Sprint("x", i)), nil, 0o600))
	}
	require.NoError(t, r.daemon.Process.Signal(syscall.SIGTERM))
	r.eventually("it clears", func() bool {
		left, _ := os.ReadDir(dirs[0])
		return len(left) < many
	})
	_ = r.daemon.Process.Kill()
	_ = r.ended(r.soon()) // it may have been quicker
	r.eventually("all is gone", func() bool {
		_, err := os.Stat(dirs[0])
		return errors.Is(err, os.ErrNotExist)
	})
}

func TestCrashLeavesNothingInTheWay(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.serve()
	r.ok("run", "--", "echo kept until the next start")
	require.NoError(t, r.daemon.Process.Kill())
	require.Error(t, r.ended(r.soon()))
	_, stderr, code := r.afoot("ls")
	require.Equal(t, exitNoDaemon, code)
	require.Contains(t, stderr, "no daemon answers")

	r.serve()
	require.Len(t, r.tasks(), 1)
	require.Equal(t, "kept until the next start\n", r.ok("logs", "bash-1"))
	stale := filepath.Join(r.state, outputName, "e0-1.log")
	require.NoError(t, os.WriteFile(stale, nil, 0o600))
	r.stop()
	r.serve()
	require.NoFileExists(t, stale, "output without a record is given back")
	require.Equal(t, "kept until the next start\n", r.ok("logs", "bash-1"))
}

func TestB5DeletedStartDirectory(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	dir := filepath.Join(r.home, "start")
	require.NoError(t, os.Mkdir(dir, 0o700))
	cmd := r.command("serve")
	cmd.Dir = dir
	r.launch(cmd)
	t.Cleanup(r.stop)
	r.waitReady()
	require.NoError(t, os.Remove(dir))
	require.Equal(t, "fine\n", r.ok("run", "--", "echo fine"))

	second := newRig(t)
	cmd = exec.Command("bash", "-c", `mkdir gone; cd gone; rmdir ../gone; exec "$0" serve`, second.command().Path)
	cmd.Env, cmd.Dir = second.env, second.home
	second.launch(cmd)
	t.Cleanup(second.stop)
	second.waitReady()
	second.env = append(second.env, "AFOOT_TOKEN="+strings.TrimSpace(second.ok("token", "--session", "s")))
	info, err := readListenInfo(second.state)
	require.NoError(t, err)
	require.Equal(t, second.home+"\n", second.ok("run", "--addr", info.Addr, "--", "pwd"), "the default is the home directory")
}

func TestUnixSocket(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := newRig(t, "AFOOT_ADDR=unix:"+filepath.Join(dir, "s"))
	r.serve()
	require.Equal(t, "x\n", r.ok("run", "--", "echo x"))
	require.Equal(t, os.FileMode(0o600), modeOf(t, filepath.Join(dir, "s")))
	r.env = append(r.env, "AFOOT_TOKEN="+strings.TrimSpace(r.ok("token", "--session", "local")))
	require.Contains(t, r.ok("ls", "--addr", "unix:"+filepath.Join(dir, "s")), "bash-1")
	r.stop()
	require.NoFileExists(t, filepath.Join(dir, "s"))
}

func TestTLS(t *testing.T) {
	t.Parallel()
	cert, key := writeCertificate(t)
	r := newRig(t, "AFOOT_TLS_CERT="+cert, "AFOOT_TLS_KEY="+key)
	r.serve()
	require.Contains(t, r.out.String(), "https://127.0.0.1:")
	require.Equal(t, "x\n", r.ok("run", "--", "echo x"))

	other, _ := writeCertificate(t)
	info, err := readListenInfo(r.state)
	require.NoError(t, err)
	info.TLSCert = other
	require.NoError(t, info.write(r.state))
	_, stderr, code := r.afoot("ls")
	require.NotZero(t, code)
	require.Contains(t, stderr, "another certificate")
	info.TLSCert, info.PID = cert, r.daemon.Process.Pid
	require.NoError(t, info.write(r.state))
}

// writeCertificate makes a certificate that no authority signed and that names
// nobody.
func writeCertificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	require.NoError(t, err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	require.NoError(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), 0o600))
	return cert, key
}
