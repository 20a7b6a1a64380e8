package web_test

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"afoot/web"
)

func get(t *testing.T, method, target string, header http.Header) *http.Response {
	t.Helper()
	r := httptest.NewRequest(method, target, nil)
	maps.Copy(r.Header, header)
	w := httptest.NewRecorder()
	web.Handler().ServeHTTP(w, r)
	return w.Result()
}

func body(t *testing.T, resp *http.Response) string {
	t.Helper()
	raw, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(raw)
}

func TestHandlerServes(t *testing.T) {
	for _, c := range []struct {
		method, path, media string
		status              int
	}{
		{"GET", "/", "text/html; charset=utf-8", 200},
		{"HEAD", "/", "text/html; charset=utf-8", 200},
		{"GET", "/app.js", "text/javascript; charset=utf-8", 200},
		{"GET", "/style.css", "text/css; charset=utf-8", 200},
		{"GET", "/index.html", "", 404},
		{"GET", "/page/app.js", "", 404},
		{"GET", "/doc.go", "", 404},
		{"GET", "/nothing", "", 404},
		{"GET", "//app.js", "", 404},
		{"GET", "/../handler.go", "", 404},
		{"POST", "/", "", 405},
		{"OPTIONS", "/app.js", "", 405},
		{"DELETE", "/nothing", "", 404},
	} {
		t.Run(c.method+" "+c.path, func(t *testing.T) {
			resp := get(t, c.method, "http://localhost"+c.path, nil)
			require.Equal(t, c.status, resp.StatusCode)
			if c.media != "" {
				require.Equal(t, c.media, resp.Header.Get("Content-Type"))
				require.NotEmpty(t, resp.Header.Get("ETag"))
			}
			if c.method == "HEAD" {
				require.Empty(t, body(t, resp))
			}
			if c.status == 405 {
				require.Equal(t, "GET, HEAD", resp.Header.Get("Allow"))
			}
			require.Equal(t, "nosniff", resp.Header.Get("X-Content-Type-Options"))
			require.Equal(t, "no-referrer", resp.Header.Get("Referrer-Policy"))
			require.Equal(t, "no-cache", resp.Header.Get("Cache-Control"))
			policy := resp.Header.Get("Content-Security-Policy")
			for _, rule := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"} {
				require.Contains(t, policy, rule+";")
			}
			require.NotContains(t, policy, "unsafe")
		})
	}
}

func TestHandlerRevalidates(t *testing.T) {
	first := get(t, "GET", "http://localhost/app.js", nil)
	again := get(t, "GET", "http://localhost/app.js", http.Header{"If-None-Match": {first.Header.Get("ETag")}})
	require.Equal(t, 304, again.StatusCode)
	require.Empty(t, body(t, again))
	require.NotEqual(t, first.Header.Get("ETag"), get(t, "GET", "http://localhost/style.css", nil).Header.Get("ETag"))
}

// Every file that the page or one of its scripts names is there, and none is
// named that lives elsewhere.
func TestPageNamesOnlyItsOwnFiles(t *testing.T) {
	named := regexp.MustCompile(`(?:src|href)="([^"#]+)"|from "([^"]+)"`)
	todo, seen := []string{"/"}, map[string]bool{"/": true}
	for len(todo) > 0 {
		at := todo[0]
		todo = todo[1:]
		resp := get(t, "GET", "http://localhost"+at, nil)
		require.Equal(t, 200, resp.StatusCode, at)
		text := body(t, resp)
		for _, match := range named.FindAllStringSubmatch(text, -1) {
			next := strings.TrimPrefix(match[1]+match[2], ".")
			if strings.HasPrefix(next, "data:") || seen[next] {
				continue
			}
			seen[next] = true
			todo = append(todo, next)
		}
		if !strings.HasSuffix(at, ".css") {
			text = strings.ReplaceAll(text, "http://www.w3.org/2000/svg", "")
		}
		require.NotRegexp(t, `https?://|url\(`, text, at)
	}
	require.Greater(t, len(seen), 3)
}

// What a task prints must not become markup: no sink that parses text is named.
func TestScriptsOnlyWriteText(t *testing.T) {
	sinks := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment|srcdoc|\beval\b|new Function|\.style\b|setHTML`)
	for _, name := range scripts(t) {
		require.NotRegexp(t, sinks, body(t, get(t, "GET", "http://localhost/"+name, nil)), name)
	}
}
