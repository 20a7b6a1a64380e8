package output

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// disk gives the bytes that a log's file occupies.
func disk(t *testing.T, log *Log) int64 {
	t.Helper()
	info, err := os.Stat(filepath.Join(log.store.dir.Name(), log.store.name(log.seq, logSuffix)))
	require.NoError(t, err)
	return info.Sys().(*syscall.Stat_t).Blocks * 512
}

func numbered(n int) []byte {
	var lines bytes.Buffer
	for i := range n {
		fmt.Fprintf(&lines, "%09d\n", i)
	}
	return lines.Bytes()
}

func TestBoundKeepsTheNewestBytes(t *testing.T) {
	for _, c := range []struct{ max, size int64 }{
		{1 << 20, 1 << 20}, {1 << 20, 1<<20 + 10}, {1 << 20, 10 << 20}, {10_000, 3_000_000}, {100, 4000}, {1, 50},
	} {
		for _, copies := range []bool{false, true} {
			t.Run(fmt.Sprintf("max=%d,size=%d,copies=%v", c.max, c.size, copies), func(t *testing.T) {
				log := newLog(t, newStore(t, c.max))
				data := numbered(int(c.size/10 + 1))[:c.size]
				feedBy(t, log, copies, data)
				written, dropped := log.Size()
				require.Equal(t, c.size, written)
				if c.size <= c.max {
					require.Zero(t, dropped, "nothing goes before the bound is passed")
				}
				require.LessOrEqual(t, written-dropped, c.max)
				require.GreaterOrEqual(t, written-dropped, min(c.size, c.max-c.max/16), "little more goes than must")
				require.Equal(t, string(data[dropped:]), text(t, log, 8<<20))
				require.LessOrEqual(t, disk(t, log), c.max+2*blockBytes)
				require.Empty(t, log.Loss())
			})
		}
	}
}

// feedBy is feed with the choice between splicing and copying.
func feedBy(t *testing.T, log *Log, copies bool, data []byte) {
	t.Helper()
	if !copies {
		feed(t, log, data)
		return
	}
	r, w := newPipe(t)
	go func() { _, _ = w.Write(data); _ = w.Close() }()
	conn, err := r.SyscallConn()
	require.NoError(t, err)
	p := &pump{log: log, file: log.file, left: -1, copies: true}
	for !p.eof {
		require.NoError(t, conn.Read(p.step))
	}
}

// TestReadersNeverSeeAHole reads at the head all along while the head goes.
func TestReadersNeverSeeAHole(t *testing.T) {
	log := newLog(t, newStore(t, 64<<10))
	reader, err := log.Open()
	require.NoError(t, err)
	defer func() { _ = reader.Close() }()
	r, w := newPipe(t)
	go func() {
		for range 200 {
			_, _ = w.Write(bytes.Repeat([]byte("x"), 16<<10))
		}
		_ = w.Close()
	}()
	drained := make(chan error, 1)
	go func() { drained <- log.Drain(r) }()
	buf := make([]byte, 100_000)
	for {
		page, err := log.Page(0, 100_000)
		require.NoError(t, err)
		require.NotContains(t, page.Text, "\x00")
		first, _, _ := reader.Bounds()
		n, err := reader.ReadAt(buf, first)
		if err != nil && !errors.Is(err, io.EOF) {
			require.ErrorIs(t, err, ErrDropped)
		}
		require.NotContains(t, string(buf[:n]), "\x00")
		select {
		case err := <-drained:
			require.NoError(t, err)
			_, err = reader.ReadAt(buf, 0)
			require.ErrorIs(t, err, ErrDropped)
			return
		default:
		}
	}
}

// fullDisk makes a small file system, or skips where that is not allowed.
func fullDisk(t *testing.T, size int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "small")
	require.NoError(t, os.Mkdir(dir, 0o700))
	if err := mountTmpfs(dir, size); err != nil {
		t.Skipf("no small file system to be had: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, unmount(dir)) })
	return dir
}

func TestFullDiskKeepsTheNewestAndSaysWhy(t *testing.T) {
	for _, copies := range []bool{false, true} {
		t.Run(fmt.Sprintf("copies=%v", copies), func(t *testing.T) {
			store, err := NewStore(Config{Dir: fullDisk(t, 1<<20)})
			require.NoError(t, err)
			defer func() { require.NoError(t, store.Close()) }()
			log, err := store.Create()
			require.NoError(t, err)
			data := numbered(300_000)
			feedBy(t, log, copies, data)
			written, dropped := log.Size()
			require.EqualValues(t, len(data), written)
			require.Positive(t, dropped)
			require.Equal(t, "no space left on device", log.Loss())
			kept := text(t, log, 8<<20)
			require.NotEmpty(t, kept)
			require.Equal(t, string(data[dropped:]), kept)

			// Room for others is there again: the next log starts and keeps.
			next, err := store.Create()
			require.NoError(t, err)
			feedBy(t, next, copies, []byte("hi\n"))
			require.Equal(t, "hi\n", text(t, next, 100))
			log.End()
			next.End()
		})
	}
}

func TestFullDiskWithNothingToGiveLosesAndGoesOn(t *testing.T) {
	dir := fullDisk(t, 256<<10)
	store, err := NewStore(Config{Dir: dir})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	log, err := store.Create()
	require.NoError(t, err)
	defer log.End()
	ballast := filepath.Join(dir, "ballast")
	_ = os.WriteFile(ballast, make([]byte, 1<<20), 0o600) // as much as fits

	data := numbered(20_000)
	feed(t, log, data)
	written, dropped := log.Size()
	require.EqualValues(t, len(data), written)
	require.Equal(t, written, dropped, "all of it is gone, and said to be")
	require.Empty(t, text(t, log, 100))

	require.NoError(t, os.Remove(ballast))
	feed(t, log, []byte("again\n"))
	require.Equal(t, "again\n", text(t, log, 100))
}
