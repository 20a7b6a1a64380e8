package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// grace is the kill grace that daemons of this suite run with.
const grace = 2 * time.Second

// waitStart bounds how long a daemon may take to be ready.
const waitStart = 30 * time.Second

// daemon is one process of the binary under test, with directories, secret and
// port of its own. Every process that it starts carries its mark.
type daemon struct {
	t       *testing.T
	mark    string
	addr    string // "127.0.0.1:port", or "" when the test sets AFOOT_ADDR
	dir     string // where it is started
	state   string
	work    string
	secret  []byte
	env     []string
	argv    []string
	attr    *syscall.SysProcAttr // how the process is made; nil most often
	logPath string

	cmd    *exec.Cmd
	exited chan struct{} // closed when the process was reaped
	http   *http.Client
}

// serve starts a daemon with extra environment ("NAME=value", the later wins) and
// waits until it is ready. It ends with the test, which then checks that it ends
// well and leaves no process.
func serve(t *testing.T, env ...string) *daemon {
	t.Helper()
	d := prepare(t, env...)
	d.launch()
	d.ready()
	return d
}

// prepare makes everything a daemon needs, and starts nothing.
func prepare(t *testing.T, env ...string) *daemon {
	t.Helper()
	root := t.TempDir()
	d := &daemon{
		t:       t,
		mark:    rand.Text(),
		addr:    fmt.Sprintf("127.0.0.1:%d", freePort(t)),
		state:   filepath.Join(root, "state"),
		work:    filepath.Join(root, "work"),
		dir:     filepath.Join(root, "start"),
		logPath: filepath.Join(root, "daemon.log"),
		secret:  []byte("e2e-" + rand.Text() + rand.Text()),
		argv:    []string{binary, "serve"},
	}
	for _, dir := range []string{d.work, d.dir} {
		require.NoError(t, os.Mkdir(dir, 0o700))
	}
	secretFile := filepath.Join(root, "secret")
	require.NoError(t, os.WriteFile(secretFile, d.secret, 0o600))
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "AFOOT_") {
			d.env = append(d.env, kv)
		}
	}
	// A program that was built with the race detector sleeps for a second before it
	// exits, unless it is told not to.
	d.env = append(d.env, "E2E_MARK="+d.mark, "GORACE="+os.Getenv("GORACE")+" atexit_sleep_ms=0",
		"AFOOT_ADDR="+d.addr, "AFOOT_STATE_DIR="+d.state, "AFOOT_WORKDIR="+d.work,
		"AFOOT_JWT_SECRET_FILE="+secretFile, "AFOOT_KILL_GRACE="+grace.String(),
		"AFOOT_LOG_LEVEL=debug")
	d.env = append(d.env, env...)
	d.http = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}}
	t.Cleanup(func() {
		if t.Failed() {
			d.autopsy()
		}
		d.stop()
		d.http.CloseIdleConnections()
		if t.Failed() {
			t.Logf("daemon's log, its last part:\n%s", d.logTail(12000))
		}
	})
	return d
}

// unset takes variables out of the environment of the next launch.
func (d *daemon) unset(names ...string) {
	var kept []string
	for _, kv := range d.env {
		drop := false
		for _, name := range names {
			drop = drop || strings.HasPrefix(kv, name+"=")
		}
		if !drop {
			kept = append(kept, kv)
		}
	}
	d.env = kept
}

