package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"
)

// mcpCall writes a tools/call on a connection and leaves the answer to be read. An MCP
// session is named for the protocol with sessions; "" is for the one without.
func (w *wire) mcpCall(t *testing.T, c *client, session, name string, arguments any) {
	t.Helper()
	headers := []string{"Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call", "Mcp-Name: " + name}
	params := fields{"name": name, "arguments": arguments, "_meta": fields{
		"io.modelcontextprotocol/protocolVersion":    "2026-07-28",
		"io.modelcontextprotocol/clientInfo":         fields{"name": "e2e", "version": "1"},
		"io.modelcontextprotocol/clientCapabilities": fields{},
	}}
	if session != "" {
		headers = []string{"Mcp-Protocol-Version: 2025-11-25", mcpSession + ": " + session}
		delete(params, "_meta")
	}
	body, err := json.Marshal(fields{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
	require.NoError(t, err)
	_, err = io.WriteString(w.conn, bare(append([]string{
		"POST /mcp HTTP/1.1", "Host: " + c.d.addr, c.bearer(), "Accept: application/json, text/event-stream",
		"Content-Type: application/json", fmt.Sprintf("Content-Length: %d", len(body)),
	}, headers...)...)+string(body))
	require.NoError(t, err)
}

// mcpOpen opens an MCP session.
func (c *client) mcpOpen(t *testing.T) (session string) {
	t.Helper()
	a := c.do(t, http.MethodPost, "/mcp", fields{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": fields{
		"protocolVersion": "2025-11-25", "capabilities": fields{}, "clientInfo": fields{"name": "e2e", "version": "1"},
	}}, "Accept: application/json, text/event-stream")
	require.Equal(t, http.StatusOK, a.status, "%s", a)
	require.NotEmpty(t, a.header.Get(mcpSession))
	return a.header.Get(mcpSession)
}

// TestMCPClientVanishes is about clients that are gone in the middle of a call: its
// command is stopped, and what its answer would have carried stays unread.
func TestMCPClientVanishes(t *testing.T) {
	t.Parallel()
	d := serve(t)
	for _, stateful := range []bool{false, true} {
		t.Run(fmt.Sprintf("stateful %t", stateful), func(t *testing.T) {
			t.Parallel()
			c := d.as(fmt.Sprintf("vanish-%t", stateful))
			session := ""
			if stateful {
				session = c.mcpOpen(t)
			}
			w, err := d.dial()
			require.NoError(t, err)
			w.mcpCall(t, c, session, "bash", shell("trap '' TERM; echo up; while :; do sleep 0.1; done", fields{"description": "alone"}))
			var id string
			require.NoError(t, c.appears(t.Context(), "alone", &id))
			c.says(t, id, "up")
			require.NoError(t, w.cut())
			d.gone(t, id, grace+time.Second)
			s := c.over(t, id)
			require.True(t, s.Reported, "%+v", s)
			require.Equal(t, "killed", s.Status)

			g := newGate(t)
			id = c.good(t, "bash", shell("echo up; "+g.wait()+"echo down", fields{"run_in_background": true})).Value.TaskID
			w, err = d.dial()
			require.NoError(t, err)
			w.mcpCall(t, c, session, "task_output", fields{"task_id": id, "wait": true, "timeout_ms": 60000})
			require.NoError(t, c.until(t.Context(), id, func(s snapshot) bool { return s.Waiters == 1 }))
			require.NoError(t, w.cut())
			require.NoError(t, c.until(t.Context(), id, func(s snapshot) bool { return s.Waiters == 0 }))
			events := c.subscribe(t, "", "")
			g.open(t)
			require.Equal(t, id, events.done(t, 1)[0].notice(t).Task.ID)
			require.Equal(t, "up\ndown\n[status: completed, exit code: 0]", c.good(t, "task_output", fields{"task_id": id}).text())
		})
	}
}

// TestMCPSessionEnds stops what a session's calls wait for when it is ended, and no
// background task.
func TestMCPSessionEnds(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("ends")
	session := c.mcpOpen(t)
	kept := c.good(t, "bash", shell("exec sleep 920", fields{"run_in_background": true})).Value.TaskID
	w, err := d.dial()
	require.NoError(t, err)
	defer func() { _ = w.conn.Close() }()
	w.mcpCall(t, c, session, "bash", shell("exec sleep 921", fields{"description": "waited for"}))
	var id string
	require.NoError(t, c.appears(t.Context(), "waited for", &id))
	a := c.do(t, http.MethodDelete, "/mcp", nil, mcpSession+": "+session)
	require.Less(t, a.status, 300, "%s", a)
	d.gone(t, id, time.Second)
	require.Equal(t, "killed", c.over(t, id).Status)
	require.NotEmpty(t, d.aliveOf(kept))
	a = c.do(t, http.MethodPost, "/mcp", fields{"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
		"Accept: application/json, text/event-stream", mcpSession+": "+session)
	require.Equal(t, http.StatusNotFound, a.status, "%s", a)
}

// TestMCPSessionIsItsOpeners keeps agents of one session apart too.
func TestMCPSessionIsItsOpeners(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("openers")
	one, two := c.open(t, fields{}), c.open(t, fields{})
	session := one.mcpOpen(t)
	list := func(c *client) int {
		t.Helper()
		return c.do(t, http.MethodPost, "/mcp", fields{"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
			"Accept: application/json, text/event-stream", mcpSession+": "+session, "Mcp-Protocol-Version: 2025-11-25").status
	}
	require.Equal(t, http.StatusOK, list(one))
	for _, other := range []*client{two, c, d.as("others"), d.anyone(), d.with(d.mint(jwt.MapClaims{"sid": "openers", "scope": "tasks:read"}))} {
		require.Equal(t, http.StatusNotFound, list(other), "%+v", other.agent)
	}
	require.Equal(t, http.StatusOK, list(one))
}
