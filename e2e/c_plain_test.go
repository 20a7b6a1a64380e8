package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// plain reads the plain view from an offset to the end in pages of limit bytes.
func (c *client) plain(t *testing.T, id string, limit func() int) string {
	t.Helper()
	var text strings.Builder
	offset := int64(0)
	for pages := 0; ; pages++ {
		require.Less(t, pages, 20000, "no progress at %d", offset)
		o := c.read(t, id, fmt.Sprintf("view=plain&offset=%d&limit_bytes=%d", offset, limit()))
		require.GreaterOrEqual(t, o.NextOffset, offset)
		require.True(t, utf8.ValidString(o.Text))
		text.WriteString(o.Text)
		if o.EOF {
			return text.String()
		}
		require.Greater(t, o.NextOffset, offset, "a page makes progress")
		offset = o.NextOffset
	}
}

func whole() int { return 8 << 20 }

func TestPlainView(t *testing.T) {
	t.Parallel()
	d := serve(t, "AFOOT_MAX_TASKS_PER_OWNER=100")
	c := d.as("plain")
	for name, row := range map[string]struct{ raw, plain string }{
		"nothing special":   {"a\nb\n", "a\nb\n"},
		"empty lines":       {"\n\na\n\n", "\n\na\n\n"},
		"no newline":        {"a\nb", "a\nb"},
		"progress":          {"start\n 10%\r 50%\r100%\ndone\n", "start\n100%\ndone\n"},
		"progress, cut off": {"start\n 10%\r 50%\r", "start\n 50%"},
		"cr before newline": {"a\r\nb\r\n", "a\nb\n"},
		"many cr":           {"a\r\r\r\nb\n", "a\nb\n"},
		"erased":            {"a long line\r\x1b[Kshort\n", "short\n"},
		"erased first":      {"a long line\x1b[2K\rshort\n", "short\n"},
		"colours":           {"\x1b[1;31mred\x1b[0m and \x1b[38;5;12mblue\x1b[m\n", "red and blue\n"},
		"true colour":       {"\x1b[38:2::10:20:30mx\x1b[0m\n", "x\n"},
		"title by bell":     {"\x1b]0;a title\aline\n", "line\n"},
		"title by st":       {"\x1b]2;a title\x1b\\line\n", "line\n"},
		"link":              {"\x1b]8;;http://example.com/\x1b\\text\x1b]8;;\x1b\\\n", "text\n"},
		"private modes":     {"\x1b[?25lhidden cursor\x1b[?25h\n\x1b[?2004h$ \n", "hidden cursor\n$ \n"},
		"keypad, charset":   {"\x1b=\x1b>\x1b(Btext\x1b7\x1b8\n", "text\n"},
		"device control":    {"\x1bPq#0;2;0;0;0\x1b\\text\n", "text\n"},
		"other scripts":     {"загрузка 1\rзагрузка 2\n界\r界界\n😀👩🏽‍🚀\n", "загрузка 2\n界界\n😀👩🏽‍🚀\n"},
		"torn sequence":     {"text\x1b[3", "text"},
		"torn title":        {"text\n\x1b]0;never ends", "text\n"},
		"bell":              {"ding\a\n", "ding\n"},
		"tab":               {"a\tb\n", "a\tb\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFeed(t)
			id := c.start(t, f.print()).ID
			f.give(t, c, id, []byte(row.raw))
			f.done(t)
			c.finish(t, id)
			require.Equal(t, row.plain, c.plain(t, id, whole))
			for limit := 1; limit < 12; limit++ {
				require.Equal(t, row.plain, c.plain(t, id, func() int { return limit }), "in pages of %d", limit)
			}
			require.Equal(t, row.raw, string(c.log(t, id)), "the log is what it was")
		})
	}
}

