package proc

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// asHost makes this program a host that runs one command and shows its output.
const asHost = "PROC_TEST_AS_HOST"

func TestMain(m *testing.M) {
	if net := os.Getenv(asDoomed); net != "" {
		doomedMain(net, os.Getenv(asHost))
		os.Exit(1)
	}
	if command := os.Getenv(asHost); command != "" {
		os.Exit(hostMain(command))
	}
	goleak.VerifyTestMain(m)
}

func hostMain(command string) int {
	host, err := NewHost(Config{})
	if err != nil {
		return 99
	}
	p, err := host.Start(Spec{
		Path: bash(), Args: []string{"bash", "-c", command},
		Files: []uintptr{host.Null(), 1, 2},
	})
	if err != nil {
		return 98
	}
	p.Wait()
	exit, _ := p.Reap()
	if host.Close() != nil {
		return 97
	}
	return exit.Code
}

func bash() string {
	path, err := exec.LookPath("bash")
	if err != nil {
		panic(err)
	}
	return path
}

func newHost(t testing.TB) *Host {
	t.Helper()
	return newHostWith(t, os.Getenv("PROC_TEST_NET"))
}

func newHostWith(t testing.TB, net string) *Host {
	t.Helper()
	host, err := NewHost(Config{Net: net})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, host.Close()) })
	return host
}

// start runs a command whose output comes out of the returned reader.
func start(t testing.TB, host *Host, command string) (*Process, *bufio.Reader) {
	t.Helper()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	p, err := host.Start(Spec{
		Path: bash(), Args: []string{"bash", "-c", command}, Env: os.Environ(),
		Files: []uintptr{host.Null(), w.Fd(), w.Fd()},
	})
	require.NoError(t, err)
	require.NoError(t, w.Close())
	t.Cleanup(func() { _ = r.Close() })
	return p, bufio.NewReader(r)
}

func line(t testing.TB, r *bufio.Reader) string {
	t.Helper()
	s, err := r.ReadString('\n')
	if err != io.EOF {
		require.NoError(t, err)
	}
	return strings.TrimSuffix(s, "\n")
}

func pidLine(t testing.TB, r *bufio.Reader) int {
	t.Helper()
	pid, err := strconv.Atoi(line(t, r))
	require.NoError(t, err)
	return pid
}

// alive decides by the state letter, since signals reach zombies too.
func alive(pid int) bool {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	s, ok := parseStat(data)
	return ok && !s.dead
}

func requireGone(t testing.TB, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		require.Eventually(t, func() bool { return !alive(pid) }, 20*time.Second, time.Millisecond, "process %d lives", pid)
	}
}

// requireRemoved waits for the end of what dead hosts left: another program's host that
// begins in the same moment may be about it.
func requireRemoved(t testing.TB, groups ...string) {
	t.Helper()
	for _, dir := range groups {
		require.Eventually(t, func() bool { return unix.Access(dir, unix.F_OK) != nil }, 20*time.Second, time.Millisecond, "group %s is there", dir)
	}
}

// endByPid ends a process that a test left on purpose.
func endByPid(t testing.TB, pid int) {
	t.Helper()
	_ = syscall.Kill(pid, syscall.SIGKILL)
	requireGone(t, pid)
}
