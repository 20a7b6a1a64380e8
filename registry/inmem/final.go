package inmem

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/unicode"

	"afoot/registry"
)

// validText is what a final output is kept as, so that its bytes can be paged:
// one U+FFFD per maximal invalid subpart.
func validText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	text, err := unicode.UTF8.NewDecoder().String(s)
	if err != nil { // the decoder replaces, it does not fail
		return strings.ToValidUTF8(s, string(utf8.RuneError))
	}
	return text
}

// page gives a piece of output: a stream's by its producer, a final output by
// the same rules.
func (v view) page(which int, from, limit int64) (registry.Page, error) {
	if stream := v.streams[which]; stream != nil {
		return stream.Page(from, limit)
	}
	total := int64(len(v.output))
	if from > total {
		return registry.Page{}, registry.Errorf(registry.CodeInvalid, "offset %d lies beyond the output of %d bytes", from, total)
	}
	for from > 0 && from < total && !utf8.RuneStart(v.output[from]) {
		from--
	}
	to := min(total, from+limit)
	for to < total && to > from && !utf8.RuneStart(v.output[to]) {
		to--
	}
	if to == from && from < total { // a page shorter than one character
		_, size := utf8.DecodeRuneInString(v.output[from:])
		to = from + int64(size)
	}
	return registry.Page{
		Text: v.output[from:to], Offset: from, NextOffset: to,
		End: v.snap.Status.Terminal() && to == total,
	}, nil
}