// launch starts the process and does not wait for it to listen.
func (d *daemon) launch() {
	d.t.Helper()
	log, err := os.OpenFile(d.logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(d.t, err)
	defer func() { _ = log.Close() }()
	d.cmd = exec.Command(d.argv[0], d.argv[1:]...)
	d.cmd.Dir, d.cmd.Env = d.dir, d.env
	d.cmd.SysProcAttr = d.attr
	d.cmd.Stdout, d.cmd.Stderr = log, log
	require.NoError(d.t, d.cmd.Start())
	exited := make(chan struct{})
	d.exited = exited
	go func(cmd *exec.Cmd) {
		defer close(exited)
		_ = cmd.Wait()
	}(d.cmd)
}

// ready waits until /readyz answers 200.
func (d *daemon) ready() {
	d.t.Helper()
	eventually(d.t, waitStart, "daemon is ready", func() bool {
		select {
		case <-d.exited:
			require.FailNow(d.t, "daemon ended before it was ready", d.logTail(4000))
		default:
		}
		res, err := d.http.Get("http://" + d.addr + "/readyz")
		if err != nil {
			return false
		}
		_ = res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
}

// refuses launches the daemon and checks that it ends by itself with an error
// whose text holds every one of words.
func (d *daemon) refuses(words ...string) {
	d.t.Helper()
	d.launch()
	require.True(d.t, d.waitExit(20*time.Second), "daemon started although it must refuse:\n%s", d.logTail(4000))
	require.NotZero(d.t, d.cmd.ProcessState.ExitCode(), "exit code of a refused start")
	text := d.logTail(4000)
	for _, word := range words {
		require.Contains(d.t, text, word)
	}
	require.NotContains(d.t, text, "panic:")
}

func (d *daemon) waitExit(within time.Duration) bool {
	select {
	case <-d.exited:
		return true
	case <-time.After(within):
		return false
	}
}

// running says whether the process was launched and has not been reaped.
func (d *daemon) running() bool {
	if d.cmd == nil || d.cmd.Process == nil {
		return false
	}
	select {
	case <-d.exited:
		return false
	default:
		return true
	}
}

// stop ends the daemon by SIGTERM to its own pid and checks that it obeys: exit
// code 0 in time, and none of its processes left. It does nothing if the daemon
// does not run.
func (d *daemon) stop() {
	d.t.Helper()
	if !d.running() {
		return
	}
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	if !d.waitExit(20 * time.Second) {
		_ = d.cmd.Process.Signal(syscall.SIGQUIT) // goroutines into the log
		if !d.waitExit(5 * time.Second) {
			_ = d.cmd.Process.Kill()
			<-d.exited
		}
		d.t.Errorf("daemon did not end within 20 s of SIGTERM")
	}
	assert.Equal(d.t, 0, d.cmd.ProcessState.ExitCode(), "exit code of the daemon after SIGTERM")
	left := d.alive()
	assert.Empty(d.t, left, "processes left after the daemon's end")
	for _, p := range left {
		_ = syscall.Kill(p.pid, syscall.SIGKILL)
	}
}

// copyBinary makes a copy that can be run at once: nobody is forked while it is open for
// writing, who would hold it open until an exec, and make it busy.
func copyBinary(t *testing.T, to string) {
	t.Helper()
	data, err := os.ReadFile(binary)
	require.NoError(t, err)
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	require.NoError(t, os.WriteFile(to, data, 0o755))
}

// autopsy has a daemon whose test has failed tell what its goroutines were at, and ends it:
// a wait that ran out is explained by nothing else.
func (d *daemon) autopsy() {
	d.t.Helper()
	if !d.running() {
		return
	}
	told := len(d.logTail(math.MaxInt))
	_ = d.cmd.Process.Signal(syscall.SIGQUIT)
	d.waitExit(5 * time.Second)
	d.kill()
	whole := d.logTail(math.MaxInt)
	d.t.Logf("daemon's log, before its stacks:\n%s", whole[max(0, told-12000):min(told, len(whole))])
	d.t.Logf("daemon's goroutines:\n%s", whole[min(told, len(whole)):])
}

// kill ends the daemon without a chance to clean up, and everything it started.
func (d *daemon) kill() {
	d.t.Helper()
	_ = d.cmd.Process.Kill()
	<-d.exited
	for _, p := range d.alive() {
		_ = syscall.Kill(p.pid, syscall.SIGKILL)
	}
}

func (d *daemon) logTail(n int) string {
	data, err := os.ReadFile(d.logPath)
	if err != nil {
		return err.Error()
	}
	if len(data) > n {
		data = data[len(data)-n:]
	}
	return string(data)
}

// command runs another command of the binary and gives what it printed. Of the
// daemon it is told the state directory alone: address and secret it must find.
func (d *daemon) command(args ...string) (stdout, stderr string, code int) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cmd := d.commandContext(ctx, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(d.t, err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// commandContext makes the command without running it.
func (d *daemon) commandContext(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Dir = d.work
	for _, kv := range d.env {
		if !strings.HasPrefix(kv, "AFOOT_") || strings.HasPrefix(kv, "AFOOT_STATE_DIR=") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	return cmd
}

// nextPort walks through ports below the range from which outgoing connections
// take theirs.
var nextPort atomic.Int32

func freePort(t *testing.T) int {
	t.Helper()
	nextPort.CompareAndSwap(0, int32(15000+os.Getpid()%15000))
	for range 1000 {
		port := int(nextPort.Add(1))
		if port >= 32000 {
			nextPort.Store(15000)
			continue
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			require.NoError(t, l.Close())
			return port
		}
	}
	require.FailNow(t, "no free port")
	return 0
}

// Pauses between two looks at a fact. They grow: most facts hold soon, and a look is a
// call or a walk over all processes, which costs those that the fact waits for.
const (
	shortestLook = 2 * time.Millisecond
	longestLook  = 25 * time.Millisecond
)

// eventually polls a fact until it holds, and fails the test when it does not do
// so in time.
func eventually(tb testing.TB, within time.Duration, what string, fact func() bool) {
	tb.Helper()
	begun := time.Now()
	for pause := shortestLook; !fact(); pause = min(pause*3/2, longestLook) {
		if late(begun, within) {
			require.FailNow(tb, "not in time: "+what, "within %v", within)
		}
		<-time.After(pause)
	}
}

// late says that a bound is over, as it is on the machine of this moment: what keeps it busy
// may have begun behind the wait.
func late(begun time.Time, within time.Duration) bool {
	lasted := time.Since(begun)
	return lasted > within && lasted > patient(within)
}

// patient gives a bound as it is on a machine that has time, and ten times of it on
// one where more wants to run than can: there a bound tells of the machine and not of
// the daemon, and only that there is an end can still be shown.
func patient(bound time.Duration) time.Duration {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return bound
	}
	var load float64
	var minutes5, minutes15 string
	var runnable int
	if _, err := fmt.Sscanf(string(data), "%g %s %s %d/", &load, &minutes5, &minutes15, &runnable); err != nil {
		return bound
	}
	if most := runtime.NumCPU(); load > float64(most) || runnable > 2*most {
		return 10 * bound
	}
	return bound
}

// hexText gives 2n random hexadecimal digits.
func hexText(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return hex.EncodeToString(b)
}
