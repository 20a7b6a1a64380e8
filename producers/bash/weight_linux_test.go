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
	require.Eventually(t, func() bool { return count() <= want }, 5*time.Second, time.Millisecond)
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
	const looking = 3 // goroutines of the look itself
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
	stand.run("echo hi").end()
	before, goroutines := heap(), runtime.NumGoroutine()
	const n = 100
	tasks := make([]*task, n)
	for i := range tasks {
		tasks[i] = stand.run("exec sleep 601")
	}
	require.LessOrEqual(t, runtime.NumGoroutine(), goroutines+n)
	each := (heap() - before) / n
	t.Logf("a running run weighs %d bytes", each)
	for _, task := range tasks {
		require.NoError(t, task.Cancel(""))
	}
	for _, task := range tasks {
		task.end()
	}
	require.Less(t, each, 12<<10)
}
