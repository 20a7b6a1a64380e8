package output

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestSinkTouchesNobodyElse: who holds a pipe beside the sink, as every process does between
// its fork and its exec, keeps the poll telling of a number that was given back.
func TestSinkTouchesNobodyElse(t *testing.T) {
	sink := newSink(t)
	r, w := newPipe(t)
	child, err := unix.FcntlInt(r.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	require.NoError(t, err)
	defer func() { _ = unix.Close(child) }()
	require.NoError(t, sink.Take(r))
	sink.mu.Lock()
	numbers := slices.Collect(maps.Keys(sink.pipes))
	sink.mu.Unlock()
	require.Len(t, numbers, 1)
	number := numbers[0]
	require.NoError(t, w.Close())
	require.Eventually(t, func() bool { return sink.Len() == 0 }, 20*time.Second, time.Millisecond)
	require.Eventually(t, func() bool {
		_, err := unix.FcntlInt(uintptr(number), unix.F_GETFD, 0)
		return err != nil
	}, 20*time.Second, time.Millisecond)

	other, err := unix.Eventfd(0, unix.EFD_CLOEXEC) // as the descriptor of a process can't be spliced
	require.NoError(t, err)
	require.NoError(t, unix.Dup3(other, number, unix.O_CLOEXEC))
	require.NoError(t, unix.Close(other))
	// The sink has looked again when it has emptied another one.
	for range 3 {
		r, w := newPipe(t)
		require.NoError(t, sink.Take(r))
		require.NoError(t, w.Close())
		require.Eventually(t, func() bool { return sink.Len() == 0 }, 20*time.Second, time.Millisecond)
	}
	require.NoError(t, unix.Close(number), "it was not the sink's to close")
}
