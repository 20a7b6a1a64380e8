package output

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(asVictim); dir != "" {
		victim(dir)
	}
	goleak.VerifyTestMain(m)
}

// newStore makes a store with a bound in a directory of the test's own.
func newStore(t testing.TB, maxBytes int64) *Store {
	t.Helper()
	store, err := NewStore(Config{Dir: t.TempDir(), MaxBytes: maxBytes})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store
}

func newLog(t testing.TB, store *Store) *Log {
	t.Helper()
	log, err := store.Create()
	require.NoError(t, err)
	t.Cleanup(log.End)
	return log
}

// newPipe makes a pipe as a producer does: a non-blocking end to read from, a
// blocking one to write to.
func newPipe(t testing.TB) (r, w *os.File) {
	t.Helper()
	var fds [2]int
	require.NoError(t, unix.Pipe(fds[:]))
	unix.CloseOnExec(fds[0])
	unix.CloseOnExec(fds[1])
	require.NoError(t, unix.SetNonblock(fds[0], true))
	r, w = os.NewFile(uintptr(fds[0]), "r"), os.NewFile(uintptr(fds[1]), "w")
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	return r, w
}

// feed runs data through a pipe into the log and waits for the last byte.
func feed(t testing.TB, log *Log, data ...[]byte) {
	t.Helper()
	r, w := newPipe(t)
	drained := make(chan error, 1)
	go func() { drained <- log.Drain(r) }()
	for _, d := range data {
		_, err := w.Write(d)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	require.NoError(t, <-drained)
	require.NoError(t, r.Close())
}

// text reads all pages of the given size.
func text(t testing.TB, log *Log, limit int64) string {
	t.Helper()
	all, offset := "", int64(0)
	for {
		page, err := log.Page(offset, limit)
		require.NoError(t, err)
		all += page.Text
		if page.NextOffset == page.Offset {
			return all
		}
		offset = page.NextOffset
	}
}
