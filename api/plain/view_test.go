package plain

import (
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"golang.org/x/text/encoding/unicode"
)

func TestViewOfALine(t *testing.T) {
	for _, c := range []struct{ name, raw, text string }{
		{"nothing", "", ""},
		{"plain", "a\tb  \n\nc\n", "a\tb  \n\nc\n"},
		{"CRLF is a newline", "a\r\nb\r\n", "a\nb\n"},
		{"many CRs", "a\r\r\r\n", "a\n"},
		{"the longer rest stays", "hello\rHE", "HEllo"},
		{"progress", "\r 10%\r 50%\r100% done\n", "100% done\n"},
		{"progress erased", "downloading 99%\r\x1b[Kdone\n", "done\n"},
		{"erased behind the cursor", "abcdef\b\b\x1b[K\n", "abcd\n"},
		{"erased before the cursor", "abcdef\x1b[3D\x1b[1K\n", "    ef\n"},
		{"erased before, written again", "abcdef\x1b[3D\x1b[1K\rX\n", "X   ef\n"},
		{"erased, the cursor stays", "abc\x1b[2Kd\n", "   d\n"},
		{"erased from the start", "abc\x1b[2K\rxy\n", "xy\n"},
		{"a wide erasure voids narrow ones", "abcdef\x1b[2G\x1b[1K\x1b[4G\x1b[1K\x1b[3Gz\n", "  z ef\n"},
		{"narrow erasures after wide ones", "abcdef\x1b[4G\x1b[1K\rABCDEF\x1b[2G\x1b[1K\n", "  CDEF\n"},
		{"erased display", "abc\r\x1b[Jx\n", "x\n"},
		{"erased to nothing", "abc\x1b[2K\n", "\n"},
		{"an unknown erasure", "abc\r\x1b[7Kx\n", "xbc\n"},
		{"printed blanks stay", "abc\b \b\n", "ab \n"},
		{"backspace at the start", "\b\ba\n", "a\n"},
		{"overstrike", "_\bb_\bo\n", "bo\n"},
		{"to a column", "abcdef\x1b[3GX\n", "abXdef\n"},
		{"to the first column", "abc\x1b[GX\x1b[1GY\n", "Ybc\n"},
		{"left and right", "abcdef\r\x1b[CX\x1b[2CY\x1b[3DZ\n", "aXZdYf\n"},
		{"a gap is blank", "a\x1b[5Gb\n", "a   b\n"},
		{"a move alone shows nothing", "a\x1b[50G\n", "a\n"},
		{"to the right edge and back", "\x1b[999C\x1b[5Dend\n", strings.Repeat(" ", 75) + "end\n"},
		{"lines don't know each other", "abc\x1b[5\nmdef\x1b]0;title\nghi\n", "abc\nmdef\nghi\n"},
		{"other lines are left out", "a\x1b[2A\x1b[Hb\x1b[3;4Hc\x1b[s\x1b[u\x1bMd\n", "abcd\n"},

		{"colours", "\x1b[1;31mred\x1b[0m \x1b[38:2::1:2:3mx\x1b[m\n", "red x\n"},
		{"private sequences", "\x1b[?25la\x1b[?2Kb\x1b[>1Kc\x1b[!pd\x1b[2 Ge\n", "abcde\n"},
		{"a void sequence", "\x1b[ 1mx\x1b[1?2mx\n", "xx\n"},
		{"title with BEL", "\x1b]0;title\aa\n", "a\n"},
		{"title with ST", "\x1b]2;title\x1b\\a\n", "a\n"},
		{"link", "\x1b]8;;http://example.org\x1b\\text\x1b]8;;\x1b\\\n", "text\n"},
		{"title with characters that hold C1 bytes", "\x1b]0;朜世界\aa\n", "a\n"},
		{"strings", "\x1bPq#0;1\x1b\\a\x1bXsos€\x1b\\b\x1b^pm\x1b\\c\x1b_Gapc€\x1b\\d\n", "abcd\n"},
		{"short escapes", "\x1b7a\x1b8\x1b=b\x1b>\x1bcc\x1b(Bd\x1b)0e\x1b%Gf\x1b#8g\n", "abcdefg\n"},
		{"shifts", "\x0ea\x0fb\x1bNc\x1bOd\n", "abcd\n"},
		{"C0", "\x00a\ab\vc\fd\x7fe\x05\x1a\n", "abcde\n"},
		{"C0 inside a sequence", "abc\x1b[3\r1mX\n", "Xbc\n"},
		{"cancelled", "\x1b[31\x18ma\x1b]0;x\x1ab\n", "mab\n"},
		{"escape begins anew", "\x1b[31\x1b[32ma\x1b\x1b[0mb\n", "ab\n"},
		{"a character breaks a sequence off", "\x1b[3€1m\n", "€1m\n"},
		{"unfinished", "a\x1b[31", "a"},
		{"C1", "\u009b31ma\u009d0;t\u009cb\u0090q\u009cc\u0085d\u009fe\u009c\n", "abcd\n"},
		{"bytes alone are no C1", "\x9b31ma\x9d0;t\x9cb\x90q\x9cc\x85d\x98e\x9ff\n", "\uFFFD31ma\uFFFD0;t\uFFFDb\uFFFDq\uFFFDc\uFFFDd\uFFFDe\uFFFDf\n"},
		{"text of code page 437", "gr\x81n na\x8bve \x90tude\x1b[m: 7\n", "gr\uFFFDn na\uFFFDve \uFFFDtude: 7\n"},
		{"bytes alone behind a subpart", "\xf0\x9f\x92 x\r\n\x9f\x92\xa9 y\xc2\n\x9b1mz\n", "\uFFFD x\n\uFFFD\uFFFD\uFFFD y\uFFFD\n\uFFFD1mz\n"},
		{"a byte alone breaks a sequence off", "\x1b[3\x9b1m\n", "\uFFFD1m\n"},
		{"strings with bytes alone", "\x1b]0;t\x9c\x9b\x85u\aa\x1bPq\x9c\x90r\x1b\\b\x1b_\x9cs\xc2\x1b\\c\n", "abc\n"},
		{"strings with characters that hold C1 bytes", "\x1b]0;é ž Ü ĝ Ŝ\aa\x1bPqžĜ\x1b\\b\x1b^\u201c\u201d\u009cc\n", "abc\n"},
		{"no C1 in a character", "a\rü朜€\n", "ü朜€\n"},

		{"wide characters", "世界\rab\n", "ab界\n"},
		{"half of a wide character", "世界\rab\x1b[4Gx\n", "ab x\n"},
		{"wide over narrow", "abcd\r世\n", "世cd\n"},
		{"wide over half a wide one", "a世b\r界\n", "界 b\n"},
		{"erased within a wide character", "世界\x1b[2G\x1b[Kx\n", " x\n"},
		{"erased up to within a wide character", "世界\x1b[3G\x1b[1Kx\n", "  x\n"},
		{"marks", "e\u0301a\rX\n", "Xa\n"},
		{"marks join", "ea\x1b[2G\u0301\u0302\n", "e\u0301\u0302a\n"},
		{"marks on a wide character", "世\u0301\r\n", "世\u0301\n"},
		{"marks before everything", "\ufeff\x1b[ma\n", "\ufeffa\n"},
		{"marks on what is blank", "ab\x1b[2K\u0301\n", "  \u0301\n"},
		{"marks on a gap", "\x1b[3G\u0301\n", "  \u0301\n"},
		{"tabs", "a\tb\x1b[m\tc\n", "a\tb\tc\n"},
		{"a tab passes over text", "abcdefghij\r\tX\n", "abcdefghXj\n"},
		{"half of a tab", "a\tb\x1b[3GX\n", "a X     b\n"},

		{"subparts", "\xe2\x82a\xf0\x9f\x98\xff\xc3\n", "\uFFFDa\uFFFD\uFFFD\uFFFD\n"},
		{"subparts are columns", "\xe2\x82b\xff\rX\n", "Xb\uFFFD\n"},
		{"no C1 in a subpart", "\xe2\x9b1mx\n", "\uFFFD1mx\n"},
		{"surrogates", "\xed\xa0\x80\n", "\uFFFD\uFFFD\uFFFD\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text, consumed := View([]byte(c.raw), true)
			require.Equal(t, c.text, text)
			require.Equal(t, len(c.raw), consumed)
			joins(t, []byte(c.raw))
		})
	}
}

