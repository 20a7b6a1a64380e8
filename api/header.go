package api

import (
	"net/http"
)

// headerText gives a request header that may be absent, but not empty, doubled,
// longer than most bytes, or anything but printable ASCII.
func headerText(r *http.Request, name string, most int) (string, error) {
	values := r.Header.Values(name)
	switch {
	case len(values) == 0:
		return "", nil
	case len(values) > 1:
		return "", invalid("The header %s is there %d times.", name, len(values))
	case values[0] == "" || len(values[0]) > most || !printable(values[0]):
		return "", invalid("The header %s must be 1 to %d printable ASCII characters.", name, most)
	}
	return values[0], nil
}

// wantsExplicitAck reads Afoot-Ack.
func wantsExplicitAck(r *http.Request) (bool, error) {
	v, err := headerText(r, "Afoot-Ack", 64)
	if err != nil || v == "" {
		return false, err
	}
	if v != "explicit" {
		return false, invalid("The header Afoot-Ack knows explicit only, not %q.", v)
	}
	return true, nil
}

func printable(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
