package proc

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// eachNet runs a test with each net that catches who left its session.
func eachNet(t *testing.T, test func(t *testing.T, host *Host)) {
	t.Helper()
	for _, name := range []string{netCgroup, netSubreaper} {
		t.Run(name, func(t *testing.T) {
			host, err := NewHost(Config{Net: name})
			if err != nil && name == netCgroup {
				t.Skip(err)
			}
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, host.Close()) })
			test(t, host)
		})
	}
}

func finish(t testing.TB, p *Process) Exit {
	t.Helper()
	p.Wait()
	exit, err := p.Reap()
	require.NoError(t, err)
	return exit
}

func TestNetsStopEverybody(t *testing.T) {
	const grace = 300 * time.Millisecond
	eachNet(t, func(t *testing.T, host *Host) {
		t.Helper()
		for _, c := range []struct {
			name, command string
			pids          int
			least         time.Duration
		}{
			{"A4 sequence", `sleep 401 & echo $!; sleep 402 & echo $!; wait; echo after`, 2, 0},
			{"A4 pipe", `sleep 403 | (echo $BASHPID; exec cat)`, 1, 0},
			{"A4 subshell", `(echo $BASHPID; sleep 404; true); true`, 1, 0},
			{"A5", `trap 'exit 0' TERM; bash -c 'trap "" TERM; echo $$; exec sleep 405' & wait`, 1, grace},
			{"A5, own session", `trap 'exit 0' TERM; setsid bash -c 'trap "" TERM; echo $$; exec sleep 406' & wait`, 1, grace},
			{"A6", `setsid bash -c 'echo $$; exec sleep 407' & setsid bash -c 'echo $$; setsid bash -c "echo \$\$; exec sleep 408" & wait' & wait`, 3, 0},
			{"daemon", `env -i setsid -f bash -c 'echo $$; exec sleep 409'; exec sleep 410`, 1, 0},
			{"silent daemon", `env -i setsid -f bash -c 'echo $$ >&3; exec 3>&-; exec sleep 411' 3>&1 >/dev/null 2>&1; exec sleep 412`, 1, 0},
			{"daemon of a daemon", `(setsid bash -c '(setsid bash -c "trap \"\" TERM; echo \$\$; exec sleep 413" >&3 &)' 3>&1 >/dev/null 2>&1 &); exec sleep 414`, 1, grace},
			{"stopped", `setsid sleep 415 & kill -STOP $!; until grep -q "^State:.T" /proc/$!/status; do :; done; echo $!; wait`, 1, grace},
			{"zombies of a parent that does not reap", `sleep 0 & sleep 0 & echo $$; exec sleep 416`, 1, 0},
			{"born during the stop", `trap 'for i in 1 2 3; do setsid sleep 417.$i & done; wait' TERM; echo $$; sleep 418 & wait; wait`, 1, grace},
			{"storm of forks", `setsid bash -c 'trap "" TERM; echo $$; while :; do (sleep .01 &); done' & wait`, 1, grace},
		} {
			t.Run(c.name, func(t *testing.T) {
				p, out := start(t, host, c.command)
				pids := []int{p.Pid()}
				for range c.pids {
					pids = append(pids, pidLine(t, out))
				}
				begun := time.Now()
				p.Stop(grace)
				took := time.Since(begun)
				finish(t, p)
				p.Tree().Stop(0)
				for _, pid := range pids {
					require.False(t, alive(pid), "%d lives when Stop is over", pid)
				}
				require.False(t, p.Tree().Left())
				require.GreaterOrEqual(t, took, c.least)
				require.Less(t, took, grace+30*time.Second)
				rest, err := io.ReadAll(out)
				require.NoError(t, err, "nobody holds the pipe")
				require.NotContains(t, string(rest), "after")
			})
		}
	})
}

// A11: who left its session is a leftover like any other.
func TestNetsNameLeftovers(t *testing.T) {
	eachNet(t, func(t *testing.T, host *Host) {
		t.Helper()
		for _, c := range []struct{ name, command, left string }{
			{"A11", `(setsid sleep 431 >/dev/null 2>&1 &); echo up`, "sleep 431"},
			{"daemon", `env -i setsid -f sleep 432 >/dev/null 2>&1`, "sleep 432"},
			{"child", `sleep 433 >/dev/null 2>&1 &`, "sleep 433"},
		} {
			t.Run(c.name, func(t *testing.T) {
				p, _ := start(t, host, c.command)
				require.Zero(t, finish(t, p).Code)
				begun := time.Now()
				left, err := p.Tree().Lingering(50 * time.Millisecond)
				require.NoError(t, err)
				require.Less(t, time.Since(begun), 30*time.Second)
				require.Len(t, left, 1)
				requireCommand(t, left[0], c.left)
				require.True(t, p.Tree().Left())
				p.Tree().Stop(time.Second)
				require.False(t, alive(left[0].PID))
				require.False(t, p.Tree().Left())
			})
		}
		t.Run("gone by itself", func(t *testing.T) {
			gate := filepath.Join(t.TempDir(), "gate")
			require.NoError(t, unix.Mkfifo(gate, 0o600))
			p, _ := start(t, host, `setsid -f bash -c 'read -r <"$0"' '`+gate+`' >/dev/null 2>&1`)
			finish(t, p)
			left, err := p.Tree().Lingering(50 * time.Millisecond)
			require.NoError(t, err)
			require.Len(t, left, 1)
			require.NoError(t, os.WriteFile(gate, []byte("\n"), 0o600))
			require.Eventually(t, func() bool { return !p.Tree().Left() }, 20*time.Second, time.Millisecond)
		})
		t.Run("of two, each its own", func(t *testing.T) {
			t.Setenv(strings.TrimSuffix(markVariable, "="), "a-1")
			a, _ := start(t, host, `setsid -f sleep 434 >/dev/null 2>&1`)
			t.Setenv(strings.TrimSuffix(markVariable, "="), "a-2")
			b, _ := start(t, host, `setsid -f sleep 435 >/dev/null 2>&1`)
			for _, c := range []struct {
				p    *Process
				left string
			}{{a, "sleep 434"}, {b, "sleep 435"}} {
				finish(t, c.p)
				left, err := c.p.Tree().Lingering(50 * time.Millisecond)
				require.NoError(t, err)
				require.Len(t, left, 1)
				requireCommand(t, left[0], c.left)
			}
			a.Tree().Stop(time.Second)
			require.True(t, b.Tree().Left())
			b.Tree().Stop(time.Second)
		})
	})
}

