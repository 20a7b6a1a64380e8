package output

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"golang.org/x/text/encoding/unicode"
)

// act is one log under random acts, held against the whole of what it was fed.
type act struct {
	t    *testing.T
	log  *Log
	pump *pump
	bad  *os.File
	data []byte
	// joined is what a reader of all pages got from the last skip on, up to next.
	joined     strings.Builder
	from, next int64
}

// give feeds bytes through a real pipe, all of them.
func (a *act) give(p []byte) {
	r, w := newPipe(a.t)
	_, err := w.Write(p)
	require.NoError(a.t, err)
	require.NoError(a.t, w.Close())
	conn, err := r.SyscallConn()
	require.NoError(a.t, err)
	for a.pump.eof = false; !a.pump.eof; {
		require.NoError(a.t, conn.Read(a.pump.step))
	}
	require.NoError(a.t, r.Close())
	a.data = append(a.data, p...)
}

func (a *act) page(offset, limit int64) Page {
	page, err := a.log.Page(offset, limit)
	require.NoError(a.t, err)
	require.True(a.t, utf8.ValidString(page.Text))
	require.GreaterOrEqual(a.t, page.NextOffset, page.Offset)
	first, end, _ := a.log.bounds()
	ended := a.log.hasEnded()
	shownTo := page.NextOffset
	if ended && page.Offset < end {
		shownTo = min(shownTo, end) // what was lost behind it comes with the last page
	}
	require.LessOrEqual(a.t, shownTo-page.Offset, max(limit, utf8.UTFMax))
	if page.Offset < end {
		// What is shown is what the kept bytes from there on read as.
		kept := a.data[page.Offset:end]
		require.GreaterOrEqual(a.t, page.Offset, first)
		shown := a.data[page.Offset:shownTo]
		require.Equal(a.t, replaced(a.t, shown), page.Text)
		if shownTo == end && (ended || end < int64(len(a.data))) {
			return page
		}
		size := 0
		for size < len(shown) {
			n, _ := unit(kept[size:])
			size += n
		}
		require.Equal(a.t, len(shown), size, "no page ends inside a character")
	}
	return page
}

// follow takes the next page of a reader who reads everything.
func (a *act) follow(limit int64) bool {
	page := a.page(a.next, limit)
	if page.Offset != a.next {
		a.join()
		a.from = page.Offset
	}
	moved := page.NextOffset != a.next
	a.joined.WriteString(page.Text)
	a.next = page.NextOffset
	return moved
}

// join holds the pages since the last skip against what the bytes read as.
func (a *act) join() {
	to := a.next
	if _, end, _ := a.log.bounds(); a.log.hasEnded() && a.from < end {
		to = min(to, end)
	}
	require.Equal(a.t, replaced(a.t, a.data[a.from:to]), a.joined.String(), "pages join to the whole")
	a.joined.Reset()
}

// replaced is what bytes read as, by another implementation.
func replaced(t *testing.T, p []byte) string {
	t.Helper()
	text, err := unicode.UTF8.NewDecoder().Bytes(p)
	require.NoError(t, err)
	return string(text)
}

func (a *act) raw(reader *Reader, offset, length int64) {
	buf := make([]byte, length)
	n, err := reader.ReadAt(buf, offset)
	first, next, _ := reader.Bounds()
	switch {
	case offset < first:
		require.ErrorIs(a.t, err, ErrDropped)
	case offset >= next:
		require.ErrorIs(a.t, err, io.EOF)
	default:
		require.True(a.t, err == nil || errors.Is(err, io.EOF), "%v", err)
		require.Equal(a.t, a.data[offset:min(offset+length, next)], buf[:n])
	}
}

func (a *act) limits() {
	written, gone := a.log.Size()
	first, end, _ := a.log.bounds()
	require.EqualValues(a.t, len(a.data), written)
	require.LessOrEqual(a.t, end-first, max(a.log.store.max, longest), "a bound below one character keeps one")
	require.Equal(a.t, end-first, written-gone)
	require.Equal(a.t, end-first, a.log.store.Total())
	require.LessOrEqual(a.t, a.log.place.size, a.log.place.ring)
}

