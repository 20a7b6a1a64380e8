package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestC1CharactersAreNotTorn(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("c1")
	for name, row := range map[string]struct{ command, text string }{
		"euro, then a torn end":  {`printf '\xe2\x82'; sleep .4; printf '\xac\n'; printf '\xf0\x9f'`, "€\n\uFFFD"},
		"four bytes, one by one": {`for b in f0 9f 98 80; do printf "\x$b"; sleep .15; done`, "😀"},
		"alone":                  {`printf 'a\xff'; sleep .3; printf 'b\xc0\xafc\n'`, "a\uFFFDb\uFFFD\uFFFDc\n"},
		"broken off":             {`printf '\xe2\x82'; sleep .3; printf 'x\n'`, "\uFFFDx\n"},
		"surrogate":              {`printf '\xed\xa0\x80.'`, "\uFFFD\uFFFD\uFFFD."},
		"too long form":          {`printf '\xf8\x88\x80\x80\x80.'`, "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD."},
		"two torn ends":          {`printf '\xf0\x9f\xf0\x9f\x98'`, "\uFFFD\uFFFD"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id := c.start(t, row.command).ID
			var text strings.Builder
			next := int64(0)
			eventually(t, 10*time.Second, "end", func() bool {
				o := c.read(t, id, "")
				require.Equal(t, next, o.Offset, "reads join without hole or overlap")
				require.True(t, utf8.ValidString(o.Text))
				next = o.NextOffset
				text.WriteString(o.Text)
				return o.EOF
			})
			require.Equal(t, row.text, text.String())
			require.Equal(t, int64(len(c.log(t, id))), next, "offsets count raw bytes")
		})
	}
}

func TestC2PagesEndBetweenCharacters(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("c2")
	for _, whole := range []string{"€€€", "aé€😀z", "😀😀😀", "\n€\n", strings.Repeat("界x", 40)} {
		id := c.start(t, "printf %s '"+whole+"'").ID
		_, text := c.finish(t, id)
		require.Equal(t, whole, text)
		for limit := 1; limit <= 9; limit++ {
			var joined strings.Builder
			offset := int64(0)
			for pages := 0; ; pages++ {
				require.Less(t, pages, len(whole)+2, "no progress")
				o := c.read(t, id, fmt.Sprintf("offset=%d&limit_bytes=%d", offset, limit))
				require.Equal(t, offset, o.Offset)
				require.Equal(t, whole[o.Offset:o.NextOffset], o.Text, "limit %d at %d", limit, offset)
				require.True(t, utf8.ValidString(o.Text))
				if utf8.RuneCountInString(o.Text) > 1 {
					require.LessOrEqual(t, len(o.Text), limit)
				}
				joined.WriteString(o.Text)
				offset = o.NextOffset
				require.Equal(t, offset == int64(len(whole)), o.EOF)
				if o.EOF {
					break
				}
				require.NotEmpty(t, o.Text, "a page shorter than one character makes progress")
			}
			require.Equal(t, whole, joined.String())
		}
		for offset := range whole {
			_, size := utf8.DecodeRuneInString(whole[offset:])
			for inside := range size {
				o := c.read(t, id, fmt.Sprintf("offset=%d", offset+inside))
				require.Equal(t, int64(offset), o.Offset, "an offset inside a character moves back to its start")
				require.Equal(t, whole[offset:], o.Text)
			}
		}
		o := c.read(t, id, fmt.Sprintf("offset=%d", len(whole)))
		require.Empty(t, o.Text)
		require.True(t, o.EOF)
		c.do(t, http.MethodGet, fmt.Sprintf("/tasks/%s/output?offset=%d", id, len(whole)+1), nil).
			refused(t, http.StatusBadRequest, "invalid")
		require.False(t, c.get(t, id).Reported, "looking marks nothing")
	}
}

func TestC3BinaryOutput(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("c3")
	for _, row := range []struct {
		command string
		size    int
		exact   string
	}{
		{`head -c 100000 /dev/urandom`, 100000, ""},
		{`printf 'a\0b\xff\n'`, 5, "a\x00b\xff\n"},
		{`printf '\r\n\t\x1b[31mred\x1b[0m\x07\x7f\n'`, 18, "\r\n\t\x1b[31mred\x1b[0m\a\x7f\n"},
		{`head -c 70000 /dev/zero`, 70000, strings.Repeat("\x00", 70000)},
		{`printf '\xff%.0s' {1..5000}`, 5000, strings.Repeat("\xff", 5000)},
		{`printf '\xef\xbb\xbfbom\xe2\x80\xa8\xe2\x80\xa9'`, 12, "\ufeffbom\u2028\u2029"},
	} {
		t.Run(row.command, func(t *testing.T) {
			t.Parallel()
			id := c.start(t, row.command).ID
			s, text := c.finish(t, id) // every answer on the way is decoded as JSON
			require.True(t, utf8.ValidString(text))
			require.Equal(t, int64(row.size), s.OutputBytes)
			raw := c.log(t, id)
			require.Len(t, raw, row.size)
			if row.exact != "" {
				require.Equal(t, row.exact, string(raw))
			}
			require.Equal(t, strings.ToValidUTF8(string(raw), ""), strings.ReplaceAll(text, "\uFFFD", ""))
			if row.exact != "" && utf8.ValidString(row.exact) {
				require.Equal(t, row.exact, text)
			}
		})
	}
}

