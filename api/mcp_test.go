package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"afoot/api/wire"
	"afoot/auth"
	"afoot/registry"
	"afoot/registry/registrytest"
)

// bearer sends the world's token.
type bearer struct {
	token string
	agent string
	next  http.RoundTripper
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	if b.agent != "" {
		r.Header.Set("Afoot-Agent", b.agent)
	}
	return b.next.RoundTrip(r)
}

func withBackground(s *setup) { s.api.Tools.Background = true }

// sessionful is the newest protocol version with sessions.
const sessionful = "2025-11-25"

// mcpClient connects the SDK's client.
func (w *world) mcpClient(version string, opts *sdk.ClientOptions) *sdk.ClientSession {
	w.t.Helper()
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, opts)
	transport := &sdk.StreamableClientTransport{
		Endpoint: w.server.URL + "/mcp", MaxRetries: -1,
		HTTPClient: &http.Client{Transport: bearer{token: w.token, next: w.server.Client().Transport}},
	}
	session, err := client.Connect(context.Background(), transport, &sdk.ClientSessionOptions{ProtocolVersion: version})
	w.is.NoError(err)
	w.t.Cleanup(func() { _ = session.Close() })
	return session
}

func (w *world) tool(session *sdk.ClientSession, name string, arguments any) *sdk.CallToolResult {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	result, err := session.CallTool(ctx, &sdk.CallToolParams{Name: name, Arguments: arguments})
	w.is.NoError(err)
	return result
}

