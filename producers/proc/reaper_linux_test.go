package proc

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

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
		require.Eventually(t, func() bool { return len(zombies(t)) == 0 }, 20*time.Second, 5*time.Millisecond, "%v", zombies(t))
		for begun := time.Now(); ; <-time.After(5 * time.Millisecond) {
			f, g, n := settled()
			if f <= fds && g <= goroutines && n <= max(groups, keptGroups) {
				break
			}
			require.Less(t, time.Since(begun), 20*time.Second, "descriptors %d, were %d; goroutines %d, were %d; groups %d, were %d", f, fds, g, goroutines, n, groups)
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
