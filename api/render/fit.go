package render

import (
	"strings"
	"unicode/utf8"
)

const resultMarker = "\n[result truncated]"

// Fit bounds a text that has no rule of its own, such as an error: its tail stays,
// followed by a marker, once. If the marker alone does not fit, its tail stays.
func Fit(text string, limit int64) string {
	if fits(text, limit) {
		return text
	}
	return tailBefore(text, resultMarker, "", limit)
}

// fits reports whether text is within limit; zero is no limit.
func fits(text string, limit int64) bool {
	return limit <= 0 || int64(len(text)) <= limit
}

// tailBefore keeps as much of text's tail as fits before marker and end. A marker
// that text already ends with is not doubled. If not even marker and end fit,
// their tail stays.
func tailBefore(text, marker, end string, limit int64) string {
	end = marker + end
	room := limit - int64(len(end))
	if room < 0 {
		return tail(end, limit)
	}
	return tail(strings.TrimSuffix(text, marker), room) + end
}

// tail gives the longest tail of s that holds at most n bytes and cuts no character.
func tail(s string, n int64) string {
	if int64(len(s)) <= n {
		return s
	}
	start := len(s) - int(n)
	for start < len(s) && !utf8.RuneStart(s[start]) {
		start++
	}
	return s[start:]
}

// head gives the longest head of s that holds at most n bytes and cuts no character.
func head(s string, n int64) string {
	if int64(len(s)) <= n {
		return s
	}
	end := int(n)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}
