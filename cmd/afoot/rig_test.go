package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// rig is a place for one daemon and the commands that talk to it.
type rig struct {
	t     *testing.T
	home  string
	state string
	env   []string

	daemon *exec.Cmd
	out    *safeBuffer // of the daemon, both streams
	exited chan error
}

// newRig makes the place. Extra variables win over the rig's own.
func newRig(t *testing.T, env ...string) *rig {
	t.Helper()
	home := t.TempDir()
	r := &rig{t: t, home: home, state: filepath.Join(home, "state")}
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "HOME=") && !strings.HasPrefix(pair, "XDG_") {
			r.env = append(r.env, pair)
		}
	}
	// Without GORACE every command under the race detector ends a second late.
	r.env = append(r.env, asCommand+"=1", "GORACE=atexit_sleep_ms=0", "HOME="+home,
		"AFOOT_STATE_DIR="+r.state, "AFOOT_ADDR=127.0.0.1:0", "AFOOT_LOG_LEVEL=warn")
	r.env = append(r.env, env...)
	return r
}

// command is afoot with the arguments, not started yet.
func (r *rig) command(args ...string) *exec.Cmd {
	r.t.Helper()
	self, err := os.Executable()
	require.NoError(r.t, err)
	cmd := exec.Command(self, args...)
	cmd.Env, cmd.Dir = r.env, r.home
	return cmd
}

// serve starts the daemon and waits until it says where it listens.
func (r *rig) serve(args ...string) {
	r.t.Helper()
	r.launch(r.command(append([]string{"serve"}, args...)...))
	r.t.Cleanup(r.stop)
	r.waitReady()
}

func (r *rig) launch(cmd *exec.Cmd) {
	r.t.Helper()
	r.out = &safeBuffer{}
	cmd.Stdout, cmd.Stderr = r.out, r.out
	require.NoError(r.t, cmd.Start())
	r.daemon = cmd
	exited := make(chan error, 1)
	r.exited = exited
	go func() { exited <- cmd.Wait() }()
}

// waitReady waits until the daemon says where it listens.
func (r *rig) waitReady() {
	r.t.Helper()
	r.eventually("the daemon listens", func() bool {
		select {
		case err := <-r.exited:
			r.exited <- err
			require.FailNow(r.t, "the daemon ended", "%v\n%s", err, r.out)
		default:
		}
		return strings.Contains(r.out.String(), "afoot listens on")
	})
}

// stop ends the daemon as an operator would.
func (r *rig) stop() {
	r.t.Helper()
	if r.daemon == nil {
		return
	}
	_ = r.daemon.Process.Signal(syscall.SIGTERM)
	require.NoError(r.t, r.ended(20*time.Second), r.out.String())
}

// ended gives how the daemon ended.
func (r *rig) ended(within time.Duration) error {
	r.t.Helper()
	select {
	case err := <-r.exited:
		r.daemon = nil
		return err
	case <-time.After(within):
		_ = r.daemon.Process.Kill()
		<-r.exited
		r.daemon = nil
		require.FailNow(r.t, "the daemon did not end", "%s", r.out)
		return nil
	}
}

// afoot runs one command to its end.
func (r *rig) afoot(args ...string) (stdout, stderr string, code int) {
	r.t.Helper()
	return r.finish(r.command(args...))
}

func (r *rig) finish(cmd *exec.Cmd) (stdout, stderr string, code int) {
	r.t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(r.t, err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// ok runs a command that must succeed and gives what it printed.
func (r *rig) ok(args ...string) string {
	r.t.Helper()
	stdout, stderr, code := r.afoot(args...)
	require.Zero(r.t, code, "afoot %s: %s", strings.Join(args, " "), stderr)
	return stdout
}

// eventually polls a fact with a deadline.
func (r *rig) eventually(what string, fact func() bool) {
	r.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(20 * time.Second); !fact(); {
		if now := <-tick.C; now.After(deadline) {
			require.FailNow(r.t, "not in time: "+what, "daemon:\n%s", r.out)
		}
	}
}

// background is a command that goes on while the test looks at it.
type background struct {
	cmd   *exec.Cmd
	lines chan string
	errs  *safeBuffer
}

// begin starts a command and reads its standard output line by line.
func (r *rig) begin(args ...string) *background {
	r.t.Helper()
	b := &background{cmd: r.command(args...), lines: make(chan string, 100), errs: &safeBuffer{}}
	b.cmd.Stderr = b.errs
	out, err := b.cmd.StdoutPipe()
	require.NoError(r.t, err)
	require.NoError(r.t, b.cmd.Start())
	go func() {
		defer close(b.lines)
		for scan := bufio.NewScanner(out); scan.Scan(); {
			b.lines <- scan.Text()
		}
	}()
	r.t.Cleanup(func() {
		_ = b.cmd.Process.Kill()
		_ = b.cmd.Wait()
	})
	return b
}

// line gives the next line of standard output.
func (b *background) line(t *testing.T) string {
	t.Helper()
	select {
	case line, open := <-b.lines:
		require.True(t, open, "the command ended: %s", b.errs)
		return line
	case <-time.After(20 * time.Second):
		require.FailNow(t, "no line came", "%s", b.errs)
		return ""
	}
}

// code waits for the end of the command.
func (b *background) code() int {
	for range b.lines { // Wait closes the pipe: read it out first
	}
	_ = b.cmd.Wait()
	return b.cmd.ProcessState.ExitCode()
}

// safeBuffer is a buffer that may be looked at while it is written.
type safeBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

var _ fmt.Stringer = (*safeBuffer)(nil)
