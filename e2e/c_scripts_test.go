package e2e

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// lossy is the text of raw bytes by the standard's practice: one U+FFFD for each
// maximal part of a character that never came. The bytes at the end that may still
// become a character are left out and counted.
func lossy(raw []byte) (text string, waits int) {
	var b strings.Builder
	for i := 0; i < len(raw); {
		size, low, high := 1, byte(0x80), byte(0xbf)
		switch lead := raw[i]; {
		case lead < 0x80:
		case lead >= 0xc2 && lead <= 0xdf:
			size = 2
		case lead >= 0xe0 && lead <= 0xef:
			size = 3
			switch lead {
			case 0xe0:
				low = 0xa0
			case 0xed:
				high = 0x9f
			}
		case lead >= 0xf0 && lead <= 0xf4:
			size = 4
			switch lead {
			case 0xf0:
				low = 0x90
			case 0xf4:
				high = 0x8f
			}
		default:
			b.WriteString("\uFFFD")
			i++
			continue
		}
		n := 1
		for n < size && i+n < len(raw) && raw[i+n] >= low && raw[i+n] <= high {
			low, high = 0x80, 0xbf
			n++
		}
		switch {
		case n == size:
			b.Write(raw[i : i+n])
		case i+n == len(raw):
			return b.String(), n
		default:
			b.WriteString("\uFFFD")
		}
		i += n
	}
	return b.String(), 0
}

// writing gives texts of many writing systems, and bytes that are no text.
func writing() map[string]string {
	return map[string]string{
		"greek":            "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία\n",
		"cyrillic":         "Съешь же ещё этих мягких французских булок\n",
		"arabic":           "صِف خَلقَ خَودِ كَمِثلِ الشَمسِ\n",
		"hebrew":           "דג סקרן שט בים\u200f\n",
		"devanagari":       "ऋषियों को सताने वाले\n",
		"thai":             "เป็นมนุษย์สุดประเสริฐ\n",
		"chinese":          "天地玄黃，宇宙洪荒。\n",
		"japanese":         "いろはにほへとﾁﾘﾇﾙｦ\n",
		"korean":           "키스의 고유조건은\n",
		"combining":        "e\u0301 a\u0308\u0323 Z\u0351\u036b\u0343\n",
		"family":           "👨‍👩‍👧‍👦 👩🏽‍🚀 🏳️‍🌈 🇪🇺 ❤️\n",
		"beyond the plane": "𐍈 𝔘𝔫𝔦 𓀀 \U0010FFFD\n",
		"edges":            "\x7f\u0080\u07ff\u0800\ud7ff\ue000\uffff\U00010000\U0010FFFF",
		"no newline":       "Größe: 5 €",
		"overlong":         "\xc0\x80.\xc1\xbf.\xe0\x80\x80.\xe0\x9f\xbf.\xf0\x80\x80\x80.\xf0\x8f\xbf\xbf\n",
		"lone":             "\x80.\xbf\xbf.a\x80b\x8f\xbfc\xe2\x82\xac\xac\n",
		"surrogates":       "\xed\xa0\x80\xed\xbf\xbf\xed\x9f\xbf\n",
		"too high":         "\xf4\x90\x80\x80.\xf5\x80\x80\x80.\xfe\xff\n",
		"broken off":       "\xe2\x82.\xf0\x9f\x98.\xf0\x9f\n\xc3\xe2\xf0\n",
		"torn ends":        "ok\n\xf0\x9f\x98",
		"nul":              "a\x00b\x00\x00€\x00\n",
		"controls":         "\x01\x02\t\r\n\v\f\x1b[1m\x1b]0;t\a\u2028\u2029\ufeff\n",
	}
}

// Every script, cut at every byte: what has been read is at any time all whole
// characters that have come, and nothing of the next one.
func TestC1EveryScriptCutAtEachByte(t *testing.T) {
	t.Parallel()
	d := serve(t, "AFOOT_MAX_TASKS_PER_OWNER=100")
	c := d.as("c1 scripts")
	for name, whole := range writing() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFeed(t)
			id := c.start(t, f.print()).ID
			var got strings.Builder
			next := int64(0)
			read := func() output {
				o := c.read(t, id, "")
				require.Equal(t, next, o.Offset, "reads join without hole or overlap")
				require.True(t, utf8.ValidString(o.Text))
				next = o.NextOffset
				got.WriteString(o.Text)
				return o
			}
			for i := range len(whole) {
				f.give(t, c, id, []byte(whole[i:i+1]))
				read()
				want, waits := lossy([]byte(whole[:i+1]))
				require.Equal(t, want, got.String(), "after byte %d", i)
				require.Equal(t, int64(i+1-waits), next, "after byte %d", i)
			}
			f.done(t)
			c.finish(t, id)
			require.True(t, read().EOF)
			want, waits := lossy([]byte(whole))
			if waits > 0 {
				want += "\uFFFD"
			}
			require.Equal(t, want, got.String())
			require.Equal(t, int64(len(whole)), next)
			require.Equal(t, whole, string(c.log(t, id)))
		})
	}
}

