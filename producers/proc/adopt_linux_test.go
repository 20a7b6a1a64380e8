package proc

import (
	"encoding/json"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// A descriptor that did not come along costs no other tree, unless a leader is behind it.
func TestAMissingDescriptorCostsNoOtherTree(t *testing.T) {
	child := exec.Command("true")
	require.NoError(t, child.Run())
	const missing = 1 << 20
	tree := treeState{Key: 1, PID: child.Process.Pid, Reaped: true, Handle: missing}
	adopt := func(tree treeState) (*Host, error) {
		state, err := json.Marshal(hostState{Net: netGroup, Roll: -1, Trees: 1, Process: []treeState{tree}})
		require.NoError(t, err)
		return NewHost(Config{Adopt: state})
	}
	host, err := adopt(tree)
	require.NoError(t, err)
	back, err := host.AdoptTree(1)
	require.NoError(t, err)
	require.False(t, back.Left())
	back.Stop(0)
	require.NoError(t, host.Close())
	tree.Reaped = false
	_, err = adopt(tree)
	require.ErrorContains(t, err, "descriptor")
}
