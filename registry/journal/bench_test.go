package journal

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"afoot/registry"
)

// BenchmarkSync is a lone Append and Sync, as a start or an end has it.
func BenchmarkSync(b *testing.B) {
	for name, full := range map[string]bool{"normal": false, "full": true} {
		b.Run(name, func(b *testing.B) {
			j := opened(b, Config{Path: at(b), Full: full})
			r := typical(1)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				r.Snapshot.ID = registry.NewID("bash", uint64(i%1000+1))
				if err := j.Sync(b.Context(), j.Append(r, registry.CounterRow{Kind: "bash", Last: uint64(i)})); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(j.Stats().Took.Nanoseconds())/float64(b.N), "ns/commit")
			b.ReportMetric(float64(j.Stats().Longest.Microseconds()), "longest-us")
		})
	}
}

// BenchmarkCrowd is many at once: they share transactions.
func BenchmarkCrowd(b *testing.B) {
	j := opened(b, Config{Path: at(b)})
	var next atomic.Uint64
	b.SetParallelism(64)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := j.Sync(b.Context(), j.Append(typical(next.Add(1)%5000))); err != nil {
				b.Error(err)
			}
		}
	})
	b.ReportMetric(float64(j.Stats().Rows)/float64(j.Stats().Commits), "rows/commit")
}

// BenchmarkAppend is what a caller with a lock held pays.
func BenchmarkAppend(b *testing.B) {
	j := opened(b, Config{Path: at(b)})
	var r registry.Row = typical(1)
	b.ReportAllocs()
	for b.Loop() {
		j.Append(r)
	}
}

// BenchmarkWritten is Sync of what is written.
func BenchmarkWritten(b *testing.B) {
	j := opened(b, Config{Path: at(b)})
	mark := j.Append(task(1))
	require.NoError(b, j.Sync(b.Context(), mark))
	for b.Loop() {
		_ = j.Sync(b.Context(), mark)
	}
}

// BenchmarkOpen is what the journal adds to the start of the daemon.
func BenchmarkOpen(b *testing.B) {
	path := at(b)
	j, err := Open(Config{Path: path})
	require.NoError(b, err)
	for n := range uint64(1000) {
		j.Append(typical(n + 1))
	}
	shut(b, j)
	for b.Loop() {
		j, err := Open(Config{Path: path})
		require.NoError(b, err)
		require.Len(b, memory(b, j).Tasks, 1000)
		shut(b, j)
	}
}