// An unfinished line waits for its newline, also in a read that waits; the end
// finishes it.
func TestPlainViewWaitsForTheLine(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("plain")
	f := newFeed(t)
	id := c.start(t, f.print()).ID
	f.give(t, c, id, []byte("one\ntw"))
	o := c.read(t, id, "view=plain&offset=0")
	require.Equal(t, "one\n", o.Text)
	require.Equal(t, int64(4), o.NextOffset, "the offset of the line that is not finished")
	require.False(t, o.EOF)
	for range 3 {
		f.give(t, c, id, []byte("\r50%"))
		o = c.read(t, id, "view=plain&offset=4")
		require.Empty(t, o.Text)
		require.Equal(t, int64(4), o.NextOffset)
	}
	o = c.read(t, id, "view=plain&offset=4&wait=true&timeout_ms=300")
	require.Empty(t, o.Text)
	require.Equal(t, "running", o.Snapshot.Status)
	f.give(t, c, id, []byte("\r100%\nlast"))
	o = c.read(t, id, "view=plain&offset=4&wait=true&timeout_ms=30000")
	require.Equal(t, "100%\n", o.Text)
	next := o.NextOffset
	f.done(t)
	c.finish(t, id)
	o = c.read(t, id, fmt.Sprintf("view=plain&offset=%d&wait=true", next))
	require.Equal(t, "last", o.Text)
	require.True(t, o.EOF)
	require.False(t, c.get(t, id).Reported, "a look")

	c.do(t, http.MethodGet, "/tasks/"+id+"/output?view=plain", nil).refused(t, http.StatusBadRequest, "invalid")
	c.do(t, http.MethodGet, "/tasks/"+id+"/output?view=plain&wait=true", nil).refused(t, http.StatusBadRequest, "invalid")
	c.do(t, http.MethodGet, "/tasks/"+id+"/output?view=fancy&offset=0", nil).refused(t, http.StatusBadRequest, "invalid")
	require.Equal(t, "one\ntw\r50%\r50%\r50%\r100%\nlast", c.read(t, id, "offset=0").Text)
}

// A read that waits must not spin or answer for ever while a line grows: the wait
// ends at its bound or with a line.
func TestPlainViewOfAGrowingLine(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("plain")
	id := c.start(t, `for i in {1..300}; do printf '\r%d%%' $i; sleep .01; done; echo; echo end; sleep 907`).ID
	var o output
	for o.Text == "" {
		o = c.read(t, id, "view=plain&offset=0&wait=true&timeout_ms=60000")
		require.Equal(t, "running", o.Snapshot.Status)
	}
	require.True(t, strings.HasPrefix(o.Text, "300%\n"), "%q", o.Text)
	c.kill(t, id)
}

// However the bytes come and however they are read, the view is the same.
func TestPlainViewCutAnywhere(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("plain")
	for seed := range uint64(6) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 11))
			raw := noisy(random, 200)
			f := newFeed(t)
			id := c.start(t, f.print()).ID
			var live strings.Builder
			offset := int64(0)
			look := func() output {
				o := c.read(t, id, fmt.Sprintf("view=plain&offset=%d", offset))
				live.WriteString(o.Text)
				offset = o.NextOffset
				return o
			}
			for _, piece := range cuts(raw, 60, random.IntN) {
				f.give(t, c, id, piece)
				look()
			}
			f.done(t)
			c.finish(t, id)
			for over := false; !over; {
				over = look().EOF
			}
			one := c.plain(t, id, whole)
			require.Equal(t, one, live.String(), "as it came against one read of %q", raw)
			for range 4 {
				require.Equal(t, one, c.plain(t, id, func() int { return 1 + random.IntN(80) }), "random pages of %q", raw)
			}
			for _, r := range one {
				require.True(t, r == '\n' || r == '\t' || !unicode.IsControl(r), "control %U in the view", r)
			}
			_, text := c.finish(t, id)
			require.Equal(t, strings.Count(text, "\n"), strings.Count(one, "\n"), "each line once")
		})
	}
}

// noisy makes output as programs make it for terminals.
func noisy(random *rand.Rand, n int) []byte {
	parts := []string{
		"word ", "слово ", "界面", "😀", "\n", "\n", "\r\n", "\r", "\r 10%", "\r 99%", "\x1b[K", "\x1b[2K\r", "\x1b[1;32m", "\x1b[0m",
		"\x1b]0;title\a", "\x1b]8;;http://x\x1b\\", "\x1b[?25l", "\t", "\xff", "\xe2\x82", "\x1bPdata\x1b\\", "\b", "\x00",
	}
	var raw []byte
	for range n {
		raw = append(raw, parts[random.IntN(len(parts))]...)
	}
	return raw
}

// A line far longer than any page is one line all the same.
func TestPlainViewOfLongLines(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("plain")
	id := c.start(t, `for i in {1..20000}; do printf '\rstep %d of 20000' $i; done; echo; printf 'x%.0s' {1..30000}; echo; echo end`).ID
	c.finish(t, id)
	want := "step 20000 of 20000\n" + strings.Repeat("x", 30000) + "\nend\n"
	for _, limit := range []int{100, 5000, 65536, 8 << 20} {
		require.Equal(t, want, c.plain(t, id, func() int { return limit }), "pages of %d", limit)
	}
}