// crash looks at the log as a later store would if this process died now.
func (a *act) crash() {
	store := later(a.t, a.log.store)
	again, err := store.Reopen(handleOf(a.t, a.log))
	require.NoError(a.t, err)
	first, end, written := a.log.bounds()
	gotFirst, gotEnd, gotWritten := again.bounds()
	require.Equal(a.t, []int64{first, end, written}, []int64{gotFirst, gotEnd, gotWritten})
	kept := make([]byte, end-first)
	reader, err := again.Open()
	require.NoError(a.t, err)
	_, err = reader.ReadAt(kept, first)
	require.True(a.t, err == nil || len(kept) == 0, "%v", err)
	require.NoError(a.t, reader.Close())
	require.Equal(a.t, string(a.data[first:end]), string(kept))
	require.Equal(a.t, end-first, store.Total())
}

// FuzzLog does whatever may happen to a log: writes in any pieces, by splice and by
// copy, faults that come and go, a full disk, reads of all kinds anywhere.
func FuzzLog(f *testing.F) {
	f.Add([]byte("a€\xf0\x9f\x98\xffz0123456789abcdef"), uint16(40))
	f.Add([]byte("\x01\xe2\x82\x02\xac\xe2\x82\x03\x03\x04\x05\x06\x07€€€€"), uint16(1))
	f.Add([]byte("€€€€€€\x03€€€\x04€\x05\x06\x07€€€€€€€€€€€€€€\x03€€€\x04"), uint16(5000))
	f.Fuzz(func(t *testing.T, script []byte, bound uint16) {
		if len(script) > 300 {
			t.Skip("longer samples take time and add no case")
		}
		play(t, newStore(t, int64(bound%9000)+1), script, int64(bound%50)+1)
	})
}

// TestLogsAtRandom does the same with scripts that mean something.
func TestLogsAtRandom(t *testing.T) {
	for _, bound := range []int64{1, 5, 100, 4096, 5000, 30_000} {
		store := newStore(t, bound)
		for seed := range uint64(20) {
			t.Run(fmt.Sprintf("bound=%d,seed=%d", bound, seed), func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, uint64(bound)))
				var script []byte
				for range 1 + random.IntN(60) {
					if random.IntN(2) == 0 {
						script = append(script, byte(random.IntN(256)))
					} else {
						script = append(script, pieces[random.IntN(len(pieces))]...)
					}
				}
				play(t, store, script, 1+random.Int64N(50))
			})
		}
	}
}

func play(t *testing.T, store *Store, script []byte, page int64) {
	t.Helper()
	log, err := store.Create()
	require.NoError(t, err)
	store.punch = punch
	store.keeps.Store(false)
	reader, err := log.Open()
	require.NoError(t, err)
	defer func() { _ = reader.Close() }()
	bad, err := os.Open(path(log))
	require.NoError(t, err)
	defer func() { _ = bad.Close() }()
	a := &act{t: t, log: log, pump: &pump{log: log, file: log.file, left: -1}, bad: bad}
	for at, b := range script {
		written := int64(len(a.data))
		some := int64(b) * 7 % (written + 1)
		switch b % 8 {
		case 0:
			a.give(script[at:min(len(script), at+1+int(b)%5)])
		case 1:
			for range 1 + int(b)*3 {
				a.data = append(a.data, script[at:]...)
			}
			chunk := a.data[written:]
			a.data = a.data[:written]
			a.give(append([]byte(nil), chunk[:min(len(chunk), 20_000)]...))
		case 2:
			a.pump.copies = !a.pump.copies
		case 3:
			a.pump.file = bad // writes fail from now on
		case 4:
			a.pump.file = log.file
		case 5:
			a.page(some, int64(b)+1)
			a.raw(reader, some, int64(b))
		case 6:
			a.follow(int64(b)*3 + 1)
		case 7:
			if b&8 != 0 {
				store.punch = func(int, int64, int64) error { return unix.EOPNOTSUPP }
			}
			if a.pump.file != bad {
				a.pump.shed() // as on a full disk
			}
		}
		a.limits()
		if at%4 == 0 {
			a.crash()
		}
	}
	log.End()
	a.crash()
	for a.follow(page) {
		continue
	}
	a.join()
	require.EqualValues(t, len(a.data), a.next, "every page moves on until the end")
	require.True(t, a.page(a.next, 1).End)
	a.raw(reader, 0, int64(len(a.data)))
	require.NoError(t, log.Remove())
	require.Zero(t, store.Total())
}
