package auth

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// house is a server behind doors that counts who came in.
type house struct {
	http.Handler

	entered int
}

func newHouse(d Doors) *house {
	h := &house{}
	inside := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		h.entered++
		w.WriteHeader(http.StatusOK)
	})
	h.Handler = d.Wrap(func(w http.ResponseWriter, _ *http.Request, e *Error) {
		status := map[Kind]int{KindForeignHost: http.StatusMisdirectedRequest, KindForeignOrigin: http.StatusForbidden}[e.Kind]
		http.Error(w, e.Message, status)
	})(inside)
	return h
}

func (h *house) visit(method, host string, header http.Header) *http.Response {
	r := httptest.NewRequest(method, "/anything", nil)
	r.Host = host
	r.Header = header
	if header == nil {
		r.Header = http.Header{}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func TestJ1OnlyOurHostsComeIn(t *testing.T) {
	d := Doors{Hosts: []string{"Afoot.Example.", "build_box:9000", "192.0.2.7", "2001:DB8::1", "[2001:db8::2]:80"}}
	require.NoError(t, d.Validate())
	pass := []string{
		"localhost", "localhost:7420", "LOCALHOST.", "LocalHost.:80", "localhost:", "[::1]:", "127.0.0.1", "127.0.0.1:7420", "127.0.0.1.",
		"127.255.255.254", "[::1]", "[::1]:7420", "[0:0:0:0:0:0:0:1]", "afoot.example", "AFOOT.example.:443", "build_box", "build_box:1",
		"192.0.2.7:80", "[2001:db8::1]", "[2001:0DB8::1]:7", "[2001:db8::2]",
	}
	refused := []string{
		"", ":", ":80", ".", "..", "evil.example", "localhost.evil.example", "localhost..", ".localhost", "localhost.localdomain", "xlocalhost",
		"foo.localhost", "sub.afoot.example", "127.0.0.1.evil.example", "127.1", "127.0.0.01", "2130706433", "0x7f000001", "0.0.0.0", "128.0.0.1",
		"::1", "[::1", "::1]", "[::1]x", "[::1]:x", "[::]", "[::2]", "[::1%lo]", "[127.0.0.1]", "[::ffff:127.0.0.1]", "[localhost]", "[]",
		"user@localhost", "evil.example@localhost", "localhost@evil.example", "localhost/", "/localhost", "localhost?", "localhost#",
		"localhost\\", "localhost%00", "localhost\x00", "localhost ", " localhost", "local host", "localhost,evil.example", "localhost;",
		"localhost:80:80", "localhost:x", "localhost:-1", "localhost:+80", "localhost:65536", "localhost:999999999999", "lоcalhost", "localhost\u3002",
		strings.Repeat("a", 300), "*", "*.example", "192.0.2.8", "[2001:db8::3]",
	}
	for _, host := range pass {
		h := newHouse(d)
		require.Equal(t, http.StatusOK, h.visit(http.MethodGet, host, nil).StatusCode, "%q", host)
		require.Equal(t, 1, h.entered)
	}
	for _, host := range refused {
		h := newHouse(d)
		own := http.Header{"Origin": {"http://" + host}, "Authorization": {"Bearer x"}}
		for _, header := range []http.Header{nil, own} {
			for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodOptions} {
				res := h.visit(method, host, header)
				require.Equal(t, http.StatusMisdirectedRequest, res.StatusCode, "%q", host)
				requireNoCORS(t, res)
			}
		}
		require.Zero(t, h.entered)
	}
}

func requireNoCORS(t *testing.T, res *http.Response) {
	t.Helper()
	for name := range res.Header {
		require.False(t, strings.HasPrefix(name, "Access-Control-"), "%s is sent", name)
	}
}

func TestOriginMustBeOurOwnOrListed(t *testing.T) {
	d := Doors{Hosts: []string{"afoot.example"}, Origins: []string{"https://UI.example:443", "http://tools.example:8080", "chrome-extension://abcdef"}}
	require.NoError(t, d.Validate())
	const own, listed, foreign = "own", "listed", "foreign"
	tests := []struct {
		host, origin, want string
	}{
		{"localhost:7420", "http://localhost:7420", own},
		{"localhost:7420", "HTTP://LOCALHOST:7420", own},
		{"localhost", "http://localhost", own},
		{"localhost", "http://localhost:80", own},
		{"localhost:80", "http://localhost", own},
		{"[::1]:7420", "http://[::1]:7420", own},
		{"[0:0::1]:7420", "http://[::1]:7420", own},
		{"localhost.:7420", "http://localhost.:7420", own},
		{"localhost:7420", "https://localhost:7420", foreign},
		{"localhost:7420", "http://localhost", foreign},
		{"localhost:7420", "http://localhost:7421", foreign},
		{"localhost:7420", "http://127.0.0.1:7420", foreign},
		{"127.0.0.1:7420", "http://localhost:7420", foreign},
		{"localhost:7420", "http://afoot.example", foreign},
		{"localhost:7420", "http://localhost:7420/", foreign},
		{"localhost:7420", "http://localhost:7420.evil.example", foreign},
		{"localhost:7420", "http://x@localhost:7420", foreign},
		{"localhost:7420", "//localhost:7420", foreign},
		{"localhost:7420", "localhost:7420", foreign},
		{"localhost:7420", "null", foreign},
		{"localhost:7420", "Null", foreign},
		{"localhost:7420", "", foreign},
		{"localhost:7420", "*", foreign},
		{"localhost:7420", "file://", foreign},
		{"localhost:7420", "https://ui.example", listed},
		{"localhost:7420", "https://ui.example:443", listed},
		{"localhost:7420", "http://ui.example", foreign},
		{"localhost:7420", "https://ui.example:444", foreign},
		{"localhost:7420", "https://ui.example.evil.example", foreign},
		{"localhost:7420", "https://xui.example", foreign},
		{"localhost:7420", "https://ui.example, http://evil.example", foreign},
		{"localhost:7420", "http://tools.example:8080", listed},
		{"localhost:7420", "http://tools.example", foreign},
		{"localhost:7420", "chrome-extension://abcdef", listed},
		{"localhost:7420", "chrome-extension://abcdeg", foreign},
		{"localhost:7420", "https://abcdef", foreign},
	}
	for _, tt := range tests {
		t.Run(tt.host+" from "+tt.origin, func(t *testing.T) {
			for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
				h := newHouse(d)
				res := h.visit(method, tt.host, http.Header{"Origin": {tt.origin}, "Content-Type": {"text/plain"}, "Cookie": {"token=x"}})
				require.Equal(t, "Origin", res.Header.Get("Vary"))
				if tt.want == foreign {
					require.Equal(t, http.StatusForbidden, res.StatusCode)
					require.Zero(t, h.entered, "nothing ran")
					requireNoCORS(t, res)
					continue
				}
				require.Equal(t, http.StatusOK, res.StatusCode)
				require.Equal(t, 1, h.entered)
				if tt.want == own {
					requireNoCORS(t, res)
					continue
				}
				require.Equal(t, tt.origin, res.Header.Get("Access-Control-Allow-Origin"))
				for _, name := range []string{"Afoot-Next-Offset", "Mcp-Session-Id", "X-Request-Id"} {
					require.Contains(t, res.Header.Get("Access-Control-Expose-Headers"), name)
				}
				require.Empty(t, res.Header.Get("Access-Control-Allow-Credentials"))
			}
		})
	}
	h := newHouse(d)
	res := h.visit(http.MethodGet, "localhost", http.Header{"Origin": {"http://localhost", "https://ui.example"}})
	require.Equal(t, http.StatusForbidden, res.StatusCode, "two origins are none")
}

