package output

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestPageOffsets(t *testing.T) {
	type want struct {
		text         string
		offset, next int64
	}
	for _, c := range []struct {
		name, data    string
		ended         bool
		offset, limit int64
		want          want
	}{
		{"empty", "", false, 0, 10, want{"", 0, 0}},
		{"all", "€€€", false, 0, 100, want{"€€€", 0, 9}},
		{"page cuts no character", "€€€", false, 0, 4, want{"€", 0, 3}},
		{"page shorter than a character", "€€€", false, 0, 1, want{"€", 0, 3}},
		{"limit below one", "abc", false, 0, 0, want{"a", 0, 1}},
		{"offset inside moves back", "€€€", false, 4, 100, want{"€€", 3, 9}},
		{"offset inside four bytes", "a😀b", false, 4, 100, want{"😀b", 1, 6}},
		{"at the end", "abc", true, 3, 10, want{"", 3, 3}},
		{"cut character waits", "a\xe2\x82", false, 0, 10, want{"a", 0, 1}},
		{"cut character shows at the end", "a\xe2\x82", true, 0, 10, want{"a\uFFFD", 0, 3}},
		{"only a cut character", "\xe2\x82", false, 0, 1, want{"", 0, 0}},
		{"only a cut character at the end", "\xe2\x82", true, 0, 1, want{"\uFFFD", 0, 2}},
		{"offset behind a cut character", "\xe2\x82", false, 2, 10, want{"", 0, 0}},
		{"offset behind a cut character at the end", "\xe2\x82", true, 2, 10, want{"", 2, 2}},
		{"one sign per maximal subpart", "\xf0\x9f\x98a\xff\x80", false, 0, 10, want{"\uFFFDa\uFFFD\uFFFD", 0, 6}},
		{"page ends inside a maximal subpart", "\xf0\x9f\x98a", false, 0, 2, want{"\uFFFD", 0, 3}},
		{"offset inside a maximal subpart", "\xf0\x9f\x98a", false, 2, 9, want{"\uFFFDa", 0, 4}},
		{"a stray continuation begins itself", "a\x80\x80", false, 2, 9, want{"\uFFFD", 2, 3}},
		{"a real U+FFFD is itself", "\uFFFD", false, 1, 9, want{"\uFFFD", 0, 3}},
		{"surrogates are three signs", "\xed\xa0\x80", false, 0, 9, want{"\uFFFD\uFFFD\uFFFD", 0, 3}},
		{"NUL is a character", "a\x00b", false, 0, 9, want{"a\x00b", 0, 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			log := newLog(t, newStore(t, 0))
			feed(t, log, []byte(c.data))
			if c.ended {
				log.End()
			}
			page, err := log.Page(c.offset, c.limit)
			require.NoError(t, err)
			require.Equal(t, c.want, want{page.Text, page.Offset, page.NextOffset})
			require.Equal(t, c.ended && c.want.next == int64(len(c.data)), page.End)
		})
	}
}

func TestPageBeyondTheOutput(t *testing.T) {
	log := newLog(t, newStore(t, 0))
	feed(t, log, []byte("abc"))
	_, err := log.Page(4, 10)
	require.ErrorIs(t, err, ErrBeyond)
}

// TestPagesOfManyPieces goes over the size of the read buffer with characters
// and invalid bytes on its border.
func TestPagesOfManyPieces(t *testing.T) {
	for shift := range 5 {
		data := strings.Repeat("x", shift) + strings.Repeat("€\xf0\x9f", 60000)
		log := newLog(t, newStore(t, 0))
		feed(t, log, []byte(data))
		log.End()
		page, err := log.Page(0, 8<<20)
		require.NoError(t, err)
		require.True(t, page.End)
		require.Equal(t, strings.Repeat("x", shift)+strings.Repeat("€\uFFFD", 60000), page.Text)
	}
}

// oracle says independently what bytes read as: a byte that [utf8] refuses goes
// with those behind it as long as the whole could still become a character.
func oracle(data string) string {
	var text strings.Builder
	for len(data) > 0 {
		r, size := utf8.DecodeRuneInString(data)
		if r == utf8.RuneError && size == 1 {
			for size < len(data) && size < 4 && viable(data[:size+1]) {
				size++
			}
		}
		text.WriteRune(r)
		data = data[size:]
	}
	return text.String()
}