// The same for pages by offset, of every size that matters, and from every offset.
func TestC2EveryScriptInPages(t *testing.T) {
	t.Parallel()
	d := serve(t, "AFOOT_MAX_TASKS_PER_OWNER=100")
	c := d.as("c2 scripts")
	for name, whole := range writing() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFeed(t)
			id := c.start(t, f.print()).ID
			f.give(t, c, id, []byte(whole))
			f.done(t)
			_, text := c.finish(t, id)
			for _, limit := range []int{1, 2, 3, 4, 5, 7} {
				var joined strings.Builder
				offset := int64(0)
				for pages := 0; offset < int64(len(whole)); pages++ {
					require.LessOrEqual(t, pages, len(whole), "no progress")
					o := c.read(t, id, fmt.Sprintf("offset=%d&limit_bytes=%d", offset, limit))
					require.Equal(t, offset, o.Offset)
					require.Greater(t, o.NextOffset, offset)
					require.LessOrEqual(t, o.NextOffset-offset, int64(max(limit, utf8.UTFMax)))
					offset = o.NextOffset
					require.Equal(t, offset == int64(len(whole)), o.EOF)
					joined.WriteString(o.Text)
				}
				require.Equal(t, text, joined.String(), "pages of %d", limit)
			}
			if !utf8.ValidString(whole) {
				return
			}
			for offset := range len(whole) {
				begin := offset
				for !utf8.RuneStart(whole[begin]) {
					begin--
				}
				o := c.read(t, id, fmt.Sprintf("offset=%d", offset))
				require.Equal(t, int64(begin), o.Offset)
				require.Equal(t, whole[begin:], o.Text)
			}
		})
	}
}

// Random bytes in random writes, read in random pages.
func TestC3RandomBytesInRandomPages(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("c3 random")
	for seed := range uint64(4) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 3))
			whole := make([]byte, 6000)
			for i := range whole {
				switch random.IntN(3) {
				case 0:
					whole[i] = byte(random.IntN(256))
				case 1:
					whole[i] = []byte("\xe2\x82\xac\xf0\x9f\x98\x80\xed\xa0\xc3")[random.IntN(10)]
				default:
					whole[i] = []byte("a\n\x00€")[random.IntN(6)]
				}
			}
			f := newFeed(t)
			id := c.start(t, f.print()).ID
			var consumed strings.Builder
			for _, piece := range cuts(whole, 400, random.IntN) {
				f.give(t, c, id, piece)
				consumed.WriteString(c.read(t, id, fmt.Sprintf("limit_bytes=%d", 1+random.IntN(500))).Text)
			}
			f.done(t)
			_, text := c.finish(t, id)
			want, waits := lossy(whole)
			if waits > 0 {
				want += "\uFFFD"
			}
			require.Equal(t, want, text)
			for {
				o := c.read(t, id, "")
				consumed.WriteString(o.Text)
				if o.EOF {
					break
				}
			}
			require.Equal(t, want, consumed.String())
			require.True(t, bytes.Equal(whole, c.log(t, id)))
		})
	}
}

// Lines without end, with and without what makes them hard.
func TestC5VeryLongLines(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("c5 long")
	for _, row := range []struct {
		command string
		size    int
		tail    string
	}{
		{`printf '€%.0s' {1..200000}; printf '\nEND'`, 600004, "€\nEND"},
		{`head -c 300000 /dev/zero; echo END`, 300004, "\x00END\n"},
		{`head -c 2000000 /dev/zero | tr '\0' '\r'; echo END`, 2000004, "\rEND\n"},
		{`head -c 500001 /dev/zero | tr '\0' '\377'`, 500001, "\uFFFD"},
		{`printf x; head -c 2097152 /dev/zero | tr '\0' y; printf '\n€'`, 2097157, "y\n€"},
	} {
		t.Run(row.command, func(t *testing.T) {
			id := c.start(t, row.command).ID
			s, text := c.finish(t, id)
			require.Equal(t, int64(row.size), s.OutputBytes)
			require.True(t, strings.HasSuffix(text, row.tail))
			raw := c.log(t, id)
			require.Len(t, raw, row.size)
			if utf8.Valid(raw) {
				same(t, string(raw), text)
			}
			limited := c.start(t, row.command, fields{"outputLimitBytes": 200}).ID
			c.finish(t, limited)
			a := c.do(t, "GET", "/tasks/"+limited+"/output", nil, "Accept: text/plain")
			require.LessOrEqual(t, len(a.body), 200)
			require.True(t, utf8.Valid(a.body))
		})
	}
}
