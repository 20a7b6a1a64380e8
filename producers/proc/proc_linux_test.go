package proc

import (
	"io"
	"os"
	"runtime/pprof"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestExitFacts(t *testing.T) {
	host := newHost(t)
	for _, c := range []struct {
		command string
		want    Exit
	}{
		{"exit 0", Exit{}},
		{"exit 7", Exit{Code: 7}},
		{"exit 255", Exit{Code: 255}},
		{"false | cat", Exit{}},
		{"kill -9 $$", Exit{Signal: syscall.SIGKILL}},
		{"kill -TERM $$", Exit{Signal: syscall.SIGTERM}},
		{"ulimit -c 0; kill -SEGV $$", Exit{Signal: syscall.SIGSEGV}},
		{"bash -c 'ulimit -c 0; kill -SEGV $$'; exit $?", Exit{Code: 139}},
	} {
		p, _ := start(t, host, c.command)
		p.Wait()
		exit, err := p.Reap()
		require.NoError(t, err, c.command)
		require.Equal(t, c.want, exit, c.command)
		require.False(t, alive(p.Pid()))
	}
}

func TestOnExitIsCalledOnceWhoeverLooks(t *testing.T) {
	host := newHost(t)
	for i := range 200 {
		exits := make(chan struct{}, 2)
		p, err := host.Start(Spec{
			Path: bash(), Args: []string{"bash", "-c", "exit 5"}, OnExit: func() { exits <- struct{}{} },
		})
		require.NoError(t, err)
		if i%2 == 0 {
			<-exits // the watch sees it, nobody is in Wait
		}
		p.Wait()
		if i%2 == 1 {
			<-exits
		}
		exit, err := p.Reap()
		require.NoError(t, err)
		require.Equal(t, 5, exit.Code)
		require.Empty(t, exits)
	}
	require.Empty(t, host.exits.alive)
}

func TestStatusTakenByAnotherIsSaid(t *testing.T) {
	p, _ := start(t, newHost(t), "exit 3")
	var status syscall.WaitStatus
	_, err := syscall.Wait4(p.Pid(), &status, 0, nil)
	require.NoError(t, err)
	p.Wait()
	_, err = p.Reap()
	require.ErrorIs(t, err, ErrLost)
}

func TestStartFailsWithTheErrno(t *testing.T) {
	host := newHost(t)
	for _, c := range []struct {
		spec Spec
		want error
	}{
		{Spec{Path: "/no/such"}, syscall.ENOENT},
		{Spec{Path: bash(), Dir: "/no/such"}, syscall.ENOENT},
		{Spec{Path: "/etc/passwd"}, syscall.EACCES},
		{Spec{Path: bash(), Args: []string{"bash", strings.Repeat("x", 1<<18)}}, syscall.E2BIG},
	} {
		_, err := host.Start(c.spec)
		require.ErrorIs(t, err, c.want)
	}
}

func TestChildIsAloneInItsSession(t *testing.T) {
	p, out := start(t, newHost(t), `echo $$; ps -o sid=,pgid=,tty= -p $$; ls -l /proc/self/fd | wc -l`)
	pid := line(t, out)
	require.Equal(t, []string{pid, pid, "?"}, strings.Fields(line(t, out)))
	require.Equal(t, "5", line(t, out), "a heading, 0, 1, 2 and the directory's own")
	p.Wait()
	_, err := p.Reap()
	require.NoError(t, err)
}

func TestWaitingHoldsNoThread(t *testing.T) {
	host := newHost(t)
	const n = 60
	before := pprof.Lookup("threadcreate").Count()
	processes := make([]*Process, n)
	done := make(chan struct{})
	for i := range processes {
		processes[i], _ = start(t, host, "exec sleep 401")
		go func() { processes[i].Wait(); done <- struct{}{} }()
	}
	require.Less(t, pprof.Lookup("threadcreate").Count()-before, n/2)
	for _, p := range processes {
		require.NoError(t, syscall.Kill(p.Pid(), syscall.SIGKILL))
	}
	for range processes {
		<-done
	}
	for _, p := range processes {
		exit, err := p.Reap()
		require.NoError(t, err)
		require.Equal(t, syscall.SIGKILL, exit.Signal)
		require.True(t, p.Tree().net.empty())
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(entries)
}

func TestNoDescriptorStays(t *testing.T) {
	host := newHost(t)
	before := descriptors(t)
	for range 20 {
		p, out := start(t, host, "echo hi")
		_, err := io.ReadAll(out)
		require.NoError(t, err)
		p.Wait()
		_, err = p.Reap()
		require.NoError(t, err)
		_, err = host.Start(Spec{Path: "/no/such"})
		require.Error(t, err)
	}
	// The test's own 20 read ends close at its end.
	require.Equal(t, before+20, descriptors(t))
}

func TestStopReachesEveryGroupOfTheSession(t *testing.T) {
	const grace = 300 * time.Millisecond // where nobody needs it
	host := newHost(t)
	for _, c := range []struct {
		name, command string
		pids          int
		grace, least  time.Duration
		exit          Exit
	}{
		{"A4 in place", `echo $$; exec sleep 301`, 1, time.Minute, 0, Exit{Signal: syscall.SIGTERM}},
		{"A4 sequence", `sleep 302 & echo $!; sleep 303 & echo $!; echo $$; wait; echo after`, 3, time.Minute, 0, Exit{Signal: syscall.SIGTERM}},
		{"A4 pipe", `sleep 304 | (echo $BASHPID; exec cat)`, 1, time.Minute, 0, Exit{Signal: syscall.SIGTERM}},
		{"A4 subshell", `(echo $BASHPID; sleep 305; true); true`, 1, time.Minute, 0, Exit{Signal: syscall.SIGTERM}},
		{"A5", `trap 'exit 0' TERM; bash -c 'trap "" TERM; echo $$; exec sleep 306' & wait`, 1, 3 * time.Second, 3 * time.Second, Exit{}},
		{"leader ignores TERM", `trap "" TERM; echo $$; sleep 320; sleep 320`, 1, grace, grace, Exit{Signal: syscall.SIGKILL}},
		{"job control", `set -m; sleep 321 & echo $!; (trap "" TERM; echo $BASHPID; sleep 322; sleep 322) & wait`, 2, grace, grace, Exit{Signal: syscall.SIGTERM}},
		{"stopped", `sleep 323 & kill -STOP $!; until grep -q "^State:.T" /proc/$!/status; do :; done; echo $!; wait`, 1, grace, grace, Exit{Signal: syscall.SIGTERM}},
		{"born during the stop", `trap 'for i in 1 2 3 4 5; do sleep 32$i & done; wait' TERM; echo $$; sleep 326 & wait; wait`, 1, grace, grace, Exit{Signal: syscall.SIGKILL}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, out := start(t, host, c.command)
			pids := []int{p.Pid()}
			for range c.pids {
				pids = append(pids, pidLine(t, out))
			}
			waited := make(chan struct{})
			go func() { p.Wait(); close(waited) }()
			begun := time.Now()
			p.Stop(c.grace)
			took := time.Since(begun)
			for _, pid := range pids {
				require.False(t, alive(pid), "%d lives when Stop is over", pid)
			}
			require.GreaterOrEqual(t, took, c.least)
			require.Less(t, took, c.least+30*time.Second)
			<-waited
			exit, err := p.Reap()
			require.NoError(t, err)
			require.Equal(t, c.exit, exit)
			p.Tree().Stop(0)
			require.NotContains(t, line(t, out), "after")
		})
	}
}

func TestLingeringCountsWhoStays(t *testing.T) {
	const patience = 50 * time.Millisecond
	host := newHost(t)
	for _, c := range []struct {
		name, command string
		pids          int
		patience      time.Duration
		commands      []string
	}{
		{"none", `true`, 0, time.Hour, nil},
		{"one", `sleep 331 & echo $!`, 1, patience, []string{"sleep 331"}},
		{"silent one", `sleep 332 >/dev/null 2>&1 & echo $!`, 1, patience, []string{"sleep 332"}},
		{"own group", `set -m; sleep 333 >/dev/null 2>&1 & echo $!`, 1, patience, []string{"sleep 333"}},
		{"gone at once", `sleep 0.01 & echo $!`, 1, time.Hour, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, out := start(t, host, c.command)
			p.Wait()
			_, err := p.Reap()
			require.NoError(t, err)
			left, err := p.Tree().Lingering(c.patience)
			require.NoError(t, err)
			var commands []string
			for _, member := range left {
				commands = append(commands, member.Command(100))
			}
			p.Tree().Stop(time.Second)
			p.Tree().Stop(time.Second)
			require.Len(t, commands, len(c.commands))
			for i, command := range commands {
				// It may be between its fork and its exec still.
				require.Contains(t, command, c.commands[i])
			}
			for range c.pids {
				require.False(t, alive(pidLine(t, out)))
			}
		})
	}
}

