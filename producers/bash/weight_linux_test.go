package bash

import (
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(entries)
}

// looking counts the goroutines of a look that is repeated.
const looking = 3

func heap() int {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc + stats.StackInuse)
}

// requireSettles waits until a count that is lowered elsewhere is what it should
// be.
func requireSettles(t *testing.T, want int, count func() int) {
	t.Helper()
	require.Eventually(t, func() bool { return count() <= want }, 20*time.Second, time.Millisecond)
}

func TestAnEndedRunWeighsLittle(t *testing.T) {
	stand := newStand(t)
	warm := stand.run("echo hi")
	warm.end()
	fds, goroutines, before := descriptors(t), runtime.NumGoroutine(), heap()
	const n = 300
	runs := make([]*run, n)
	for i := range runs {
		task := stand.run("echo hi; exit 3")
		task.end()
		runs[i] = task.run
	}
	requireSettles(t, goroutines+looking, runtime.NumGoroutine)
	const ahead = 5 // files made ahead, and the directory that is looked into
	requireSettles(t, fds+ahead, func() int { return descriptors(t) })
	each := (heap() - before) / n
	t.Logf("an ended run weighs %d bytes", each)
	require.Less(t, each, 1024)
	runtime.KeepAlive(runs)
}

func TestARunningRunWeighsLittle(t *testing.T) {
	stand := newStand(t)
	for _, c := range []struct {
		fields     fields
		goroutines int
		n, bytes   int
	}{
		{fields{}, 1, 100, 12 << 10},
		// More of them, since what the ones before have left is used again.
		{fields{"streams": "split", "stdin": "open"}, 2, 300, 16 << 10},
	} {
		c.fields["command"] = "exec sleep 601"
		stand.run("echo hi").end()
		before, goroutines := heap(), runtime.NumGoroutine()
		tasks := make([]*task, c.n)
		for i := range tasks {
			tasks[i] = stand.start(c.fields)
		}
		const net = 2 // those of the net beside them
		requireSettles(t, goroutines+c.goroutines*c.n+net+looking, runtime.NumGoroutine)
		each := (heap() - before) / c.n
		t.Logf("a running run of %v weighs %d bytes", c.fields, each)
		for _, task := range tasks {
			require.NoError(t, task.Cancel(""))
		}
		for _, task := range tasks {
			task.end()
		}
		require.Less(t, each, c.bytes)
		requireSettles(t, goroutines+looking, runtime.NumGoroutine)
	}
}
