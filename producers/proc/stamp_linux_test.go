package proc

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Of several trees at once each has its own, whoever hides.
func TestStampsTellTreesApart(t *testing.T) {
	eachNet(t, func(t *testing.T, host *Host) {
		t.Helper()
		const trees, daemons = 4, 3
		pids := make([][]int, trees)
		processes := make([]*Process, trees)
		for i := range trees {
			command := strings.Repeat(`env -i setsid -f bash -c 'trap "" TERM; echo $$ >&3; exec 3>&-; exec sleep 491' 3>&1 >/dev/null 2>&1 </dev/null; `, daemons)
			p, out := start(t, host, command+`sleep 492; :`)
			for range daemons {
				pids[i] = append(pids[i], pidLine(t, out))
			}
			processes[i] = p
		}
		for i, p := range processes {
			p.Stop(50 * time.Millisecond)
			finish(t, p)
			p.Tree().Stop(0)
			for j := range trees {
				for _, pid := range pids[j] {
					require.Equal(t, j > i, alive(pid), "tree %d after the end of tree %d", j, i)
				}
			}
		}
	})
}

// Whose stamp nobody has any more is ended when no tree is left, and not before.
func TestStraysEndWithTheLastTree(t *testing.T) {
	host := newHostWith(t, netSubreaper)
	// They hide before they are orphans: a look must not see whose they are.
	quiet := func() (p *Process, out *bufio.Reader, gate string) {
		gate = filepath.Join(t.TempDir(), "gate")
		require.NoError(t, unix.Mkfifo(gate, 0o600))
		p, out = start(t, host, `read -r <'`+gate+`'; env -i bash -c 'ulimit -S -R unlimited; exec setsid -f bash -c "$0"' `+
			`'trap "" TERM; echo $$ >&3; exec 3>&-; exec sleep 493' 3>&1 >/dev/null 2>&1 </dev/null; exec sleep 494`)
		return p, out, gate
	}
	a, out, gate := quiet()
	b, other, next := quiet()
	// One that is born while there is one tree alone is known to be its, and one after
	// the other, as an orphan is what makes the host look.
	require.NoError(t, os.WriteFile(gate, []byte("\n"), 0o600))
	pids := []int{pidLine(t, out)}
	require.NoError(t, os.WriteFile(next, []byte("\n"), 0o600))
	pids = append(pids, pidLine(t, other))
	for _, p := range []*Process{a, b} {
		require.True(t, alive(pids[0]))
		require.True(t, alive(pids[1]))
		p.Stop(50 * time.Millisecond)
		finish(t, p)
		p.Tree().Stop(0)
	}
	requireGone(t, pids...)
	require.Eventually(t, func() bool { return len(zombies(t)) == 0 }, 20*time.Second, time.Millisecond)
}

// The program itself, and what else it starts, bears no stamp.
func TestStampsAreForTreesAlone(t *testing.T) {
	var before, after unix.Rlimit
	require.NoError(t, unix.Prlimit(0, limitOfStamps, nil, &before))
	host := newHostWith(t, netSubreaper)
	p, out := start(t, host, `echo up; exec sleep 495`)
	line(t, out)
	stamp, ok := stampOf(p.Pid())
	require.True(t, ok)
	require.True(t, host.nets.lineage.stamps.own(stamp))
	read, err := readStamp(p.Pid())
	require.NoError(t, err)
	require.Equal(t, stamp, read)
	var limit unix.Rlimit
	require.NoError(t, unix.Prlimit(p.Pid(), limitOfStamps, nil, &limit))
	require.Equal(t, before.Max, limit.Max)
	_, ok = stampOf(os.Getpid())
	require.False(t, ok)
	other := exec.Command("sleep", "496")
	require.NoError(t, other.Start())
	_, ok = stampOf(other.Process.Pid)
	require.False(t, ok)
	_, err = readStamp(other.Process.Pid)
	require.Error(t, err)
	require.NoError(t, other.Process.Kill())
	_ = other.Wait()
	_, err = host.Start(Spec{Path: "/no/such"})
	require.Error(t, err)
	require.NoError(t, unix.Prlimit(0, limitOfStamps, nil, &after))
	require.Equal(t, before, after)
	p.Stop(time.Second)
	finish(t, p)
	p.Tree().Stop(0)
	require.False(t, host.nets.lineage.busy())
}
