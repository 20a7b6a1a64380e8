package proc

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOverMemory reads what the kernel would say: its own words, in plain files.
func TestOverMemory(t *testing.T) {
	dir := t.TempDir()
	base, err := os.Open(dir)
	require.NoError(t, err)
	defer func() { require.NoError(t, base.Close()) }()
	require.NoError(t, os.Mkdir(filepath.Join(dir, groupName(1)), 0o700))
	tree := &cgroup{groups: &cgroups{lock: base}, seq: 1}
	require.False(t, tree.overMemory(), "no limit, no file")
	for text, want := range map[string]bool{
		"low 0\nhigh 0\nmax 12\noom 3\noom_kill 0\noom_group_kill 0\n": false,
		"low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 1\n": true,
		"low 0\nhigh 0\nmax 12\noom 3\noom_kill 10\n":                  true,
		"": false,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, groupName(1), "memory.events"), []byte(text), 0o600))
		require.Equal(t, want, tree.overMemory(), text)
	}
	tree.seq = 0
	require.False(t, tree.overMemory(), "given back")
	require.False(t, (&Process{tree: &Tree{net: &group{}}}).OverMemory(), "another net")
}
