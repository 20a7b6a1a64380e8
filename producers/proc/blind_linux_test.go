package proc

import (
	"log/slog"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// hiddenNet has a member, whom looks fail to show or don't find.
type hiddenNet struct {
	err      error
	gone     bool
	released int
	told     []syscall.Signal
}

func (n *hiddenNet) empty() bool                           { return n.gone }
func (n *hiddenNet) release()                              { n.released++ }
func (n *hiddenNet) members() ([]Member, error)            { return nil, n.err }
func (n *hiddenNet) signal(sig syscall.Signal, _ []Member) { n.told = append(n.told, sig) }

// A tree of which nobody was found, and which the kernel does not call empty, is kept.
func TestLingeringGivesBackOnlyWhatIsEmpty(t *testing.T) {
	for _, err := range []error{nil, syscall.EMFILE} {
		synctest.Test(t, func(t *testing.T) {
			n := &hiddenNet{err: err}
			tree := &Tree{net: n}
			left, told := tree.Lingering(time.Millisecond)
			require.Empty(t, left)
			require.Error(t, told)
			require.Zero(t, n.released)
			n.gone = true
			left, told = tree.Lingering(time.Millisecond)
			require.Empty(t, left)
			require.NoError(t, told)
			require.Equal(t, 1, n.released)
		})
	}
}

// A stop that can't look does not last for ever, does not say that it has succeeded, and
// can be gone on with.
func TestAStopThatCanNotLookKeepsTheTree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &hiddenNet{err: syscall.EMFILE}
		tree, e := &Tree{net: n, logger: slog.New(slog.DiscardHandler)}, new(Escalation)
		for range 2 {
			begun := time.Now()
			require.False(t, tree.StopUnless(nil, time.Second, e))
			require.Greater(t, time.Since(begun), blindStop)
			require.Less(t, time.Since(begun), 2*blindStop)
			require.Zero(t, n.released)
		}
		require.Equal(t, []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL}, n.told[:2])
		n.err = nil
		require.True(t, tree.StopUnless(nil, time.Second, e))
		require.Equal(t, 1, n.released)
	})
}
