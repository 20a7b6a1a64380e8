package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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
			d := serve(t, "AFOOT_MAX_STREAMS_PER_SESSION=200") // nor does it end its streams
			d.conforms(t, d.signed(t, nil), revision, "--suite", "all", "--spec-version", revision)
		})
	}
}

// TestMCPTasksConformance runs the suite's scenarios for the extension Tasks.
func TestMCPTasksConformance(t *testing.T) {
	t.Parallel()
	needNode(t)
	d := serve(t)
	address := d.signed(t, translate)
	for _, scenario := range []string{
		"tasks-lifecycle", "tasks-capability-negotiation", "tasks-wire-fields", "tasks-request-state-removal", "tasks-mrtr-input",
		"tasks-request-headers", "tasks-dispatch-and-envelope", "tasks-required-task-error", "tasks-mrtr-composition",
	} {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			d.conforms(t, address, "tasks", "--scenario", scenario)
		})
	}
}

// conforms runs the suite and fails unless all is as the file of that name expects it.
func (d *daemon) conforms(t *testing.T, address, name string, args ...string) {
	t.Helper()
	expected, err := filepath.Abs(filepath.Join("mcp", "expected-"+name+".yaml"))
	require.NoError(t, err)
	out, err := node(t, append([]string{
		"--import", "./preload.mjs", "node_modules/@modelcontextprotocol/conformance/dist/index.js", "server",
		"--url", address + "/mcp", "--expected-failures", expected, "--output-dir", t.TempDir(),
	}, args...)...)
	require.NoError(t, err, "%s", out)
}

// mcpSession is the header that names an MCP session.
const mcpSession = "Mcp-Session-Id"

// signed gives the address of a proxy that adds a token, because the suite has no way
// to send one. Everything else it leaves as it is, the Host too, but for what change
// does to bodies.
func (d *daemon) signed(t *testing.T, change func(*http.Request, []byte) []byte) string {
	t.Helper()
	target, err := url.Parse("http://" + d.addr)
	require.NoError(t, err)
	// The suite never ends the MCP sessions that it opens, and there is a bound of them for
	// each subject: so each has one of its own.
	var subjects atomic.Int64
	var tokens sync.Map
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		FlushInterval: -1,
		Transport:     d.http.Transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host
			token, known := tokens.Load(r.In.Header.Get(mcpSession))
			if !known {
				token = d.mint(jwt.MapClaims{"sid": "conformance", "sub": strconv.FormatInt(subjects.Add(1), 10)})
			}
			r.Out.Header.Set("Authorization", "Bearer "+token.(string))
			if change == nil {
				return
			}
			if body, err := io.ReadAll(r.In.Body); err == nil {
				body = change(r.Out, body)
				r.Out.Body, r.Out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			}
		},
		ModifyResponse: func(r *http.Response) error {
			if id := r.Header.Get(mcpSession); id != "" {
				token, _ := strings.CutPrefix(r.Request.Header.Get("Authorization"), "Bearer ")
				tokens.LoadOrStore(id, token)
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	})
	t.Cleanup(proxy.Close)
	return proxy.URL
}

// translate makes calls of the tools that the suite wants for its scenarios of tasks
// into calls of ours that do the same. What they answer is not touched.
func translate(r *http.Request, body []byte) []byte {
	var message struct {
		Method string `json:"method"`
		Params struct {
			Name      string `json:"name"`
			Arguments struct {
				Seconds int `json:"seconds"`
			} `json:"arguments"`
		} `json:"params"`
	}
	if json.Unmarshal(body, &message) != nil || message.Method != "tools/call" {
		return body
	}
	name, arguments := "bash", fields{"description": message.Params.Name}
	switch message.Params.Name {
	case "greet", "confirm_delete": // answer at once
		name, arguments = "task_list", fields{}
	case "slow_compute":
		arguments["command"] = fmt.Sprintf("sleep %d; echo done", message.Params.Arguments.Seconds)
	case "failing_job":
		arguments["command"] = "echo failed; exit 1"
	default:
		return body
	}
	if r.Header.Get("Mcp-Name") == message.Params.Name {
		r.Header.Set("Mcp-Name", name)
	}
	var whole map[string]any
	if json.Unmarshal(body, &whole) != nil {
		return body
	}
	params := whole["params"].(map[string]any)
	params["name"], params["arguments"] = name, arguments
	changed, err := json.Marshal(whole)
	if err != nil {
		return body
	}
	r.Header.Set("Content-Length", strconv.Itoa(len(changed)))
	return changed
}
