package proc

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Who moves to another group is still the leader, of its session, or below it.
func TestWhoLeavesTheGroupIsStopped(t *testing.T) {
	host, err := NewHost(Config{Net: netCgroup})
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { require.NoError(t, host.Close()) })
	const grace = 200 * time.Millisecond
	out := `out() { echo $1 >"` + host.nets.cgroups.home.dir + `/cgroup.procs" || exit 9; }; `
	for name, c := range map[string]struct {
		command string
		pids    int
	}{
		"leader":              {`out $$; echo $$; exec sleep 481`, 1},
		"deaf leader":         {`trap "" TERM; out $$; echo $$; exec sleep 482`, 1},
		"child":               {`bash -c 'trap "" TERM; echo $$; exec sleep 483' & out $!; wait`, 1},
		"leader and sessions": {`out $$; setsid bash -c 'trap "" TERM; echo $$; exec sleep 484' & setsid bash -c 'echo $$; exec sleep 484' & wait`, 2},
		"all but one":         {`sleep 485 & out $$; echo $!; echo $$; exec sleep 485`, 2},
	} {
		t.Run(name, func(t *testing.T) {
			p, text := start(t, host, out+c.command)
			var pids []int
			for range c.pids {
				pids = append(pids, pidLine(t, text))
			}
			// The child prints before it was moved, maybe.
			require.Eventually(t, func() bool {
				for _, pid := range pids {
					if _, in, err := host.nets.cgroups.member(pid, groupName(p.tree.net.(*cgroup).current())); err == nil && !in {
						return true
					}
				}
				return false
			}, 20*time.Second, time.Millisecond)
			begun := time.Now()
			require.True(t, p.StopUnless(t.Context().Done(), grace, new(Escalation)))
			require.Less(t, time.Since(begun), grace+30*time.Second)
			requireGone(t, append(pids, p.Pid())...)
			finish(t, p)
			p.Tree().Stop(0)
			require.False(t, p.Tree().Left())
		})
	}
	t.Run("leftover", func(t *testing.T) {
		p, text := start(t, host, out+`sleep 486 >/dev/null & out $!; echo $!`)
		pid := pidLine(t, text)
		finish(t, p)
		left, err := p.Tree().Lingering(10 * time.Millisecond)
		require.NoError(t, err)
		require.Len(t, left, 1)
		require.True(t, p.Tree().Left())
		p.Tree().Stop(grace)
		require.False(t, alive(pid))
	})
}
