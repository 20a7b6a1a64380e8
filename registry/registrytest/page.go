package registrytest

import (
	"strings"
	"unicode/utf8"
)

// unit measures the character at the head of p: a valid one, or the maximal
// subpart of an invalid one. It reports whole as false when p ends inside a
// character that could still become valid.
func unit(p []byte) (size int64, valid, whole bool) {
	if !utf8.FullRune(p) {
		return int64(len(p)), false, false
	}
	if r, n := utf8.DecodeRune(p); r != utf8.RuneError || n > 1 {
		return int64(n), true, true
	}
	n := 1
	for n < len(p) && !utf8.FullRune(p[:n]) && !utf8.FullRune(p[:n+1]) {
		n++
	}
	return int64(n), false, true
}

// characterStart moves an index inside a character back to the character's
// start. A byte that can begin a character always does, so the last such byte
// among the three before decides.
func characterStart(p []byte, at int64) int64 {
	for start := at - 1; start >= max(at-utf8.UTFMax+1, 0); start-- {
		if !utf8.RuneStart(p[start]) {
			continue
		}
		if size, _, _ := unit(p[start:]); start+size > at {
			return start
		}
		break
	}
	return at
}

// cutText gives the text of at most limit bytes from begin on, at least one
// whole character if there is one, and where it ends.
func cutText(p []byte, begin, limit int64, ended bool) (text string, end int64) {
	var b strings.Builder
	for end = begin; end < int64(len(p)); {
		size, valid, whole := unit(p[end:])
		if !whole && !ended || end+size-begin > limit && end > begin {
			break
		}
		if valid {
			b.Write(p[end : end+size])
		} else {
			b.WriteRune(utf8.RuneError)
		}
		end += size
	}
	return b.String(), end
}
