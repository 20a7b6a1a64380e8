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
	"os"
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
//
// It does not run beside others: the suite has short time-outs of its own.
func TestMCPConformance(t *testing.T) { //nolint:paralleltest // see above
	needNode(t)
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(revision, func(t *testing.T) {
			d := serve(t)
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

// conforms runs the suite and fails unless all is as the file of that name expects it. Its
// time-outs, of less than a second some of them, are for a machine that has time: on one that
// has none it is run once more.
func (d *daemon) conforms(t *testing.T, address, name string, args ...string) {
	t.Helper()
	expected, err := filepath.Abs(filepath.Join("mcp", "expected-"+name+".yaml"))
	require.NoError(t, err)
	for again := patient(1) > 1; ; again = false {
		results := t.TempDir()
		out, err := node(t, append([]string{
			"--import", "./preload.mjs", "node_modules/@modelcontextprotocol/conformance/dist/index.js", "server",
			"--url", address + "/mcp", "--expected-failures", expected, "--output-dir", results,
		}, args...)...)
		if err == nil {
			return
		}
		t.Logf("what failed, expected or not:\n%s", failedChecks(t, results))
		if !again {
			require.NoError(t, err, "%s", out[max(strings.LastIndex(out, "=== SUMMARY"), 0):])
		}
	}
}

// failedChecks lists what failed by the files that the suite wrote.
func failedChecks(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*", "checks.json"))
	require.NoError(t, err)
	var list strings.Builder
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		var checks []struct {
			ID      string          `json:"id"`
			Status  string          `json:"status"`
			Message string          `json:"errorMessage"`
			Details json.RawMessage `json:"details"`
		}
		require.NoError(t, json.Unmarshal(data, &checks))
		for _, c := range checks {
			if c.Status == "FAILURE" {
				fmt.Fprintf(&list, "%s: %s %.500s\n", c.ID, c.Message, c.Details)
			}
		}
	}
	return list.String()
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
	// The suite never ends the MCP sessions that it opens, and a session may have only so
	// many of them: so each is opened by a session of its own.
	shared := d.mint(jwt.MapClaims{"sid": "conformance"})
	var opened atomic.Int64
	var openers sync.Map
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		FlushInterval: -1,
		Transport:     d.http.Transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host
			token, known := openers.Load(r.In.Header.Get(mcpSession))
			switch {
			case known:
			case r.In.Header.Get("Mcp-Protocol-Version") >= "2026":
				token = shared
			default:
				token = d.mint(jwt.MapClaims{"sid": fmt.Sprintf("conformance-%d", opened.Add(1))})
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
				openers.LoadOrStore(id, token)
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
