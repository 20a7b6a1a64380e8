package e2e

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// feed is a FIFO from which a task takes what it prints, so that a test chooses the
// very bytes of each write.
type feed struct {
	path string
	file *os.File
	size int64
}

func newFeed(t *testing.T) *feed {
	t.Helper()
	f := &feed{path: filepath.Join(t.TempDir(), "feed")}
	require.NoError(t, unix.Mkfifo(f.path, 0o600))
	var err error
	f.file, err = os.OpenFile(f.path, os.O_RDWR, 0) // both ends: it opens without the task
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.file.Close() })
	return f
}

// print is the shell text that prints what is fed until done.
func (f *feed) print() string { return "cat <'" + f.path + "'" }

// give hands over bytes and waits until the daemon counts them as output of the task.
func (f *feed) give(t *testing.T, c *client, id string, data []byte) {
	t.Helper()
	_, err := f.file.Write(data)
	require.NoError(t, err)
	f.size += int64(len(data))
	var got int64
	eventually(t, 15*time.Second, "fed bytes are output of "+id, func() bool {
		got = c.read(t, id, "offset=0&limit_bytes=1").Snapshot.OutputBytes
		return got >= f.size
	})
	require.Equal(t, f.size, got)
}

// done ends the feed: the task reads to the end of the file. Something must have
// been given.
func (f *feed) done(t *testing.T) {
	t.Helper()
	require.Positive(t, f.size)
	require.NoError(t, f.file.Close())
}

// same compares long texts, and shows only the place where they part.
func same(t *testing.T, want, got string) {
	t.Helper()
	at := 0
	for at < len(want) && at < len(got) && want[at] == got[at] {
		at++
	}
	if at < len(want) || at < len(got) {
		require.FailNow(t, "texts differ", "of %d and %d bytes, at byte %d: %.60q and %.60q", len(want), len(got), at, want[at:], got[at:])
	}
}

// cuts divides data at random places, in pieces of one to most bytes.
func cuts(data []byte, most int, random func(int) int) [][]byte {
	var pieces [][]byte
	for len(data) > 0 {
		n := min(len(data), 1+random(most))
		pieces = append(pieces, data[:n])
		data = data[n:]
	}
	return pieces
}
