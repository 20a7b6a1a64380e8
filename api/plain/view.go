package plain

import (
	"bytes"
	"strings"
)

// View gives the text of the whole lines at the head of raw, and how many bytes
// they are. A last line without its newline is left for later, unless final says
// that nothing follows. The text is valid UTF-8, with one U+FFFD for each maximal
// invalid subpart.
//
// For every cut of raw the texts join: View(a+b, f) is View(a, false), and then
// View of what that left, with b behind it. A caller who can't wait for the end of
// a line that is too long may pass a piece of it as final; each piece is then read
// as a line of its own.
func View(raw []byte, final bool) (text string, consumed int) {
	consumed = len(raw)
	if !final {
		consumed = bytes.LastIndexByte(raw, '\n') + 1
	}
	var out strings.Builder
	out.Grow(consumed)
	var s screen
	for rest := raw[:consumed]; len(rest) > 0; {
		line, after, ended := bytes.Cut(rest, []byte{'\n'})
		if plainLine(line) {
			out.Write(line)
		} else {
			s.show(&out, line)
		}
		if ended {
			out.WriteByte('\n')
		}
		rest = after
	}
	return out.String(), consumed
}