func TestJ2Preflight(t *testing.T) {
	d := Doors{Origins: []string{"https://ui.example"}}
	ask := func(origin string) (*house, *http.Response) {
		h := newHouse(d)
		return h, h.visit(http.MethodOptions, "localhost:7420", http.Header{
			"Origin": {origin}, "Access-Control-Request-Method": {"POST"}, "Access-Control-Request-Headers": {"authorization,x-evil"},
		})
	}
	h, res := ask("https://ui.example")
	require.Zero(t, h.entered)
	require.Equal(t, http.StatusNoContent, res.StatusCode)
	require.Equal(t, http.Header{
		"Vary":                         {"Origin"},
		"Access-Control-Allow-Origin":  {"https://ui.example"},
		"Access-Control-Allow-Methods": {"GET, HEAD, POST, DELETE, OPTIONS"},
		"Access-Control-Allow-Headers": {"Authorization, Content-Type, Idempotency-Key, Afoot-Agent, Afoot-Ack, Last-Event-ID, Range, traceparent, Mcp-Session-Id, Mcp-Protocol-Version, Mcp-Method, Mcp-Name"},
		"Access-Control-Max-Age":       {"600"},
	}, res.Header)

	for _, origin := range []string{"https://evil.example", "null", ""} {
		h, res = ask(origin)
		require.Equal(t, http.StatusForbidden, res.StatusCode)
		require.Zero(t, h.entered)
		requireNoCORS(t, res)
	}

	h = newHouse(d)
	res = h.visit(http.MethodOptions, "localhost", http.Header{"Origin": {"https://ui.example"}})
	require.Equal(t, 1, h.entered, "OPTIONS without a requested method is no preflight")
	require.Equal(t, "https://ui.example", res.Header.Get("Access-Control-Allow-Origin"))
	h = newHouse(d)
	h.visit(http.MethodOptions, "localhost", http.Header{"Access-Control-Request-Method": {"POST"}})
	require.Equal(t, 1, h.entered, "nor is it without an origin")
}

