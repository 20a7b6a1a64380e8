package journal

import (
	"io/fs"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPeekReadsAndChangesNothing(t *testing.T) {
	path := kept(t)
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	m, err := Peek(path)
	require.NoError(t, err)
	require.Len(t, m.Tasks, 300)
	require.Equal(t, typical(1).Snapshot.ID, m.Tasks[0].Snapshot.ID)
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, fingerprint(string(before)), fingerprint(string(after)))
	require.NoError(t, os.WriteFile(path, []byte("x"), 0o600))
	_, err = Peek(path)
	require.Error(t, err)
	_, err = Peek(path + "-none")
	require.ErrorIs(t, err, fs.ErrNotExist)
}
