package api

import (
	"strconv"
	"strings"
)

// byteRange is a piece of output: from first on, up to last (included), -1 for "to
// the end"; or, if suffix is not -1, the last so many bytes.
type byteRange struct {
	first, last, suffix int64
}

// parseRange reads a Range header. It reports false for everything that RFC 9110
// lets a server ignore: none, another unit, several ranges, nonsense.
func parseRange(header string) (rng byteRange, ok bool) {
	spec, found := strings.CutPrefix(header, "bytes=")
	if !found || strings.Contains(spec, ",") {
		return rng, false
	}
	from, to, found := strings.Cut(strings.TrimSpace(spec), "-")
	if !found {
		return rng, false
	}
	rng.last, rng.suffix = -1, -1
	if from == "" {
		rng.suffix, ok = decimal(to)
		return rng, ok
	}
	if rng.first, ok = decimal(from); !ok {
		return rng, false
	}
	if to == "" {
		return rng, true
	}
	rng.last, ok = decimal(to)
	return rng, ok && rng.last >= rng.first
}

// within places the range in an output of next bytes. It reports false if not one
// byte of it is there.
func (g byteRange) within(next int64) (begin, end int64, ok bool) {
	if g.suffix >= 0 {
		begin = max(next-g.suffix, 0)
		return begin, next, begin < next
	}
	end = next
	if g.last >= 0 && g.last < next {
		end = g.last + 1
	}
	return g.first, end, g.first < next
}

// decimal reads a number of digits alone; more than 64 bits hold counts as the
// largest that they do.
func decimal(s string) (int64, bool) {
	if !digits(s) {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 1<<63 - 1, true
	}
	return n, true
}
