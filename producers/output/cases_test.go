package output

import (
	"bytes"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestC1: a character that arrives in pieces is shown when it is whole, and what
// never became one in the end.
func TestC1(t *testing.T) {
	log := newLog(t, newStore(t, 0))
	shown, next := "", int64(0)
	read := func() {
		page, err := log.Page(next, 8<<20)
		require.NoError(t, err)
		require.Equal(t, next, page.Offset)
		shown, next = shown+page.Text, page.NextOffset
	}
	for _, step := range []struct {
		bytes, shown string
		next         int64
	}{{"\xe2\x82", "", 0}, {"\xac\n", "€\n", 4}, {"\xf0\x9f", "€\n", 4}} {
		feed(t, log, []byte(step.bytes))
		read()
		read()
		require.Equal(t, []any{step.shown, step.next}, []any{shown, next})
	}
	log.End()
	read()
	require.Equal(t, []any{"€\n\uFFFD", int64(6)}, []any{shown, next})
}

// TestC2: pages of four bytes never cut a character of three.
func TestC2(t *testing.T) {
	log := newLog(t, newStore(t, 0))
	feed(t, log, []byte("€€€"))
	for _, limit := range []int64{1, 2, 3, 4, 5, 9} {
		var joined strings.Builder
		for next := int64(0); next < 9; {
			page, err := log.Page(next, limit)
			require.NoError(t, err)
			require.Zero(t, page.Offset%3)
			require.Greater(t, page.NextOffset, next, "progress")
			joined.WriteString(page.Text)
			next = page.NextOffset
		}
		require.Equal(t, "€€€", joined.String())
	}
}

// TestC9: ten commands that print without end cost no memory, and no more disk than
// they may.
func TestC9(t *testing.T) {
	const bound, size = 1 << 20, 12 << 20
	store := newStore(t, bound)
	defer debug.SetGCPercent(debug.SetGCPercent(20))
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var work sync.WaitGroup
	logs := make([]*Log, 10)
	for i := range logs {
		logs[i] = newLog(t, store)
		work.Go(func() {
			r, w := newPipe(t)
			var writer sync.WaitGroup
			writer.Go(func() {
				chunk := bytes.Repeat([]byte("y\n"), 16<<10)
				for range size / len(chunk) {
					_, _ = w.Write(chunk)
				}
				_, _ = w.WriteString("END\n")
				_ = w.Close()
			})
			if err := logs[i].Drain(r); err != nil {
				t.Error(err)
			}
			writer.Wait()
		})
	}
	work.Wait()
	runtime.ReadMemStats(&after)
	require.Less(t, after.HeapSys, before.HeapSys+16<<20, "memory is flat")
	for _, log := range logs {
		written, dropped := log.Size()
		require.EqualValues(t, size+4, written)
		require.LessOrEqual(t, written-dropped, int64(bound))
		require.GreaterOrEqual(t, written-dropped, int64(bound-bound/16))
		require.LessOrEqual(t, disk(t, log), int64(bound+2*blockBytes))
		require.True(t, strings.HasSuffix(text(t, log, 8<<20), "y\nEND\n"), "the newest is kept")
		require.Empty(t, log.Loss())
	}
	require.LessOrEqual(t, store.Total(), int64(10*bound))
}

// TestC13: when a log has ended, all of it is there, and whoever waited knows.
func TestC13(t *testing.T) {
	store := newStore(t, 0)
	data := numbered(128_890)[:1_288_895]
	for range 50 {
		log := newLog(t, store)
		waited := make(chan Page, 1)
		go func() {
			var page Page
			for !page.End {
				<-log.Grown(page.NextOffset)
				page, _ = log.Page(page.NextOffset, 8<<20)
			}
			waited <- page
		}()
		feed(t, log, data)
		page, err := log.Page(0, 8<<20)
		require.NoError(t, err)
		require.Equal(t, []any{string(data), false}, []any{page.Text, page.End}, "the end comes with the end alone")
		log.End()
		require.EqualValues(t, len(data), (<-waited).NextOffset)
		require.NoError(t, log.Remove())
	}
}
