package e2e

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// over waits for the end of a task without a look at its output.
func (c *client) over(t *testing.T, id string) snapshot {
	t.Helper()
	var s snapshot
	eventually(t, 30*time.Second, "end of "+id, func() bool {
		s = c.get(t, id)
		return s.terminal()
	})
	return s
}

// diskBytes gives what captured output really takes on the disk.
func (d *daemon) diskBytes(t *testing.T) int64 {
	t.Helper()
	var sum int64
	d.eachFile(t, func(_ string, info fs.FileInfo) {
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			sum += stat.Blocks * 512
		}
	})
	return sum
}

// files counts the files of captured output.
func (d *daemon) files(t *testing.T) int {
	t.Helper()
	n := 0
	d.eachFile(t, func(string, fs.FileInfo) { n++ })
	return n
}

// fileWith finds the file in which a task's output lies.
func (d *daemon) fileWith(t *testing.T, text string) string {
	t.Helper()
	found := ""
	d.eachFile(t, func(path string, info fs.FileInfo) {
		if info.Size() > 1<<20 {
			return
		}
		if data, err := os.ReadFile(path); err == nil && bytes.Contains(data, []byte(text)) {
			found = path
		}
	})
	require.NotEmpty(t, found, "no file holds %q", text)
	return found
}

// eachFile visits the regular files of captured output that are there; one that vanishes on the way is
// none.
func (d *daemon) eachFile(t *testing.T, visit func(path string, info fs.FileInfo)) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(filepath.Join(d.state, "output"), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			if info, err := entry.Info(); err == nil {
				visit(path, info)
			}
		}
		return nil
	}))
}
