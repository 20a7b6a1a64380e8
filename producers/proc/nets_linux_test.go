package proc

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
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
				require.Less(t, took, grace+2*time.Second)
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
				require.Less(t, time.Since(begun), time.Second)
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
			p, _ := start(t, host, `setsid -f bash -c 'until [ -e "$0" ]; do read -t 0.01; done <> <(:)' '`+gate+`' >/dev/null 2>&1`)
			finish(t, p)
			left, err := p.Tree().Lingering(50 * time.Millisecond)
			require.NoError(t, err)
			require.Len(t, left, 1)
			require.NoError(t, os.WriteFile(gate, nil, 0o600))
			require.Eventually(t, func() bool { return !p.Tree().Left() }, 5*time.Second, time.Millisecond)
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
	require.Eventually(t, func() bool { return strings.Contains(member.Command(100), want) }, 5*time.Second, time.Millisecond, want)
}

// K3, K4: a storm of orphans leaves no zombie and takes nobody's exit, and what it took
// is given back.
func TestNetsReapOrphansOnly(t *testing.T) {
	eachNet(t, func(t *testing.T, host *Host) {
		t.Helper()
		settled := func() (fds, goroutines, groups int) {
			return descriptors(t), runtime.NumGoroutine(), countGroups(t, host)
		}
		p, _ := start(t, host, "true")
		finish(t, p)
		fds, goroutines, groups := settled()
		const each = 50
		var work sync.WaitGroup
		for lane := range 4 {
			work.Go(func() {
				for i := range each {
					want := (lane*each + i) % 200
					command := fmt.Sprintf(`(sleep .1 & exec sleep .05) & setsid sleep .1 & (setsid true &); exit %d`, want)
					if i%10 == 0 {
						// Somebody else in this program, with a session of its own too.
						cmd := exec.Command(bash(), "-c", command)
						cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: i%20 == 0}
						_ = cmd.Run()
						if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != want {
							t.Errorf("os/exec: %v, not %d", cmd.ProcessState, want)
						}
						continue
					}
					p, err := host.Start(Spec{Path: bash(), Args: []string{"bash", "-c", command}, Env: os.Environ()})
					if err != nil {
						t.Error(err)
						return
					}
					p.Wait()
					exit, err := p.Reap()
					if err != nil || exit.Code != want {
						t.Errorf("%v %v, not %d", exit, err, want)
					}
					p.Tree().Stop(0)
				}
			})
		}
		work.Wait()
		require.Eventually(t, func() bool { return len(zombies(t)) == 0 }, 5*time.Second, 5*time.Millisecond, "%v", zombies(t))
		for begun := time.Now(); ; <-time.After(5 * time.Millisecond) {
			f, g, n := settled()
			if f <= fds && g <= goroutines && n <= max(groups, keptGroups) {
				break
			}
			require.Less(t, time.Since(begun), 5*time.Second, "descriptors %d, were %d; goroutines %d, were %d; groups %d, were %d", f, fds, g, goroutines, n, groups)
		}
		if host.lineageSize() > 0 {
			host.procs.look()
			require.Zero(t, host.lineageSize())
		}
	})
}

// lineageSize counts what the host remembers of trees.
func (h *Host) lineageSize() int {
	l := h.nets.lineage
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.trees) + len(l.known)
}

func countGroups(t *testing.T, host *Host) int {
	t.Helper()
	if host.nets.cgroups == nil {
		return 0
	}
	entries, err := filepath.Glob(filepath.Join(host.nets.cgroups.dir(), "t*"))
	require.NoError(t, err)
	return len(entries)
}

// zombies lists this program's dead children.
func zombies(t *testing.T) (pids []int) {
	t.Helper()
	all, err := scan()
	require.NoError(t, err)
	for _, s := range all {
		if s.parent == os.Getpid() && s.dead {
			pids = append(pids, s.pid)
		}
	}
	return pids
}

