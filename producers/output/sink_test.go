package output

import (
	"bytes"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func newSink(t *testing.T) *Sink {
	t.Helper()
	sink, err := NewSink()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, sink.Close()) })
	return sink
}

func TestSinkEmptiesUntilTheLastWriterEnds(t *testing.T) {
	sink := newSink(t)
	const pipes = 20
	writers := make([]*os.File, pipes)
	for i := range writers {
		r, w := newPipe(t)
		// Once full before and once while the sink looks.
		_, err := w.Write(bytes.Repeat([]byte("x"), 60<<10))
		require.NoError(t, err)
		require.NoError(t, sink.Take(r))
		writers[i] = w
	}
	for _, w := range writers {
		_, err := w.Write(bytes.Repeat([]byte("x"), 300<<10)) // blocks if nobody reads
		require.NoError(t, err)
	}
	require.Equal(t, pipes, sink.Len())
	for _, w := range writers {
		require.NoError(t, w.Close())
	}
	require.Eventually(t, func() bool { return sink.Len() == 0 }, 20*time.Second, time.Millisecond)
}

func TestSinkClosed(t *testing.T) {
	sink := newSink(t)
	held, w := newPipe(t)
	require.NoError(t, sink.Take(held))
	require.NoError(t, sink.Close())
	require.NoError(t, sink.Close())
	_, err := w.WriteString("x")
	require.Error(t, err, "nobody reads any more")
	late, _ := newPipe(t)
	require.ErrorIs(t, sink.Take(late), os.ErrClosed)
}
