package e2e

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"testing"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"
)

// TestMCPConformance runs the official suite for servers. What does not apply to this
// server, and why, is in mcp/expected-<revision>.yaml; the suite fails as soon as
// anything else fails or something in there passes.
func TestMCPConformance(t *testing.T) {
	t.Parallel()
	needNode(t)
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			d := serve(t)
			expected, err := filepath.Abs(filepath.Join("mcp", "expected-"+revision+".yaml"))
			require.NoError(t, err)
			out, err := node(t, "--import", "./preload.mjs", "node_modules/@modelcontextprotocol/conformance/dist/index.js",
				"server", "--url", d.signed(t)+"/mcp", "--suite", "all", "--spec-version", revision,
				"--expected-failures", expected, "--output-dir", t.TempDir())
			require.NoError(t, err, "%s", out)
		})
	}
}

// signed gives the address of a proxy that adds a token to what has none, because the
// suite has no way to send one. Everything else it leaves as it is, the Host too.
func (d *daemon) signed(t *testing.T) string {
	t.Helper()
	target, err := url.Parse("http://" + d.addr)
	require.NoError(t, err)
	token := d.mint(jwt.MapClaims{"sid": "conformance"})
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		FlushInterval: -1,
		Transport:     d.http.Transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host
			r.Out.Header.Set("Authorization", "Bearer "+token)
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	})
	t.Cleanup(proxy.Close)
	return proxy.URL
}