// TestStopSendsTermFirst holds that no grace is too short, and no look at the
// processes too slow, for a handler to run.
func TestStopSendsTermFirst(t *testing.T) {
	host := newHost(t)
	p, out := start(t, host, `trap 'exit 6' TERM; echo up; sleep 337 & wait`)
	line(t, out)
	slow := &slowNet{net: p.tree.net}
	p.tree.net = slow
	p.Stop(100 * time.Millisecond)
	p.Wait()
	_, err := p.Reap()
	require.NoError(t, err)
	require.Equal(t, syscall.SIGTERM, slow.signals[0])
}

// slowNet is a net whose first look takes longer than the grace.
type slowNet struct {
	net
	signals []syscall.Signal
	looked  bool
}

func (n *slowNet) members() ([]Member, error) {
	if !n.looked {
		<-time.After(150 * time.Millisecond)
	}
	n.looked = true
	return n.net.members()
}

func (n *slowNet) signal(sig syscall.Signal, members []Member) {
	n.signals = append(n.signals, sig)
	n.net.signal(sig, members)
}

// TestStopWithoutDescriptors can list nobody at first and still ends the tree.
func TestStopWithoutDescriptors(t *testing.T) {
	host := newHost(t)
	p, out := start(t, host, `echo up; sleep 338 & wait`)
	line(t, out)
	p.tree.net = &blindNet{net: p.tree.net, looks: 3}
	p.Stop(10 * time.Second)
	p.Wait()
	exit, err := p.Reap()
	require.NoError(t, err)
	require.Equal(t, syscall.SIGTERM, exit.Signal)
}

