package bash

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const maxLabelBytes = 200

// label is the first line of a command that shows something, cut to
// maxLabelBytes with an ellipsis.
func label(command string) string {
	for line := range strings.Lines(command) {
		if line = visible(line); line != "" {
			return cut(line)
		}
	}
	return string(Kind)
}

// visible puts spaces in the place of what a label may not hold.
func visible(line string) string {
	line = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, line)
	return strings.TrimSpace(line)
}

func cut(line string) string {
	const ellipsis = "…"
	if len(line) <= maxLabelBytes {
		return line
	}
	end := maxLabelBytes - len(ellipsis)
	for !utf8.RuneStart(line[end]) {
		end--
	}
	return line[:end] + ellipsis
}
