package journal_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"afoot/registry"
	"afoot/registry/journal"
)

// What was handed over can be opened by another, and taken back nothing of it is lost.
func TestHandOver(t *testing.T) {
	ctx := context.Background()
	path := t.TempDir() + "/journal.db"
	j, err := journal.Open(journal.Config{Path: path})
	require.NoError(t, err)
	_, err = j.Load(ctx)
	require.NoError(t, err)
	for n := range uint64(3) {
		j.Append(registry.CounterRow{Kind: "job", Last: n + 1})
		require.NoError(t, j.HandOver(ctx))
		require.Error(t, j.HandOver(ctx))
		other, err := journal.Open(journal.Config{Path: path})
		require.NoError(t, err)
		m, err := other.Load(ctx)
		require.NoError(t, err)
		require.Equal(t, n+1, m.Counters[0].Last)
		require.NoError(t, other.Close(ctx))

		mark := j.Append(registry.CounterRow{Kind: "other", Last: n + 1})
		waited := make(chan error, 1)
		go func() { waited <- j.Sync(ctx, mark) }()
		select {
		case err := <-waited:
			require.FailNow(t, "it was not written", "%v", err)
		default:
		}
		j.TakeBack()
		j.TakeBack()
		require.NoError(t, <-waited)
		require.NoError(t, j.Check())
	}
	require.NoError(t, j.HandOver(ctx))
	require.NoError(t, j.Close(ctx))
	require.Error(t, j.HandOver(ctx))
}