// A child that nobody waits for yet is its starter's, with a session of its own too.
func TestReaperLeavesOthersAlone(t *testing.T) {
	eachNet(t, func(t *testing.T, host *Host) {
		t.Helper()
		for _, setsid := range []bool{false, true} {
			cmd := exec.Command(bash(), "-c", "exit 9")
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: setsid}
			require.NoError(t, cmd.Start())
			other, err := NewHost(Config{Net: host.Net()})
			require.NoError(t, err)
			p, _ := start(t, other, "exit 8")
			requireGone(t, cmd.Process.Pid, p.Pid())
			for range 5 {
				host.nets.sweep()
			}
			var exit *exec.ExitError
			require.ErrorAs(t, cmd.Wait(), &exit)
			require.Equal(t, 9, exit.ExitCode())
			require.Equal(t, 8, finish(t, p).Code)
			require.NoError(t, other.Close())
			require.NoError(t, unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
		}
	})
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
	_ = alive(pid) // it may have been seen below its parent, in time
	require.NoError(t, host.Close())
	require.False(t, alive(pid))
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

// Who is not in the group is no member, whatever its number says.
func TestStrangersAreNoMembers(t *testing.T) {
	eachNet(t, func(t *testing.T, host *Host) {
		t.Helper()
		c := host.nets.cgroups
		if c == nil {
			t.Skip("no control groups")
		}
		p, out := start(t, host, `echo up; exec sleep 451`)
		line(t, out)
		stranger := exec.Command("sleep", "452")
		require.NoError(t, stranger.Start())
		name := groupName(p.tree.net.(*cgroup).current())
		_, ok, err := c.member(p.Pid(), name)
		require.NoError(t, err)
		require.True(t, ok)
		_, ok, err = c.member(stranger.Process.Pid, name)
		require.NoError(t, err)
		require.False(t, ok)
		require.NoError(t, stranger.Process.Kill())
		_ = stranger.Wait()
		p.Stop(time.Second)
		finish(t, p)
	})
}

// Whatever a tree does to its group, no other one notices, and groups below it go too.
func TestWhatIsDoneToAGroupTroublesNoOther(t *testing.T) {
	host, err := NewHost(Config{Net: netCgroup})
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { require.NoError(t, host.Close()) })
	dir := host.nets.cgroups.dir()
	for _, tamper := range []string{
		`mkdir "$G/below" "$G/below/more"; echo $$ >"$G/below/more/cgroup.procs"; sleep 461 & exec sleep 461`,
		`mkdir "$G/below"; echo threaded >"$G/below/cgroup.type"`,
		`echo threaded >"$G/cgroup.type"`,
		`(sleep 0.05; exec true) & echo 1 >"$G/cgroup.freeze"`,
		`echo 1 >"$G/cgroup.kill"; sleep 462`,
		`mkdir "$G/below"; echo 1 >"$G/below/cgroup.kill"; echo 1 >"$G/cgroup.max.descendants"`,
	} {
		p, _ := start(t, host, `G="`+dir+`/../$(grep -o 'afoot-.*' /proc/self/cgroup)"; `+tamper)
		if strings.Contains(tamper, "sleep 461") || strings.Contains(tamper, "freeze") {
			p.Stop(100 * time.Millisecond)
		}
		p.Wait()
		_, err := p.Reap()
		require.NoError(t, err)
		p.Tree().Stop(0)
		require.False(t, p.Tree().Left())
		for range 2 * spareGroups {
			next, out := start(t, host, "echo fine")
			require.Equal(t, "fine", line(t, out), tamper)
			finish(t, next)
		}
	}
	require.Eventually(t, func() bool { return countGroups(t, host) <= spareGroups+2 }, 5*time.Second, time.Millisecond)
}

// Groups of dead hosts are removed, and who is left in them is ended; those of living
// hosts are left alone.
func TestStaleGroupsAreRemoved(t *testing.T) {
	host, err := NewHost(Config{Net: netCgroup})
	if err != nil {
		t.Skip(err)
	}
	home := host.nets.cgroups.home.dir
	stale, full := filepath.Join(home, basePrefix+"1-test"), filepath.Join(home, basePrefix+"2-test")
	for _, dir := range []string{stale, stale + "/t1", full, full + "/t1"} {
		require.NoError(t, os.Mkdir(dir, 0o755))
	}
	dir, err := os.Open(full + "/t1")
	require.NoError(t, err)
	left := exec.Command("sleep", "471")
	left.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	require.NoError(t, left.Start())
	require.NoError(t, dir.Close())
	p, out := start(t, host, "echo up; exec sleep 472")
	line(t, out)
	other, err := NewHost(Config{Net: netCgroup})
	require.NoError(t, err)
	require.NoDirExists(t, stale)
	require.NoDirExists(t, full)
	require.Error(t, left.Wait())
	require.Equal(t, syscall.SIGKILL, left.ProcessState.Sys().(syscall.WaitStatus).Signal())
	require.DirExists(t, host.nets.cgroups.dir())
	require.True(t, alive(p.Pid()))
	p.Stop(time.Second)
	finish(t, p)
	base := host.nets.cgroups.dir()
	require.NoError(t, other.Close())
	require.NoError(t, host.Close())
	require.NoDirExists(t, base)
}

func TestHomesIn(t *testing.T) {
	//nolint:dupword // so it is written
	const line = "41 31 0:38 %s %s rw,relatime shared:5 - cgroup2 cgroup2 rw\n"
	//nolint:dupword // so it is written
	const v1 = "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
	for _, c := range []struct {
		mounts, groups string
		want           []home
		says           string
	}{
		{v1 + fmt.Sprintf(line, "/", "/sys/fs/cgroup/unified"), "4:memory:/x\n0::/\n", []home{{"/sys/fs/cgroup/unified", "/"}}, ""},
		{fmt.Sprintf(line, "/", "/sys/fs/cgroup"), "0::/user.slice/a b\n", []home{{"/sys/fs/cgroup/user.slice/a b", "/user.slice/a b"}}, ""},
		{fmt.Sprintf(line, "/docker/abc", "/a\\040b"), "0::/docker/abc/d\n", []home{{"/a b/d", "/docker/abc/d"}}, ""},
		{fmt.Sprintf(line, "/docker/abc", "/m"), "0::/docker/abcd\n", nil, "not in what is mounted"},
		{fmt.Sprintf(line, "/", "/m"), "0::/../x\n", []home{{"/x", "/../x"}}, ""},
		{v1, "0::/\n", nil, "not mounted"},
		{v1, "4:memory:/x\n", nil, "no control groups of version 2"},
	} {
		got, err := homesIn(c.mounts, c.groups)
		if c.says != "" {
			require.ErrorContains(t, err, c.says)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.want, got)
	}
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
