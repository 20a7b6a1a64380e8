package plain

import (
	"unicode/utf8"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// lastC1 ends the control characters that follow ASCII (C1). In UTF-8 they take two
// bytes: a terminal decodes before it looks for controls (Markus Kuhn, UTF-8 and Unicode
// FAQ, "UTF-8 still allows you to use C1 control characters"), so that a byte alone is none.
const lastC1 = 0x9F

// plainLine says that a line shows as what it is.
func plainLine(line []byte) bool {
	for at := 0; at < len(line); {
		b := line[at]
		switch {
		case b < ' ' && b != '\t' || b == del:
			return false
		case b < utf8.RuneSelf:
			at++
		default:
			r, size := utf8.DecodeRune(line[at:])
			if size == 1 || r <= lastC1 {
				return false
			}
			at += size
		}
	}
	return true
}

// decoder finds characters and maximal invalid subparts.
type decoder struct{ utf8 transform.Transformer }

func newDecoder() decoder {
	return decoder{utf8: unicode.UTF8.NewDecoder()}
}

// next gives the unit at the head of p, which is not empty: a character, a C1
// control, or [utf8.RuneError] for an invalid subpart.
func (d decoder) next(p []byte) (r rune, size int) {
	if r, size = utf8.DecodeRune(p); r != utf8.RuneError || size > 1 {
		return r, size
	}
	// A subpart has at most three bytes, and room for one replacement alone makes
	// the decoder stop behind the first.
	var one [utf8.UTFMax - 1]byte
	_, size, _ = d.utf8.Transform(one[:], p[:min(len(p), len(one))], true)
	return utf8.RuneError, max(size, 1)
}