// requireCommand waits for an exec that may be on its way still.
func requireCommand(t *testing.T, member Member, want string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(member.Command(100), want) }, 20*time.Second, time.Millisecond, want)
}

// Orphans whose tree can't be told are not given to any, and end with the host.
func TestStraysEndWithTheHost(t *testing.T) {
	host, err := NewHost(Config{Net: netSubreaper})
	require.NoError(t, err)
	a, _ := start(t, host, `exec sleep 441`)
	b, out := start(t, host, `env -i setsid -f bash -c 'echo $$ >&3; exec 3>&-; trap "" TERM; sleep 442; sleep 443' 3>&1 >/dev/null 2>&1; exec sleep 444`)
	pid := pidLine(t, out)
	members, err := a.tree.net.members()
	require.NoError(t, err)
	require.Len(t, members, 1)
	for _, p := range []*Process{a, b} {
		p.Stop(time.Second)
		finish(t, p)
		p.Tree().Stop(0)
	}
	require.NoError(t, host.Close())
	require.False(t, alive(pid))
}

// A leader that was reaped while others were looked at is nobody's orphan.
func TestWhoIsGoneIsNoStray(t *testing.T) {
	host := newHostWith(t, netSubreaper)
	p, _ := start(t, host, `exec sleep 445`)
	all, err := scan()
	require.NoError(t, err)
	seen := &pass{sessions: make(map[int][]stat)}
	for _, s := range all {
		if s.pid == p.Pid() {
			s.start -= 2 * youth // it is old enough to have shown whose it is
			seen.all = append(seen.all, s)
			seen.sessions[s.session] = append(seen.sessions[s.session], s)
		}
	}
	require.Len(t, seen.all, 1)
	p.Stop(time.Second)
	finish(t, p)
	require.False(t, p.Tree().Left())
	host.nets.lineage.see(seen)
	require.Empty(t, host.nets.lineage.strays())
}

func TestSignalsByName(t *testing.T) {
	for name, want := range map[string]syscall.Signal{"INT": syscall.SIGINT, "SIGTERM": syscall.SIGTERM, "usr1": syscall.SIGUSR1, "": 0, "SIG": 0, "NOPE": 0, "9": 0} {
		got, ok := SignalByName(name)
		require.Equal(t, want, got, name)
		require.Equal(t, want != 0, ok, name)
	}
}

// A9: the group gets it, as from a terminal; who is reaped gets nothing.
func TestSignalReachesTheGroup(t *testing.T) {
	eachNet(t, func(t *testing.T, host *Host) {
		t.Helper()
		p, out := start(t, host, `trap 'echo int; exit 4' INT; echo up; while :; do sleep 0.02; done`)
		require.Equal(t, "up", line(t, out))
		require.NoError(t, p.Signal(syscall.SIGINT))
		require.Equal(t, "int", line(t, out))
		require.Equal(t, 4, finish(t, p).Code)
		require.ErrorIs(t, p.Signal(syscall.SIGINT), syscall.ESRCH)
	})
}

func TestNetsByName(t *testing.T) {
	_, err := NewHost(Config{Net: "web"})
	require.ErrorContains(t, err, `"web"`)
	host := newHostWith(t, netGroup)
	require.Equal(t, netGroup, host.Net())
	require.NotEmpty(t, host.NetReason())
	require.NoError(t, host.CanLimit(false, false))
	require.ErrorContains(t, host.CanLimit(true, false), "control group")
	_, err = host.Start(Spec{Path: bash(), MemoryMaxBytes: 1 << 20})
	require.ErrorContains(t, err, "control group")
}

func TestNiceChildren(t *testing.T) {
	host := newHost(t)
	own, err := strconv.Atoi(strings.TrimSpace(printed(t, "nice")))
	require.NoError(t, err)
	for _, by := range []int{0, 3, 19} {
		r, w, err := os.Pipe()
		require.NoError(t, err)
		p, err := host.Start(Spec{Path: bash(), Args: []string{"bash", "-c", "nice"}, Env: os.Environ(), Files: []uintptr{0, w.Fd(), 2}, Nice: by})
		require.NoError(t, err)
		require.NoError(t, w.Close())
		out, err := io.ReadAll(r)
		require.NoError(t, err)
		require.NoError(t, r.Close())
		require.Equal(t, strconv.Itoa(min(own+by, 19)), strings.TrimSpace(string(out)))
		finish(t, p)
	}
	require.Equal(t, strconv.Itoa(own), strings.TrimSpace(printed(t, "nice")))
}

func printed(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).Output()
	require.NoError(t, err)
	return string(out)
}
