package proc

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func roster(t *testing.T, host *Host) map[int]Kin {
	t.Helper()
	list, err := ReadRoll(host.Roll())
	require.NoError(t, err)
	byPID := make(map[int]Kin)
	for _, kin := range list {
		require.NotContains(t, byPID, kin.PID)
		byPID[kin.PID] = kin
	}
	return byPID
}

// Who lives is on the roll with its start from its own start on, leftovers as soon as
// they were looked for, and nobody any more when all are gone.
func TestTheRollNamesWhoLives(t *testing.T) {
	for _, net := range []string{netSubreaper, netGroup} {
		t.Run(net, func(t *testing.T) {
			host := newHostWith(t, net)
			require.Empty(t, roster(t, host))
			p, out := start(t, host, `sleep 1234 & echo $!; exit 3`)
			left := pidLine(t, out)
			s, ok := statOf(p.Pid())
			require.True(t, ok)
			require.Equal(t, Kin{PID: p.Pid(), Start: s.start, Leader: true}, roster(t, host)[p.Pid()])
			p.Wait()
			_, err := p.Reap()
			require.NoError(t, err)
			found, err := p.Tree().Lingering(time.Millisecond)
			require.NoError(t, err)
			require.Len(t, found, 1)
			s, ok = statOf(left)
			require.True(t, ok)
			require.Equal(t, map[int]Kin{left: {PID: left, Start: s.start}}, roster(t, host))
			p.Tree().Stop(time.Second)
			require.Empty(t, roster(t, host))
		})
	}
}

// A roll that is opened again knows which rows are taken.
func TestARollGoesOn(t *testing.T) {
	var first, second roll
	require.NoError(t, first.open(nil))
	var a, b, c entries
	first.lead(&a, 101, 5, 7)
	first.lead(&b, 102, 5, 5+1<<20)
	first.learn(&b, []Member{{PID: 103, start: 9}, {PID: 104, start: 9}}, false)
	first.forget(&a)
	file, err := os.OpenFile("/proc/self/fd/"+strconv.Itoa(int(first.file.Fd())), os.O_RDWR, 0)
	require.NoError(t, err)
	first.close()
	require.NoError(t, second.open(file))
	defer second.close()
	second.lead(&c, 105, 8, 8)
	list, err := ReadRoll(second.file)
	require.NoError(t, err)
	require.ElementsMatch(t, []Kin{{PID: 102, Start: 5, Leader: true}, {PID: 103, Start: 9}, {PID: 104, Start: 9}, {PID: 105, Start: 8, Leader: true}}, list)
}