func TestViewOfUnfinishedLines(t *testing.T) {
	text, consumed := View([]byte("a\nb\r"), false)
	require.Equal(t, []any{"a\n", 2}, []any{text, consumed})
	text, consumed = View([]byte("\x1b[31mab"), false)
	require.Equal(t, []any{"", 0}, []any{text, consumed})
	text, consumed = View(nil, false)
	require.Equal(t, []any{"", 0}, []any{text, consumed})
}

// joins holds the view of every cut against that of the whole.
func joins(t *testing.T, raw []byte) {
	t.Helper()
	whole, consumed := View(raw, true)
	require.Equal(t, len(raw), consumed)
	require.True(t, utf8.ValidString(whole), "%q", whole)
	for cut := range len(raw) + 1 {
		head, consumed := View(raw[:cut], false)
		require.LessOrEqual(t, consumed, cut)
		tail, _ := View(raw[consumed:], true)
		require.Equal(t, whole, head+tail, "cut at %d of %q", cut, raw)
	}
}

func TestViewIsLinear(t *testing.T) {
	const n = 1 << 18
	line := strings.Repeat("x", n)
	for _, c := range []struct{ name, raw string }{
		{"sequences that never end", strings.Repeat("\x1b[", n)},
		{"a number that never ends", "\x1b[" + strings.Repeat("9", n) + "Gx"},
		{"far columns", strings.Repeat("\x1b[999999999Gx", n/8)},
		{"far columns on lines", strings.Repeat("\x1b[999999999Gx\n", n/8)},
		{"erased to the left", line + strings.Repeat("\x1b[1K", n)},
		{"erased to the left, less and less", line + strings.Repeat("\x1b[1K\b", n)},
		{"erased and refilled", line + strings.Repeat("\x1b[2Kx", n)},
		{"cut and refilled", strings.Repeat("\x1b[999Gx\r\x1b[K", n/8)},
		{"marks on one character", "\ra" + strings.Repeat("\u0301", n)},
		{"marks in turns", "ab" + strings.Repeat("\u0301\b\u0301\x1b[C", n/4)},
		{"tabs", "\r" + strings.Repeat("\t", n)},
		{"a title that never ends", "\x1b]0;" + line},
		{"wide characters halved", strings.Repeat("世\b", n)},
		{"one long line", "\r" + line},
	} {
		t.Run(c.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			began := time.Now()
			text, _ := View([]byte(c.raw), true)
			took := time.Since(began)
			runtime.ReadMemStats(&after)
			t.Logf("%d bytes to %d in %v", len(c.raw), len(text), took)
			require.Less(t, took, time.Minute, "quadratic is more, on any machine")
			require.LessOrEqual(t, len(text), 12*len(c.raw))
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4*len(text)+2*len(c.raw)+16<<20))
		})
	}
}