// TestDoorsOnTLS: the own origin is https there, and nothing else is.
func TestDoorsOnTLS(t *testing.T) {
	server := httptest.NewTLSServer(newHouse(Doors{}))
	defer server.Close()
	for origin, status := range map[string]int{
		server.URL: http.StatusOK,
		strings.Replace(server.URL, "https://", "http://", 1): http.StatusForbidden,
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
		require.NoError(t, err)
		req.Header.Set("Origin", origin)
		res, err := server.Client().Do(req)
		require.NoError(t, err)
		res.Body.Close()
		require.Equal(t, status, res.StatusCode, origin)
	}
}

// TestDoorsOnTheWire sends what a client library would not: no Host, an empty
// one, an absolute target, and requests over a Unix socket.
func TestDoorsOnTheWire(t *testing.T) {
	h := newHouse(Doors{})
	path := t.TempDir() + "/s"
	listener, err := net.Listen("unix", path)
	require.NoError(t, err)
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: h, DisableGeneralOptionsHandler: true}}
	server.Start()
	defer server.Close()
	tests := map[string]struct {
		request string
		status  int
	}{
		"loopback":                 {"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 200},
		"foreign":                  {"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421},
		"empty":                    {"GET / HTTP/1.1\r\nHost:\r\n\r\n", 421},
		"none, old HTTP":           {"GET / HTTP/1.0\r\n\r\n", 421},
		"absolute target wins":     {"GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 421},
		"userinfo in the target":   {"GET http://localhost@evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 421},
		"two hosts":                {"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n", 400},
		"two origins":              {"GET / HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\nOrigin: http://localhost\r\n\r\n", 403},
		"forwarded host isn't one": {"GET / HTTP/1.1\r\nHost: evil.example\r\nX-Forwarded-Host: localhost\r\n\r\n", 421},
		"forwarded proto neither":  {"GET / HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-Proto: https\r\nOrigin: https://localhost\r\n\r\n", 403},
		"any path":                 {"OPTIONS * HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("unix", path)
			require.NoError(t, err)
			defer conn.Close()
			_, err = io.WriteString(conn, tt.request)
			require.NoError(t, err)
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			require.NoError(t, err)
			defer res.Body.Close()
			require.Equal(t, tt.status, res.StatusCode)
		})
	}
}

func TestDoorsValidate(t *testing.T) {
	for _, host := range []string{"", "*", "*.example", "http://example", "example/", "a b", "exämple", "[::1", "user@example", "example:x"} {
		require.ErrorContains(t, Doors{Hosts: []string{"ok.example", host}}.Validate(), fmt.Sprintf("%q", host))
	}
	for _, origin := range []string{"", "*", "null", "example", "https://", "https://*.example", "https://example/", "https://a@example", "//example", "https:example", "https://example:"} {
		require.ErrorContains(t, Doors{Origins: []string{"https://ok.example", origin}}.Validate(), fmt.Sprintf("%q", origin))
	}
	require.NoError(t, Doors{}.Validate())

	ignored := newHouse(Doors{Hosts: []string{"*", ""}, Origins: []string{"*", "null", ""}})
	require.Equal(t, http.StatusMisdirectedRequest, ignored.visit(http.MethodGet, "evil.example", nil).StatusCode)
	require.Equal(t, http.StatusForbidden, ignored.visit(http.MethodGet, "localhost", http.Header{"Origin": {"null"}}).StatusCode)
}

func TestOwnOriginNeedsTLSToBeHTTPS(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Host, r.TLS = "localhost", &tls.ConnectionState{}
	own, ok := ownOrigin(r)
	require.True(t, ok)
	require.Equal(t, origin{"https", "localhost", "443"}, own)
}
