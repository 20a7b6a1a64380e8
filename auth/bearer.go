package auth

import (
	"net/http"
	"strings"
)

// bearer gives the token of the request's one Authorization header. Cookies and
// query parameters are never looked at.
func bearer(h http.Header) (string, error) {
	values := h["Authorization"]
	switch len(values) {
	case 0:
		e := unauthenticated("a token is needed: send the header Authorization: Bearer TOKEN")
		e.absent = true
		return "", e
	case 1:
	default:
		return "", unauthenticated("there must be exactly one Authorization header")
	}
	const scheme = "bearer"
	v := values[0]
	if len(v) <= len(scheme) || !strings.EqualFold(v[:len(scheme)], scheme) || v[len(scheme)] != ' ' {
		return "", unauthenticated("the Authorization header must be: Bearer TOKEN")
	}
	token := strings.Trim(v[len(scheme):], " ")
	if token == "" {
		return "", unauthenticated("the Authorization header has no token after Bearer")
	}
	return token, nil
}

// wellFormed reports whether token has the shape of a JWT: three non-empty parts
// of base64url. The caller has bounded its length.
func wellFormed(token string) bool {
	dots, run := 0, 0
	for i := range len(token) {
		switch c := token[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
			run++
		case c == '.' && run > 0 && dots < 2:
			dots++
			run = 0
		default:
			return false
		}
	}
	return dots == 2 && run > 0
}
