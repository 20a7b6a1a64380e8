package journal

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"afoot/registry"
)

// small mounts a file system of that many bytes.
func small(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size+",mode=0700"); err != nil {
		t.Skipf("a small file system cannot be mounted here: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, 0)) })
	return dir
}

// flood takes all space that is left in dir.
func flood(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "flood")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	defer f.Close()
	block := make([]byte, 4096)
	for err == nil {
		_, err = f.Write(block)
	}
	require.ErrorIs(t, err, unix.ENOSPC)
	return path
}

func TestFullDisk(t *testing.T) {
	dir := small(t, "6m")
	log := &lines{}
	path := filepath.Join(dir, "journal.db")
	j, err := Open(Config{Path: path, Logger: slog.New(slog.NewTextHandler(log, nil))})
	require.NoError(t, err)
	synced(t, j, task(1))
	big := flood(t, dir)

	// On the reserve: the first row that finds no space is still written, and starts are
	// refused from then on.
	n := uint64(1)
	for j.Check() == nil {
		n++
		require.NoError(t, j.Sync(t.Context(), j.Append(typical(n))), "row %d", n)
		require.Less(t, n, uint64(10_000))
	}
	require.ErrorContains(t, j.Check(), "no space left on device")
	require.Equal(t, registry.CodeInsufficientStorage, registry.CodeOf(j.Check()))
	flood(t, dir) // others take what there is
	for range 50 {
		n++
		require.NoError(t, j.Sync(t.Context(), j.Append(typical(n))), "an end is written")
		require.Error(t, j.Check())
	}

	// Beyond it: rows stay in line.
	var stuck error
	for range 2000 {
		n++
		if stuck = j.Sync(t.Context(), j.Append(typical(n))); stuck != nil {
			break
		}
	}
	require.ErrorContains(t, stuck, "the journal cannot be written: no space left on device")
	mark := j.Append(registry.CounterRow{Kind: "bash", Last: n})

	require.NoError(t, os.Remove(big))
	require.Eventually(t, func() bool { return j.Check() == nil }, 30*time.Second, time.Millisecond)
	require.NoError(t, j.Sync(t.Context(), mark))
	require.Len(t, memory(t, j).Tasks, int(n))
	require.Equal(t, int64(reserveBytes), stateSize(t, path+reserveSuffix))
	require.Equal(t, 1, log.count("journal in trouble"), strings.Join(log.got, ""))
	require.Equal(t, 1, log.count("journal healed"))
	shut(t, j)
	require.Len(t, memory(t, opened(t, Config{Path: path})).Tasks, int(n))
}

func TestOpensOnAFullDisk(t *testing.T) {
	dir := small(t, "6m")
	path := filepath.Join(dir, "journal.db")
	j, err := Open(Config{Path: path})
	require.NoError(t, err)
	synced(t, j, task(1))
	shut(t, j)
	flood(t, dir)
	j = opened(t, Config{Path: path})
	require.Len(t, memory(t, j).Tasks, 1)
	synced(t, j, registry.TaskGone{ID: "bash-1"})
}

func TestReadOnlyFileSystem(t *testing.T) {
	dir := small(t, "6m")
	path := filepath.Join(dir, "journal.db")
	j, err := Open(Config{Path: path})
	require.NoError(t, err)
	synced(t, j, task(1))
	shut(t, j)
	require.NoError(t, unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	_, err = Open(Config{Path: path})
	require.ErrorIs(t, err, unix.EROFS)
	r, err := Inspect(path)
	require.NoError(t, err)
	require.Empty(t, r.Problems)
	require.NoError(t, unix.Mount("", dir, "", unix.MS_REMOUNT, ""))
	require.Len(t, memory(t, opened(t, Config{Path: path})).Tasks, 1)
}
