package api

import (
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"afoot/registry"
)

// query reads query parameters strictly. The first thing wrong is kept in err and
// makes every later getter give zero.
type query struct {
	values url.Values
	err    error
}

// queryOf reads the query of a call that knows the given names.
func queryOf(r *http.Request, known ...string) *query {
	q := &query{}
	if r.URL.RawQuery == "" {
		return q
	}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		q.err = invalid("The query is not well-formed.")
		return q
	}
	q.values = values
	for name, given := range values {
		switch {
		case !slices.Contains(known, name):
			q.err = invalid("The query parameter %.80q is unknown here.", name)
		case len(given) > 1:
			q.err = invalid("The query parameter %s is there %d times.", name, len(given))
		case !utf8.ValidString(given[0]):
			q.err = invalid("The query parameter %s is not valid UTF-8.", name)
		}
	}
	return q
}

func (q *query) get(name string) (string, bool) {
	if q.err != nil {
		return "", false
	}
	v, ok := q.values[name]
	if !ok {
		return "", false
	}
	return v[0], true
}

// text gives a parameter that may be absent but not empty.
func (q *query) text(name string) string {
	v, ok := q.get(name)
	if ok && v == "" {
		q.err = invalid("The query parameter %s is empty.", name)
	}
	return v
}

// flag gives a parameter of true or false.
func (q *query) flag(name string) bool {
	v, ok := q.get(name)
	if ok && v != "true" && v != "false" {
		q.err = invalid("The query parameter %s must be true or false, not %.40q.", name, v)
	}
	return v == "true"
}

// choice gives a parameter that is one of a few words; empty if it is absent.
func (q *query) choice(name string, words ...string) string {
	v, ok := q.get(name)
	if ok && !slices.Contains(words, v) {
		q.err = invalid("The query parameter %s must be %s, not %.40q.", name, strings.Join(words, " or "), v)
		return ""
	}
	return v
}

// stream gives the parameter that names a stream of a split task.
func (q *query) stream() string {
	return q.choice("stream", registry.StreamStdout, registry.StreamStderr)
}

// number gives a decimal integer of at least least; a larger one than 64 bits
// hold counts as the largest that they do.
func (q *query) number(name string, least int64) (n int64, given bool) {
	v, ok := q.get(name)
	if !ok {
		return 0, false
	}
	if !digits(v) {
		q.err = invalid("The query parameter %s must be a decimal integer, not %.40q.", name, v)
		return 0, false
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		n = math.MaxInt64
	}
	if n < least {
		q.err = invalid("The query parameter %s must be at least %d.", name, least)
		return 0, false
	}
	return n, true
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}
