package auth

import (
	"net/http"
	"strconv"
	"strings"
)

// origin is a web origin in its one form: lower case, no trailing dot, the port
// always there if the scheme has one by default.
type origin struct {
	scheme, host, port string
}

// parseOrigin reads scheme://host[:port] and nothing more. "null" is no origin.
func parseOrigin(s string) (origin, bool) {
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok || !goodScheme(scheme) {
		return origin{}, false
	}
	if strings.HasSuffix(rest, ":") {
		return origin{}, false
	}
	scheme = strings.ToLower(scheme)
	host, port, ok := splitHost(rest)
	if !ok {
		return origin{}, false
	}
	return origin{scheme: scheme, host: host, port: canonicalPort(scheme, port)}, true
}

// ownOrigin is the origin that r came to, as the client sees it. Forwarding
// headers are not believed: behind a proxy that ends TLS, the origin is listed.
func ownOrigin(r *http.Request) (origin, bool) {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	host, port, ok := splitHost(r.Host)
	return origin{scheme: scheme, host: host, port: canonicalPort(scheme, port)}, ok
}

func canonicalPort(scheme, port string) string {
	switch {
	case port != "":
		n, _ := strconv.ParseUint(port, 10, 16) // splitHost has checked it.
		return strconv.FormatUint(n, 10)
	case scheme == "http":
		return "80"
	case scheme == "https":
		return "443"
	default:
		return ""
	}
}

func goodScheme(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z':
		case i > 0 && ('0' <= c && c <= '9' || c == '+' || c == '-' || c == '.'):
		default:
			return false
		}
	}
	return s != ""
}
