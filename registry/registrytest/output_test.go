package registrytest

import (
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"afoot/registry"
)

func TestPageText(t *testing.T) {
	for _, c := range []struct {
		name          string
		written       string
		drop          int
		ended         bool
		offset, limit int64
		text          string
		begin, next   int64
		end           bool
	}{
		{"plain", "abc", 0, false, 0, 10, "abc", 0, 3, false},
		{"ended", "abc", 0, true, 1, 10, "bc", 1, 3, true},
		{"limit", "abc", 0, true, 0, 2, "ab", 0, 2, false},
		{"cut character waits", "a\xe2\x82", 0, false, 0, 10, "a", 0, 1, false},
		{"cut character at the end", "a\xe2\x82", 0, true, 0, 10, "a\uFFFD", 0, 3, true},
		{"inside a character", "a🙂b", 0, false, 3, 10, "🙂b", 1, 6, false},
		{"inside a cut character", "a\xf0\x9f\x99", 0, false, 3, 10, "", 1, 1, false},
		{"limit below a character", "€€", 0, false, 0, 1, "€", 0, 3, false},
		{"limit inside a character", "€€", 0, false, 0, 5, "€", 0, 3, false},
		{"one for each invalid byte", "\xff\xfe\x80", 0, false, 0, 10, "\uFFFD\uFFFD\uFFFD", 0, 3, false},
		{"one for a maximal subpart", "\xe2\x82x\xf0\x9f\x99x", 0, false, 0, 10, "\uFFFDx\uFFFDx", 0, 7, false},
		{"a surrogate is three", "\xed\xa0\x80", 0, false, 0, 10, "\uFFFD\uFFFD\uFFFD", 0, 3, false},
		{"overlong is each byte", "\xc0\xaf\xe0\x80\xaf", 0, false, 0, 10, strings.Repeat("\uFFFD", 5), 0, 5, false},
		{"a true U+FFFD is itself", "\uFFFD", 0, false, 0, 10, "\uFFFD", 0, 3, false},
		{"below the kept bytes", "0123456789", 4, false, 1, 3, "456", 4, 7, false},
		{"head cut inside a character", "€x", 1, false, 0, 10, "\uFFFD\uFFFDx", 1, 4, false},
		{"everything dropped", "abc", 3, true, 0, 10, "", 3, 3, true},
	} {
		o := NewOutput()
		o.Append(c.written)
		o.Drop(c.drop)
		if c.ended {
			o.End()
		}
		got, err := o.Page(c.offset, c.limit)
		require.NoError(t, err, c.name)
		require.Equal(t, registry.Page{
			Text: c.text, Offset: c.begin, NextOffset: c.next, Dropped: int64(c.drop), End: c.end,
		}, got, c.name)
	}
}

func TestPageBeyond(t *testing.T) {
	o := NewOutput()
	o.Append("abc")
	for _, offset := range []int64{-1, 4} {
		_, err := o.Page(offset, 1)
		require.Equal(t, registry.CodeInvalid, registry.CodeOf(err))
	}
}

// FuzzPages: pages of any size join to the text of the whole.
func FuzzPages(f *testing.F) {
	f.Add([]byte("a€🙂\xff\xe2\x82x\xf0\x9f"), uint8(2))
	f.Fuzz(func(t *testing.T, raw []byte, limit uint8) {
		o := NewOutput()
		o.Append(string(raw))
		o.End()
		whole, err := o.Page(0, int64(len(raw))+1)
		require.NoError(t, err)
		require.True(t, whole.End)
		require.True(t, utf8.ValidString(whole.Text))
		if utf8.Valid(raw) {
			require.Equal(t, string(raw), whole.Text)
		}
		var joined strings.Builder
		for at := int64(0); at < int64(len(raw)); {
			p, err := o.Page(at, int64(limit)+1)
			require.NoError(t, err)
			require.Equal(t, at, p.Offset)
			require.Greater(t, p.NextOffset, at)
			for inside := at + 1; inside < p.NextOffset; inside++ {
				q, err := o.Page(inside, 1)
				require.NoError(t, err)
				require.LessOrEqual(t, q.Offset, inside)
				require.GreaterOrEqual(t, q.Offset, at)
			}
			joined.WriteString(p.Text)
			at = p.NextOffset
		}
		require.Equal(t, whole.Text, joined.String())
	})
}

func TestGrown(t *testing.T) {
	open := func(c <-chan struct{}) bool {
		select {
		case <-c:
			return false
		default:
			return true
		}
	}
	o := NewOutput()
	first, far := o.Grown(0), o.Grown(5)
	require.True(t, open(first))
	o.Append("abc")
	require.False(t, open(first))
	require.True(t, open(far), "five bytes are not more than five")
	require.False(t, open(o.Grown(2)))
	require.True(t, open(o.Grown(3)))
	o.End()
	require.False(t, open(far))
	require.False(t, open(o.Grown(100)))
}

func TestRawLog(t *testing.T) {
	o := NewOutput()
	o.Append("0123456789")
	o.Drop(4)
	log, err := o.Open()
	require.NoError(t, err)
	require.Equal(t, 1, o.OpenLogs())
	p := make([]byte, 4)
	n, err := log.ReadAt(p, 5)
	require.NoError(t, err)
	require.Equal(t, "5678", string(p[:n]))
	n, err = log.ReadAt(p, 8)
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, "89", string(p[:n]))
	_, err = log.ReadAt(p, 10)
	require.ErrorIs(t, err, io.EOF)
	_, err = log.ReadAt(p, 3)
	require.Error(t, err)
	require.NotErrorIs(t, err, io.EOF)
	require.NoError(t, log.Close())
	require.NoError(t, log.Close())
	require.Zero(t, o.OpenLogs())
}
