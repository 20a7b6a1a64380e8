package output

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLogKeepsEveryByte(t *testing.T) {
	for _, size := range []int{0, 1, 4095, 4096, 65536, 65537, 5_000_003} {
		log := newLog(t, newStore(t, 0))
		data := bytes.Repeat([]byte("0123456789abcde\n"), size/16+1)[:size]
		feed(t, log, data)
		for _, ended := range []bool{false, true} {
			if ended {
				log.End()
			}
			written, dropped := log.Size()
			require.EqualValues(t, size, written)
			require.Zero(t, dropped)
			require.Equal(t, string(data), text(t, log, 8<<20))
		}
	}
}

func TestReaderGivesWhatArrived(t *testing.T) {
	log := newLog(t, newStore(t, 0))
	feed(t, log, []byte("hello"))
	reader, err := log.Open()
	require.NoError(t, err)
	defer func() { require.NoError(t, reader.Close()) }()

	buf := make([]byte, 3)
	n, err := reader.ReadAt(buf, 0)
	require.NoError(t, err)
	require.Equal(t, "hel", string(buf[:n]))
	n, err = reader.ReadAt(buf, 3)
	require.Equal(t, io.EOF, err)
	require.Equal(t, "lo", string(buf[:n]))
	_, err = reader.ReadAt(buf, 5)
	require.Equal(t, io.EOF, err)

	first, next, ended := reader.Bounds()
	require.Equal(t, []any{int64(0), int64(5), false}, []any{first, next, ended})
	log.End()
	_, _, ended = reader.Bounds()
	require.True(t, ended)
	content, err := io.ReadAll(io.NewSectionReader(reader, 0, 100))
	require.NoError(t, err)
	require.Equal(t, "hello", string(content))
}

func TestGrownClosesForGrowthAndForTheEnd(t *testing.T) {
	log := newLog(t, newStore(t, 0))
	isClosed := func(c <-chan struct{}) bool {
		select {
		case <-c:
			return true
		default:
			return false
		}
	}
	here, later := log.Grown(0), log.Grown(3)
	require.False(t, isClosed(here))
	require.Equal(t, here, log.Grown(0), "waiters at one offset share a channel")

	feed(t, log, []byte("abc"))
	require.True(t, isClosed(here))
	require.False(t, isClosed(later), "3 bytes are not more than 3")
	require.True(t, isClosed(log.Grown(2)))

	log.End()
	require.True(t, isClosed(later))
	require.True(t, isClosed(log.Grown(1000)))
	require.Nil(t, log.waiters)
}

func TestDrainEndsAtItsDeadlineWithWhatWasThere(t *testing.T) {
	log := newLog(t, newStore(t, 0))
	r, w := newPipe(t)
	_, err := w.WriteString("fg\n")
	require.NoError(t, err)
	// Over before it begins: only the sweep can have found these bytes.
	require.NoError(t, r.SetReadDeadline(time.Unix(1, 0)))
	require.ErrorIs(t, log.Drain(r), os.ErrDeadlineExceeded)
	require.Equal(t, "fg\n", text(t, log, 100))
}

func TestDrainDeadlineIsNotRearmedByNewBytes(t *testing.T) {
	log := newLog(t, newStore(t, 1<<20))
	r, w := newPipe(t)
	writes, writer := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(writer)
		_, _ = w.WriteString("y\n")
		close(writes)
		for chunk := bytes.Repeat([]byte("y\n"), 32<<10); ; {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}()
	<-writes
	require.NoError(t, r.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	require.ErrorIs(t, log.Drain(r), os.ErrDeadlineExceeded)
	require.NoError(t, r.Close())
	<-writer
	written, _ := log.Size()
	require.Positive(t, written)
}

func TestVanishedFileIsAnErrorThatSaysSo(t *testing.T) {
	log := newLog(t, newStore(t, 0))
	feed(t, log, []byte("hello"))
	log.End()
	require.NoError(t, log.Remove())
	_, err := log.Page(0, 10)
	require.ErrorIs(t, err, ErrDamaged)
	_, err = log.Open()
	require.ErrorIs(t, err, ErrDamaged)
	require.NoError(t, log.Remove(), "removing twice is harmless")
}

func TestAFileCutWhileItIsReadIsAnErrorThatSaysSo(t *testing.T) {
	log := newLog(t, newStore(t, 0))
	feed(t, log, []byte("hello"))
	log.End()
	reader, err := log.Open()
	require.NoError(t, err)
	require.NoError(t, os.Truncate(path(log), 2))
	_, err = reader.ReadAt(make([]byte, 5), 0)
	require.ErrorIs(t, err, ErrDamaged)
	require.NotErrorIs(t, err, io.EOF)
	require.NoError(t, reader.Close())
}

func TestAsideIsKeptAndRemoved(t *testing.T) {
	store := newStore(t, 0)
	log := newLog(t, store)
	require.NoError(t, log.WriteAside([]byte("{}")))
	data, err := log.ReadAside()
	require.NoError(t, err)
	require.Equal(t, "{}", string(data))
	log.End()
	require.NoError(t, log.Remove())
	_, err = log.ReadAside()
	require.ErrorIs(t, err, ErrDamaged)
	for _, suffix := range []string{logSuffix, asideSuffix} {
		require.NoFileExists(t, filepath.Join(store.dir.Name(), store.name(log.seq, suffix)))
	}
}

// A log that is removed before it has ended goes with its end, and is not made again.
func TestRemovedBeforeItsEnd(t *testing.T) {
	store := newStore(t, 1000)
	log := newLog(t, store)
	feed(t, log, numbered(300))
	require.NoError(t, log.Remove())
	feed(t, log, numbered(300))
	require.Positive(t, store.Total())
	log.End()
	require.Zero(t, store.Total())
	require.NoFileExists(t, path(log))
	log.End()
	require.NoError(t, log.Remove())
	require.Zero(t, store.Total())
	require.True(t, store.era.slots.idle())
}
