package proc

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestForkingChainsAreEnded: who forks and exits faster than anybody can look is
// ended all the same, as a tree and as what is left of one.
func TestForkingChainsAreEnded(t *testing.T) {
	for _, c := range []struct{ name, command string }{
		{"slow, deaf to SIGTERM", `f() { trap "" TERM; sleep 0.0301; f & }; f >/dev/null & echo $$; sleep 361; true`},
		{"fast, deaf to SIGTERM", `f() { trap "" TERM; sleep 0.0031; f & }; f >/dev/null & echo $$; sleep 362; true`},
		{"fast", `f() { sleep 0.0032; f & }; f >/dev/null & echo $$; sleep 363; true`},
	} {
		t.Run(c.name, func(t *testing.T) {
			host := newHost(t)
			p, out := start(t, host, c.command)
			pid := pidLine(t, out)
			p.Stop(200 * time.Millisecond)
			p.Wait()
			_, err := p.Reap()
			require.NoError(t, err)
			p.Tree().Stop(0)
			requireDead(t, host, pid)
		})
	}
	for _, c := range []struct{ name, command string }{
		{"left behind", `f() { sleep 0.0102; f & }; f >/dev/null 2>&1 & echo $$`},
		{"left behind, deaf to SIGTERM", `f() { trap "" TERM; sleep 0.0033; f & }; f >/dev/null 2>&1 & echo $$`},
	} {
		t.Run(c.name, func(t *testing.T) {
			host := newHost(t)
			p, out := start(t, host, c.command)
			pid := pidLine(t, out)
			p.Wait()
			_, err := p.Reap()
			require.NoError(t, err)
			require.NoError(t, syscall.Kill(-pid, 0), "the chain runs")
			p.Tree().Stop(200 * time.Millisecond)
			requireDead(t, host, pid)
		})
	}
}

// requireDead looks often enough for who slips through one look not to slip
// through all.
func requireDead(t *testing.T, host *Host, sid int) {
	t.Helper()
	for range 50 {
		stats, err := host.procs.session(sid)
		require.NoError(t, err)
		for _, s := range stats {
			require.True(t, s.dead, "process %d is left", s.pid)
		}
	}
}