func text(r *sdk.CallToolResult) string {
	var texts []string
	for _, c := range r.Content {
		if t, ok := c.(*sdk.TextContent); ok {
			texts = append(texts, t.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// command names work that ends when it is asked to, as an argument of the tool bash.
func (w *world) command() string {
	var fields struct{ Command string }
	s := registrytest.Script{Cancel: func(work *registrytest.Work, _ string) error {
		go work.Settle(registry.Outcome{Status: registry.StatusKilled, Detail: "signal: SIGTERM", Result: []byte(`{"signal":"SIGTERM"}`)})
		return nil
	}}
	w.is.NoError(json.Unmarshal([]byte(w.body(s)), &fields))
	return fields.Command
}

type arguments = map[string]any

func TestMCPToolsByBothProtocols(t *testing.T) {
	for _, version := range []string{sessionful, ""} {
		t.Run("protocol "+version, func(t *testing.T) {
			w := newWorld(t, withBackground)
			session := w.mcpClient(version, nil)
			tools, err := session.ListTools(context.Background(), nil)
			w.is.NoError(err)
			names := map[string]*sdk.Tool{}
			for _, tool := range tools.Tools {
				names[tool.Name] = tool
				w.is.NotNil(tool.OutputSchema)
			}
			w.is.Len(names, 4)
			w.is.True(names["task_list"].Annotations.ReadOnlyHint)
			w.is.True(*names["task_kill"].Annotations.DestructiveHint)

			started := w.tool(session, "bash", arguments{"command": w.command(), "description": "x", "run_in_background": true})
			w.is.Equal("started background task bash-1", text(started))
			w.is.Equal(map[string]any{"kind": "background", "taskId": "bash-1"}, started.StructuredContent)

			work := w.jobs.Work("bash-1")
			work.Output.Append("hello\n")
			work.Complete("exit code: 0")
			read := w.tool(session, "task_output", arguments{"task_id": "bash-1", "wait": true})
			w.is.Equal("hello\n[status: completed, exit code: 0]", text(read))
			w.eventually(func() bool { return w.snapshot("bash-1").Reported }, "reported")

			bad := w.tool(session, "task_output", arguments{"task_id": "bash-1", "nope": 1})
			w.is.True(bad.IsError)
			_, err = session.CallTool(context.Background(), &sdk.CallToolParams{Name: "nope"})
			w.is.EqualValues(jsonrpc.CodeInvalidParams, wireCode(err))
		})
	}
}

func wireCode(err error) int64 {
	var wire *jsonrpc.Error
	if !errors.As(err, &wire) {
		return 0
	}
	return wire.Code
}

func TestMCPForegroundEndsWithItsCall(t *testing.T) {
	for _, version := range []string{sessionful, ""} {
		t.Run("protocol "+version, func(t *testing.T) {
			w := newWorld(t, withBackground)
			session := w.mcpClient(version, nil)
			ctx, cancel := context.WithCancel(context.Background())
			failed := make(chan error, 1)
			go func() {
				_, err := session.CallTool(ctx, &sdk.CallToolParams{Name: "bash", Arguments: arguments{
					"command": w.command(), "description": "x",
				}})
				failed <- err
			}()
			w.waiters("bash-1", 1)
			cancel() // notifications/cancelled before 2026-07-28, the end of the request since
			w.is.Error(<-failed)
			w.eventually(func() bool { return w.snapshot("bash-1").Status.Terminal() }, "stopped")
			w.is.Equal(registry.StatusKilled, w.snapshot("bash-1").Status)
		})
	}
}

// post makes a raw call of the protocol.
func (w *world) post(ctx context.Context, body string, headers ...string) (*http.Response, error) {
	w.t.Helper()
	r := w.request(ctx, http.MethodPost, "/mcp", body, append([]string{"Accept", "application/json, text/event-stream"}, headers...)...)
	return w.server.Client().Do(r)
}

const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`

// hello opens a raw MCP session.
func (w *world) hello() string {
	w.t.Helper()
	res, err := w.post(context.Background(), hello)
	w.is.NoError(err)
	defer res.Body.Close()
	w.is.Equal(http.StatusOK, res.StatusCode)
	id := res.Header.Get("Mcp-Session-Id")
	w.is.NotEmpty(id)
	return id
}

func readCall(id int, arguments string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"task_output","arguments":%s}}`, id, arguments)
}

// TestMCPAnswerToNobodyIsNotDelivered: a client of the older protocols that hangs up
// while its call waits leaves the text unread and the notice due.
func TestMCPAnswerToNobodyIsNotDelivered(t *testing.T) {
	w := newWorld(t, withBackground)
	id := w.hello()
	work := w.start(registrytest.Script{})
	ctx, cancel := context.WithCancel(context.Background())
	failed := make(chan error, 1)
	go func() {
		res, err := w.post(ctx, readCall(2, `{"task_id":"bash-1","wait":true}`), "Mcp-Session-Id", id)
		if err == nil {
			res.Body.Close()
		}
		failed <- err
	}()
	w.waiters("bash-1", 1)
	cancel()
	w.is.Error(<-failed)
	w.waiters("bash-1", 0)
	work.Output.Append("unread")
	work.Complete("exit code: 0")
	w.eventually(func() bool { return w.snapshot("bash-1").Status.Terminal() }, "ended")
	w.is.False(w.snapshot("bash-1").Reported)
	res, err := w.post(context.Background(), readCall(3, `{"task_id":"bash-1"}`), "Mcp-Session-Id", id)
	w.is.NoError(err)
	defer res.Body.Close()
	var answer struct{ Result sdk.CallToolResult }
	w.is.NoError(json.NewDecoder(res.Body).Decode(&answer))
	w.is.Equal("unread\n[status: completed, exit code: 0]", text(&answer.Result))
}

func TestMCPSessionIsItsOpeners(t *testing.T) {
	w := newWorld(t, withBackground)
	id := w.hello()
	list := `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
	status := func(w *world, id string, headers ...string) int {
		res, err := w.post(context.Background(), list, append([]string{"Mcp-Session-Id", id}, headers...)...)
		w.is.NoError(err)
		defer res.Body.Close()
		return res.StatusCode
	}
	w.is.Equal(http.StatusOK, status(w, id))
	w.is.Equal(http.StatusNotFound, status(w, "else"))
	w.is.Equal(http.StatusNotFound, status(w.as(auth.Claims{Session: "bob", Scopes: auth.TasksRead | auth.TasksWrite}), id))

	agent := into[wire.Agent](w.call(http.MethodPost, "/agents", `{}`).ok(http.StatusCreated)).Id
	w.is.Equal(http.StatusNotFound, status(w, id, "Afoot-Agent", agent), "another agent of the session")
	res, err := w.post(context.Background(), hello, "Afoot-Agent", agent)
	w.is.NoError(err)
	res.Body.Close()
	own := res.Header.Get("Mcp-Session-Id")
	w.is.Equal(http.StatusOK, status(w, own, "Afoot-Agent", agent))
	renewed := w.as(auth.Claims{Session: "alice", Scopes: auth.TasksRead})
	w.is.Equal(http.StatusOK, status(renewed, id), "another token of the opener")
	w.call(http.MethodDelete, "/agents/"+agent, "").ok(http.StatusNoContent)
	w.is.Equal(http.StatusGone, status(w, own, "Afoot-Agent", agent))

	// By hand: the client has no use for it any more.
	w.is.Equal(http.StatusNoContent, w.call(http.MethodDelete, "/mcp", "", "Mcp-Session-Id", id).status)
	w.is.Equal(http.StatusNotFound, status(w, id))
}

func TestMCPScopes(t *testing.T) {
	w := newWorld(t, withBackground).as(auth.Claims{Session: "alice", Scopes: auth.TasksRead})
	session := w.mcpClient("", nil)
	tools, err := session.ListTools(context.Background(), nil)
	w.is.NoError(err)
	w.is.Len(tools.Tools, 1)
	w.is.Equal("task_list", tools.Tools[0].Name)
	_, err = session.CallTool(context.Background(), &sdk.CallToolParams{Name: "task_kill", Arguments: arguments{"task_id": "bash-1"}})
	w.is.ErrorContains(err, "Forbidden")
}

func TestMCPResources(t *testing.T) {
	for _, version := range []string{sessionful, ""} {
		t.Run("protocol "+version, func(t *testing.T) {
			w := newWorld(t, withBackground)
			updates := make(chan string, 10)
			session := w.mcpClient(version, &sdk.ClientOptions{
				ResourceUpdatedHandler: func(_ context.Context, r *sdk.ResourceUpdatedNotificationRequest) { updates <- r.Params.URI },
			})
			work := w.start(registrytest.Script{})
			over := w.ended("bytes \xff\x00")
			list, err := session.ListResources(context.Background(), nil)
			w.is.NoError(err)
			w.is.Len(list.Resources, 2)
			uri := list.Resources[0].URI
			w.is.Equal("afoot://tasks/bash-1/log", uri)
			templates, err := session.ListResourceTemplates(context.Background(), nil)
			w.is.NoError(err)
			w.is.Equal("afoot://tasks/{id}/log", templates.ResourceTemplates[0].URITemplate)

			work.Output.Append("so far 世"[:8])
			read, err := session.ReadResource(context.Background(), &sdk.ReadResourceParams{URI: uri})
			w.is.NoError(err)
			w.is.Equal("so far ", read.Contents[0].Text)
			read, err = session.ReadResource(context.Background(), &sdk.ReadResourceParams{URI: list.Resources[1].URI})
			w.is.NoError(err)
			w.is.Equal([]byte("bytes \xff\x00"), read.Contents[0].Blob)
			_, err = session.ReadResource(context.Background(), &sdk.ReadResourceParams{URI: "afoot://tasks/bash-99/log"})
			w.is.EqualValues(jsonrpc.CodeInvalidParams, wireCode(err))

			subscribe := func(uri string) error {
				return session.Subscribe(context.Background(), &sdk.SubscribeParams{URI: uri})
			}
			w.is.NoError(subscribe(uri))
			work.Complete("exit code: 0")
			w.is.Equal(uri, <-updates)
			w.is.NoError(subscribe(logAddressOf(over.ID)), "it has ended")
			for update := uri; update != logAddressOf(over.ID); update = <-updates {
				w.is.Equal(uri, update, "one that ended in that moment may be told twice")
			}
			w.is.False(w.snapshot("bash-1").Reported, "an update is no delivery")
		})
	}
}

func logAddressOf(id registry.ID) string { return "afoot://tasks/" + string(id) + "/log" }

func TestMCPRefusesCallsByTheirID(t *testing.T) {
	w := newWorld(t)
	begun := w.call(http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, "Accept", "application/json, text/event-stream")
	w.is.Equal(http.StatusOK, begun.status)
	headers := []string{"Accept", "application/json, text/event-stream", "Mcp-Session-Id", begun.header.Get("Mcp-Session-Id"), "Mcp-Protocol-Version", sessionful}
	for body, want := range map[string]struct{ status, code int }{
		`{"jsonrpc":"2.0","id":"a","method":"nothing/there"}`: {http.StatusOK, jsonrpc.CodeMethodNotFound},
		`{"jsonrpc":"2.0","id":"a","method":"tools/call"}`:    {http.StatusBadRequest, jsonrpc.CodeInvalidRequest},
	} {
		got := w.call(http.MethodPost, "/mcp", body, headers...)
		w.is.Equal(want.status, got.status, body)
		w.is.Equal("application/json", got.header.Get("Content-Type"))
		var answer struct {
			ID    string
			Error struct{ Code int }
		}
		w.is.NoError(json.Unmarshal(got.body, &answer), "%s", got.body)
		w.is.Equal("a", answer.ID)
		w.is.Equal(want.code, answer.Error.Code, body)
	}
}

// An answer can't carry a task's output twice: the second read waits for its fate.
func TestMCPBatchReadsATaskOnce(t *testing.T) {
	w := newWorld(t)
	w.ended("hello\n")
	accept := []string{"Accept", "application/json, text/event-stream"}
	begun := w.call(http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, accept...)
	w.is.Equal(http.StatusOK, begun.status)
	headers := slices.Concat(accept, []string{"Mcp-Session-Id", begun.header.Get("Mcp-Session-Id"), "Mcp-Protocol-Version", "2025-03-26"})
	read := `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"task_output","arguments":{"task_id":"bash-1"}}}`
	got := w.call(http.MethodPost, "/mcp", fmt.Sprintf("["+read+","+read+"]", 1, 2), headers...)
	w.is.Equal(http.StatusOK, got.status)
	w.is.Equal(1, strings.Count(string(got.body), `"text":"hello\n[status: completed`), "%s", got.body)
	w.is.Equal(1, strings.Count(string(got.body), `-32602`), "%s", got.body)
}