// TestStrangersAreNotSignalled gives a tree the number of a session that is not
// its own, as after a reuse.
func TestStrangersAreNotSignalled(t *testing.T) {
	host := newHost(t)
	stranger, out := start(t, host, `sleep 341 & echo $!; wait`)
	child := pidLine(t, out)
	reused := func(known []Member) *Tree {
		g := newGroup(host, stranger.Pid(), -1, &stranger.reaped)
		g.known, g.looked = known, true
		return &Tree{net: g, logger: host.logger}
	}
	stranger.reaped.Store(true)
	members, err := reused(nil).net.members()
	require.NoError(t, err)
	require.Empty(t, members)
	require.False(t, reused(nil).Left(), "who has the number now proves that it was free")
	reused(nil).Stop(0)
	require.True(t, alive(child), "its leader has our number, and it is not ours")

	requireEndOf(t, stranger.Pid())
	reused([]Member{{PID: child, start: 1}}).Stop(0)
	require.True(t, alive(child), "the number is known, its start is not")
	require.NoError(t, Member{PID: child, start: 1}.signal(syscall.SIGKILL))
	require.True(t, alive(child))
	endByPid(t, child)
}

func requireEndOf(t *testing.T, pid int) {
	t.Helper()
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	_, err := reap(pid)
	require.NoError(t, err)
}

func TestParseStat(t *testing.T) {
	tail := " 1 77 88 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 %s 0 4711 0 0"
	for _, c := range []struct {
		line string
		want stat
		ok   bool
	}{
		{"5 (sh) S" + strings.Replace(tail, "%s", "1", 1), stat{5, 1, 77, 88, 4711, false, false}, true},
		{"5 (a) Z (b) R" + strings.Replace(tail, "%s", "1", 1), stat{5, 1, 77, 88, 4711, false, false}, true},
		{"5 (\n) Z" + strings.Replace(tail, "%s", "1", 1), stat{5, 1, 77, 88, 4711, true, false}, true},
		{"5 (sh) Z" + strings.Replace(tail, "%s", "3", 1), stat{5, 1, 77, 88, 4711, false, false}, true},
		{"5 (sh) X" + strings.Replace(tail, "%s", "1", 1), stat{5, 1, 77, 88, 4711, true, false}, true},
		{"5 (sh) R 1 77 88 0 -1 4194564 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0", stat{5, 1, 77, 88, 4711, false, true}, true},
		{"5 (sh) R 1 77 88 0 -1 4194564 0 0 0 0 0 0 0 0 20 0 2 0 4711 0 0", stat{5, 1, 77, 88, 4711, false, false}, true},
		{"", stat{}, false},
		{"5 (sh) S 1 2", stat{}, false},
		{"5 sh S", stat{}, false},
	} {
		got, ok := parseStat([]byte(c.line))
		require.Equal(t, c.ok, ok, c.line)
		if ok {
			require.Equal(t, c.want, got, c.line)
		}
	}
}
