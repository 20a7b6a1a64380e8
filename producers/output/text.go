package output

import (
	"strings"
	"unicode/utf8"
)

// A unit is what is never cut: a valid character, or one maximal invalid subpart
// (Unicode 3.9, best practice), which shows as one U+FFFD. Bytes from 0x80 to
// 0xBF never begin a unit of more than one byte, all others always begin one,
// so units can be found from the middle of a stream.
const replacement = string(utf8.RuneError)

// longest is the size of the longest unit.
const longest = utf8.UTFMax

// appendText appends the units of p as valid UTF-8 and gives the bytes it used.
// A unit that is cut at the end is left, unless final says that nothing follows.
func appendText(dst *strings.Builder, p []byte, final bool) int {
	if utf8.Valid(p) {
		dst.Write(p)
		return len(p)
	}
	at := 0
	for at < len(p) {
		run := at + validRun(p[at:])
		dst.Write(p[at:run])
		at = run
		if at == len(p) {
			break
		}
		size, cut := invalidUnit(p[at:])
		if cut && !final {
			break
		}
		dst.WriteString(replacement)
		at += size
	}
	return at
}

// validRun gives the length of the valid characters at the head of p.
func validRun(p []byte) int {
	at := 0
	for at < len(p) {
		if p[at] < utf8.RuneSelf {
			at++
			continue
		}
		_, size := utf8.DecodeRune(p[at:])
		if size == 1 {
			break
		}
		at += size
	}
	return at
}

// invalidUnit measures the maximal invalid subpart at the head of p, which does
// not begin with a valid character. Cut says that p ends in the middle of what
// may still become a character.
func invalidUnit(p []byte) (size int, cut bool) {
	need, low, high := lead(p[0])
	for size = 1; size < need; size++ {
		if size == len(p) {
			return size, true
		}
		if p[size] < low || p[size] > high {
			return size, false
		}
		low, high = 0x80, 0xBF
	}
	return size, false
}

// lead gives the length of a character that begins with b, and the bounds of its
// second byte; 1 for a byte that begins none.
func lead(b byte) (need int, low, high byte) {
	switch {
	case b >= 0xC2 && b <= 0xDF:
		return 2, 0x80, 0xBF
	case b == 0xE0:
		return 3, 0xA0, 0xBF
	case b == 0xED:
		return 3, 0x80, 0x9F
	case b >= 0xE1 && b <= 0xEF:
		return 3, 0x80, 0xBF
	case b == 0xF0:
		return 4, 0x90, 0xBF
	case b >= 0xF1 && b <= 0xF3:
		return 4, 0x80, 0xBF
	case b == 0xF4:
		return 4, 0x80, 0x8F
	default:
		return 1, 0, 0
	}
}

// inside says how many bytes position at lies behind the start of its unit; 0
// means that a unit begins there. p holds up to 3 bytes before at and 3 from at
// on; final says that nothing follows p.
func inside(p []byte, at int, final bool) int {
	for back := 1; back < longest && back <= at; back++ {
		b := p[at-back]
		if b < utf8.RuneSelf {
			return 0
		}
		if b < 0xC0 {
			continue
		}
		size, cut := unit(p[at-back:])
		if size > back || cut && !final {
			return back
		}
		return 0
	}
	return 0
}

// unit measures the unit at the head of p, valid or not.
func unit(p []byte) (size int, cut bool) {
	if r, n := utf8.DecodeRune(p); r != utf8.RuneError || n > 1 {
		return n, false
	}
	return invalidUnit(p)
}