func TestC5OneHugeLine(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("c5")
	id := c.start(t, `head -c 5000000 /dev/zero | tr '\0' x; echo; echo END`).ID
	s, text := c.finish(t, id)
	require.Equal(t, int64(5000005), s.OutputBytes)
	require.Len(t, text, 5000005)
	require.True(t, strings.HasSuffix(text, "x\nEND\n"))
	require.Len(t, c.log(t, id), 5000005)
	o := c.read(t, id, "")
	require.Len(t, o.Text, 5000005, "one page holds up to 8 MiB")
	require.True(t, o.EOF)
}

func TestC6PromptWithoutNewline(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("c6")
	for _, row := range []struct{ command, prompt string }{
		{`printf 'Password: '; sleep 505`, "Password: "},
		{`printf 'Continue? [y/N] ' >&2; sleep 515`, "Continue? [y/N] "},
		{`printf 'working\r'; sleep 525`, "working\r"},
	} {
		id := c.start(t, row.command).ID
		eventually(t, 5*time.Second, "prompt", func() bool {
			o := c.read(t, id, "offset=0")
			require.False(t, o.EOF)
			return o.Text == row.prompt
		})
		require.Equal(t, row.prompt, c.read(t, id, "").Text)
		c.kill(t, id)
	}
}

func TestC8OneOrderForBothStreams(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("c8")
	want := "o1\ne1\no2\ne2\no3\ne3\no4\ne4\no5\ne5\n"
	for range 100 {
		_, text := c.finish(t, c.start(t, `for i in 1 2 3 4 5; do echo o$i; echo e$i >&2; done`).ID)
		require.Equal(t, want, text)
	}
}

func TestC11NobodyReads(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("c11")
	for _, command := range []string{
		`head -c 10000000 /dev/zero; echo done >&2`,
		`head -c 10000000 /dev/zero >&2; echo done`,
	} {
		id := c.start(t, command).ID
		eventually(t, 20*time.Second, "end", func() bool { return c.get(t, id).terminal() })
		s := c.get(t, id)
		require.Equal(t, 0, s.exitCode())
		require.Equal(t, int64(10000005), s.OutputBytes)
		require.True(t, bytes.HasSuffix(c.log(t, id), []byte("\x00done\n")))
	}
}

func TestC13EndWithAllItsOutput(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("c13")
	for range 50 {
		g := newGate(t)
		id := c.start(t, g.wait()+`seq 1 200000; exit 3`).ID
		type result struct {
			a   *answer
			err error
		}
		waited := make(chan result, 1)
		go func() {
			a, err := c.call(t.Context(), http.MethodGet, "/tasks/"+id+"/output?wait=true&timeout_ms=30000", nil)
			waited <- result{a, err}
		}()
		eventually(t, 5*time.Second, "blocked wait", func() bool { return c.get(t, id).Waiters == 1 })
		g.open(t)
		r := <-waited
		require.NoError(t, r.err)
		var o output
		r.a.into(t, &o)
		require.Equal(t, 3, o.Snapshot.exitCode())
		require.Len(t, o.Text, 1288895)
		require.True(t, strings.HasSuffix(o.Text, "\n200000\n"))
		require.True(t, o.EOF)
	}
}

func TestC15OutputByName(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("c15")
	for _, row := range []struct{ command, text string }{
		{`echo a; echo b >/dev/stderr; echo c >/dev/stdout; echo d`, "a\nb\nc\nd\n"},
		{`echo a; echo b >>/dev/stderr; echo c >/proc/self/fd/1; echo d >&2`, "a\nb\nc\nd\n"},
		{`echo a; echo b | tee /dev/stderr | tr b x; echo c`, "a\nb\nx\nc\n"},
		{`echo a; (echo b >/dev/fd/2); sh -c 'echo c >/dev/stdout'`, "a\nb\nc\n"},
	} {
		s, text := c.finish(t, c.start(t, row.command).ID)
		require.Equal(t, row.text, text)
		require.Equal(t, 0, s.exitCode())
	}
}

func TestE1StandardInputIsEmpty(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("e1")
	for _, row := range []struct{ command, text string }{
		{`read x; echo rc=$?; cat | wc -c`, "rc=1\n0\n"},
		{`cat; echo end`, "end\n"},
		{`wc -c </dev/stdin`, "0\n"},
		{`bash -c 'read -t 5 x; echo rc=$?'`, "rc=1\n"},
	} {
		s, text := c.finish(t, c.start(t, row.command).ID)
		require.Equal(t, row.text, text)
		require.Less(t, s.lasted(t), patient(2*time.Second))
	}
}
