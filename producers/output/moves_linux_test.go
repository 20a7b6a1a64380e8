package output

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func inherited(t *testing.T, fd int) bool {
	t.Helper()
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	require.NoError(t, err)
	return flags&unix.FD_CLOEXEC == 0
}

// Taken back, a log goes on as if nothing had been; its file is inherited in between.
func TestALogIsTakenBack(t *testing.T) {
	log := newLog(t, newStore(t, 1000))
	feed(t, log, numbered(300))
	_, err := log.HandOver()
	require.NoError(t, err)
	require.True(t, inherited(t, int(log.file.Fd())))
	log.TakeBack()
	require.False(t, inherited(t, int(log.file.Fd())))
	feed(t, log, []byte("more"))
	require.Contains(t, text(t, log, 5000), "000000299\nmore")
	log.End()
	_, err = log.HandOver()
	require.ErrorIs(t, err, os.ErrClosed)
	log.TakeBack()
}

// An adopted log goes on where it was, round its ring, and notes where it was noted.
func TestAnAdoptedLogGoesOn(t *testing.T) {
	for _, before := range []int{0, 50, 300} {
		store := newStore(t, 1000)
		log, err := store.Create()
		require.NoError(t, err)
		feed(t, log, numbered(before))
		handle := handleOf(t, log)
		log.lend(log.file, log.place.size)
		lent := log.lent.Load()
		state, err := log.HandOver()
		require.NoError(t, err)
		// As exec would leave it: the number is open, and no file of this program's.
		fd, err := unix.Dup(int(log.file.Fd()))
		require.NoError(t, err)
		old := int(log.file.Fd())
		log.End()
		require.NoError(t, unix.Dup2(fd, old))
		require.NoError(t, unix.Close(fd))

		next, err := NewStore(Config{Dir: store.path, MaxBytes: 1000})
		require.NoError(t, err)
		again, err := next.Adopt(state)
		require.NoError(t, err)
		require.Equal(t, lent, again.lent.Load())
		_, err = next.Sweep()
		require.NoError(t, err)
		require.Equal(t, min(int64(before*10), 1000) > 0, next.Total() > 0)
		feed(t, again, numbered(300))
		all := string(numbered(before)) + string(numbered(300))
		_, dropped := again.Size()
		require.Equal(t, all[dropped:], text(t, again, 5000))
		require.Equal(t, all[dropped:], text(t, reopen(t, later(t, next), handle), 5000), "after a crash")
		again.End()
		require.Equal(t, all[dropped:], text(t, reopen(t, later(t, next), handleOf(t, again)), 5000))
		require.NoError(t, again.Remove())
		require.Zero(t, next.Total())
		require.NoError(t, next.Close())
	}
}

// What a leftover prints while its sink is handed over waits in its pipe.
func TestASinkIsTakenBack(t *testing.T) {
	sink, err := NewSink()
	require.NoError(t, err)
	r, w := newPipe(t)
	require.NoError(t, sink.Take(r))
	state, err := sink.HandOver()
	require.NoError(t, err)
	require.NotEqual(t, "[]", string(state))
	_, err = sink.HandOver()
	require.ErrorIs(t, err, os.ErrClosed)
	_, err = w.WriteString("hello")
	require.NoError(t, err)
	require.Equal(t, 1, sink.Len())
	sink.TakeBack()
	sink.TakeBack()
	buf := make([]byte, 1<<20)
	_, err = w.Write(buf) // more than a pipe holds
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.Eventually(t, func() bool { return sink.Len() == 0 }, 20*time.Second, time.Millisecond)
	_, err = sink.HandOver()
	require.NoError(t, err)
	require.NoError(t, sink.Close(), "also one that is handed over")
	require.NoError(t, sink.Close())
}

// TestASinkIsClosedWhileItIsHandedOver comes while the goroutine, which rests after much
// output, has not stopped yet.
func TestASinkIsClosedWhileItIsHandedOver(t *testing.T) {
	sink, err := NewSink()
	require.NoError(t, err)
	r, w := newPipe(t)
	require.NoError(t, sink.Take(r))
	buf := make([]byte, 1<<20)
	_, err = w.Write(buf) // more than a pipe holds
	require.NoError(t, err)
	handed := make(chan error, 1)
	go func() {
		_, err := sink.HandOver()
		handed <- err
	}()
	require.Eventually(t, func() bool {
		sink.mu.Lock()
		defer sink.mu.Unlock()
		return sink.parked != nil
	}, 20*time.Second, 10*time.Microsecond)
	require.NoError(t, sink.Close())
	require.ErrorIs(t, <-handed, os.ErrClosed)
	sink.TakeBack()
	require.NoError(t, sink.Close())
}