func FuzzView(f *testing.F) {
	for _, seed := range []string{
		"a\r\nb\x1b[K\b\b世\x1b[1K\u0301\n", "\x1b]0;t\x9c\x07x\x9b31m\xe2\x82\n\xc2\x9b1mž\x90\xc2", "ab\tc\x1b[3GX\x1b[2K\rq\n\x1bP\x1b\\", "\xf0\x9f\x98\n\xff\x1b(B",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if len(raw) > 1<<10 {
			t.Skip("every cut is tried")
		}
		joins(t, raw)
		text, _ := View(raw, true)
		require.Equal(t, strings.Count(string(raw), "\n"), strings.Count(text, "\n"))
		for _, r := range text {
			require.False(t, r < ' ' && r != '\t' && r != '\n' || r >= del && r <= lastC1, "%q", text)
		}
		again, _ := View([]byte(text), true)
		require.Equal(t, text, again, "what is plain stays as it is")
	})
}

// FuzzSubparts holds the replacement of invalid bytes against the library's.
func FuzzSubparts(f *testing.F) {
	f.Add([]byte("a€\xf0\x9f\x98\xffz\xe2\x82\xc3\xed\xa0\xf4"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		want, err := unicode.UTF8.NewDecoder().Bytes(raw)
		require.NoError(t, err)
		var text strings.Builder
		for d := newDecoder(); len(raw) > 0; {
			r, size := d.next(raw)
			text.WriteRune(r)
			raw = raw[size:]
		}
		require.Equal(t, string(want), text.String())
	})
}
