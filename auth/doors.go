package auth

import (
	"fmt"
	"net/http"
	"strings"
)

// Doors decide which requests may come in at all, before anything else of them
// is looked at: the Host must be this server's, against DNS rebinding, and an
// Origin, if there is one, must be this server's own or a listed one, against
// other sites' pages. The same holds on a Unix socket.
//
// The http.Server needs DisableGeneralOptionsHandler, or it answers "OPTIONS *"
// before any handler is asked.
type Doors struct {
	// Hosts are the names besides the loopback ones that the server answers for.
	// Port, case and one trailing dot don't count.
	Hosts []string
	// Origins are the other origins, scheme://host[:port], whose pages may use the
	// API. They alone get CORS headers, never with credentials.
	Origins []string
}

// Validate refuses entries that could never match, a wildcard say. Wrap ignores
// them.
func (d Doors) Validate() error {
	for _, h := range d.Hosts {
		if _, ok := listedHost(h); !ok {
			return fmt.Errorf("the host %q is not a name or address: write it as in a URL, without scheme and path", h)
		}
	}
	for _, o := range d.Origins {
		if _, ok := parseOrigin(o); !ok {
			return fmt.Errorf("the origin %q is not of the form scheme://host or scheme://host:port", o)
		}
	}
	return nil
}

// Wrap guards a handler. A request that may not come in is given to refuse, with
// KindForeignHost or KindForeignOrigin; preflights of listed origins are answered
// here.
func (d Doors) Wrap(refuse func(http.ResponseWriter, *http.Request, *Error)) func(http.Handler) http.Handler {
	hosts := make(map[string]bool, len(d.Hosts))
	for _, h := range d.Hosts {
		if name, ok := listedHost(h); ok {
			hosts[name] = true
		}
	}
	origins := make(map[origin]bool, len(d.Origins))
	for _, o := range d.Origins {
		if parsed, ok := parseOrigin(o); ok {
			origins[parsed] = true
		}
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if name, _, ok := splitHost(r.Host); !ok || !isLoopback(name) && !hosts[name] {
				refuse(w, r, errForeignHost())
				return
			}
			w.Header().Add("Vary", "Origin")
			from, present, ok := requestOrigin(r)
			own, _ := ownOrigin(r)
			switch {
			case !present, ok && from == own:
				next.ServeHTTP(w, r)
			case !ok || !origins[from]:
				refuse(w, r, errForeignOrigin())
			case isPreflight(r):
				allow(w.Header(), r)
				w.WriteHeader(http.StatusNoContent)
			default:
				expose(w.Header(), r)
				next.ServeHTTP(w, r)
			}
		})
	}
}

// requestOrigin reads the one Origin header. Several, "null" and everything else
// that is no origin is present but not ok.
func requestOrigin(r *http.Request) (from origin, present, ok bool) {
	values := r.Header["Origin"]
	if len(values) != 1 {
		return origin{}, len(values) > 0, false
	}
	from, ok = parseOrigin(values[0])
	return from, true, ok
}

func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != ""
}

// allow answers a preflight. The lists are fixed; the browser does the comparing.
func allow(h http.Header, r *http.Request) {
	h.Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
	h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, DELETE, OPTIONS")
	h.Set("Access-Control-Allow-Headers", strings.Join([]string{
		"Authorization", "Content-Type", "Idempotency-Key", "Afoot-Agent", "Afoot-Ack", "Last-Event-ID", "Range", "traceparent",
		"Mcp-Session-Id", "Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name",
	}, ", "))
	h.Set("Access-Control-Max-Age", "600")
}

// expose lets a listed origin's page read the answer and these headers of it.
func expose(h http.Header, r *http.Request) {
	h.Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
	h.Set("Access-Control-Expose-Headers", strings.Join([]string{
		"Location", "Idempotency-Replayed", "Retry-After", "Content-Range",
		"Afoot-Offset", "Afoot-Next-Offset", "Afoot-Eof", "Afoot-Dropped-Bytes", "Afoot-Timeout-Ms", "Mcp-Session-Id",
		"X-Request-Id",
	}, ", "))
}

func errForeignHost() *Error {
	return refuse(KindForeignHost, "this server does not answer for that Host; the operator can list it in AFOOT_HOSTS")
}

func errForeignOrigin() *Error {
	return refuse(KindForeignOrigin, "pages of that Origin may not use this server; the operator can list it in AFOOT_ORIGINS")
}