// viable tries every way to complete a prefix.
func viable(prefix string) bool {
	if len(prefix) == utf8.UTFMax {
		return utf8.ValidString(prefix)
	}
	for b := 0x80; b <= 0xBF; b++ {
		next := prefix + string([]byte{byte(b)})
		if utf8.ValidString(next) || len(next) < utf8.UTFMax && viable(next) {
			return true
		}
	}
	return false
}

var pieces = []string{
	"a", "€", "😀", "ü", "\n", "\x00", "\uFFFD", "\xe2", "\xe2\x82", "\xf0", "\xf0\x9f", "\xf0\x9f\x98",
	"\x80", "\xbf", "\xff", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90", "\xe0\x80", "\xc3",
}

var rough = rapid.SampledFrom(pieces)

// TestPagesJoinToTheWhole is the property behind all offset rules: whatever the
// arrival, the pages and the bound, joined pages are the kept output.
func TestPagesJoinToTheWhole(t *testing.T) {
	stores := map[int64]*Store{0: newStore(t, 0), 40: newStore(t, 40), 200: newStore(t, 200)}
	rapid.Check(t, func(rt *rapid.T) {
		bound := rapid.SampledFrom([]int64{0, 40, 200}).Draw(rt, "bound")
		store := stores[bound]
		log, err := store.Create()
		require.NoError(rt, err)
		defer func() { log.End(); _ = log.Remove() }()

		data, joined, next := "", "", int64(0)
		take := func(limit int64) {
			page, err := log.Page(next, limit)
			require.NoError(rt, err)
			require.True(rt, utf8.ValidString(page.Text))
			require.GreaterOrEqual(rt, page.Offset, page.Dropped)
			if page.Offset != next {
				require.Equal(rt, page.Dropped, page.Offset, "only dropped bytes are skipped")
				joined = ""
			}
			require.LessOrEqual(rt, page.NextOffset-page.Offset, max(limit, utf8.UTFMax))
			joined, next = joined+page.Text, page.NextOffset
		}
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			chunk := strings.Join(rapid.SliceOfN(rough, 0, 40).Draw(rt, "chunk"), "")
			feed(t, log, []byte(chunk))
			data += chunk
			written, dropped := log.Size()
			require.EqualValues(rt, len(data), written)
			if bound > 0 {
				require.LessOrEqual(rt, written-dropped, bound)
			}
			take(rapid.Int64Range(1, 300).Draw(rt, "limit"))
			at := rapid.Int64Range(0, written).Draw(rt, "at")
			page, err := log.Page(at, 1<<20)
			require.NoError(rt, err)
			_, dropped = log.Size()
			require.True(rt, page.Offset == dropped || page.Offset <= at)
		}
		log.End()
		for {
			before := next
			take(rapid.Int64Range(1, 300).Draw(rt, "limit"))
			if next == before {
				break
			}
		}
		require.EqualValues(rt, len(data), next, "every page moves on until the end")
		from := len(oracle(data)) - len(joined)
		require.GreaterOrEqual(rt, from, 0)
		require.Equal(rt, oracle(data)[from:], joined)
	})
}

func FuzzPagesJoin(f *testing.F) {
	f.Add([]byte("a€\xf0\x9f\x98\xffz"), int64(1), uint8(2))
	f.Add([]byte("\xe2\x82\xac\xe2\x82"), int64(4), uint8(1))
	f.Fuzz(func(t *testing.T, data []byte, limit int64, cut uint8) {
		if len(data) > 1<<12 {
			t.Skip("longer samples take time and add no case")
		}
		limit = max(1, limit%5000)
		log := newLog(t, newStore(t, 0))
		feed(t, log, data[:min(int(cut), len(data))], data[min(int(cut), len(data)):])
		log.End()
		require.Equal(t, oracle(string(data)), text(t, log, limit), "%q", data)
	})
}
