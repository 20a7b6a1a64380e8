package api_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"afoot/api"
	"afoot/api/tools"
	"afoot/api/wire"
	"afoot/auth"
	"afoot/registry"
	"afoot/registry/registrytest"
)

// toolAnswer is what POST /tools/{name} answers.
type toolAnswer struct {
	Content []struct{ Type, Text string } `json:"content"`
	IsError bool                          `json:"isError"`
	Value   map[string]any                `json:"value"`
	answer  answer
}

func (t toolAnswer) text() string { return t.Content[0].Text }

// use calls a tool that answers.
func (w *world) use(name, arguments string, headers ...string) toolAnswer {
	w.t.Helper()
	a := w.call(http.MethodPost, "/tools/"+name, arguments, headers...).ok(http.StatusOK)
	t := into[toolAnswer](a)
	t.answer = a
	w.is.Len(t.Content, 1)
	w.is.Equal("text", t.Content[0].Type)
	w.is.Equal(t.IsError, t.Value == nil)
	w.is.Equal("no-store", a.header.Get("Cache-Control"))
	return t
}

// bash gives the arguments of a command that runs a script.
func (w *world) bash(s registrytest.Script, more string) string {
	return strings.TrimSuffix(strings.Replace(w.body(s), `"kind":"bash",`, "", 1), "}") + `,"description":"d"` + more + `}`
}

func TestToolList(t *testing.T) {
	w := newWorld(t)
	all := []string{"bash", "task_output", "task_list", "task_kill"}
	list := func(w *world, query string) []map[string]any {
		return into[wire.ToolList](w.get("/tools" + query).ok(http.StatusOK)).Tools
	}
	for _, query := range []string{"", "?format=mcp"} {
		var names []string
		for _, tool := range list(w, query) {
			names = append(names, tool["name"].(string))
			w.is.NotEmpty(tool["title"])
			w.is.NotEmpty(tool["description"])
			w.is.Equal("object", tool["inputSchema"].(map[string]any)["type"])
			w.is.Equal("object", tool["outputSchema"].(map[string]any)["type"])
			hints := tool["annotations"].(map[string]any)
			w.is.Equal(tool["name"] == "task_list", hints["readOnlyHint"])
			w.is.Equal(tool["name"] == "bash" || tool["name"] == "task_kill", hints["destructiveHint"])
			w.is.Equal(tool["name"] == "task_list" || tool["name"] == "task_kill", hints["idempotentHint"])
			w.is.Equal(tool["name"] == "bash", hints["openWorldHint"])
		}
		w.is.Equal(all, names)
	}
	for i, tool := range list(w, "?format=openai") {
		w.is.Equal("function", tool["type"])
		function := tool["function"].(map[string]any)
		w.is.Equal(all[i], function["name"])
		w.is.NotEmpty(function["description"])
		w.is.NotNil(function["parameters"].(map[string]any)["properties"])
		w.is.Len(function, 3)
	}
	for i, tool := range list(w, "?format=anthropic") {
		w.is.Equal(all[i], tool["name"])
		w.is.NotNil(tool["input_schema"].(map[string]any)["properties"])
		w.is.Len(tool, 3)
	}
	w.get("/tools?format=other").refused(http.StatusBadRequest, "invalid")
	reader := w.as(auth.Claims{Session: "alice", Scopes: auth.TasksRead})
	looks := list(reader, "")
	w.is.Len(looks, 1)
	w.is.Equal("task_list", looks[0]["name"])
	w.as(auth.Claims{Session: "alice", Scopes: auth.Metrics}).get("/tools").refused(http.StatusForbidden, "forbidden")
	guidance := w.get("/tools/guidance").ok(http.StatusOK)
	w.is.Equal("text/plain; charset=utf-8", guidance.header.Get("Content-Type"))
	w.is.Contains(string(guidance.body), "task_output")
	w.is.Equal(1, strings.Count(string(guidance.body), "\n"), "one paragraph")
}

// TestToolRefusals: what HTTP says itself, and what it leaves to the tools.
func TestToolRefusals(t *testing.T) {
	w := newWorld(t)
	w.start(registrytest.Script{})
	for body, want := range map[string]string{
		`[]`:                  "object",
		`"x"`:                 "object",
		`null`:                "object",
		`{"task_id":`:         "ends",
		`{} {}`:               "behind",
		`{"a":1,"a":2}`:       "twice",
		"{\"a\":\"\xff\"}":    "UTF-8",
		`{"a":{"b":1,"b":1}}`: "twice",
	} {
		for _, name := range []string{"task_output", "bash", "nonsense"} {
			w.is.Contains(w.call(http.MethodPost, "/tools/"+name, body).refused(http.StatusBadRequest, "invalid").Detail, want, body)
		}
	}
	w.call(http.MethodPost, "/tools/nonsense", `{}`).refused(http.StatusNotFound, "not_found")
	w.call(http.MethodPost, "/tools/guidance", `{}`).refused(http.StatusNotFound, "not_found")
	w.get("/tools/bash").refused(http.StatusMethodNotAllowed, "method_not_allowed")
	w.call(http.MethodPost, "/tools/bash", `{}`, "Authorization", "").refused(http.StatusUnauthorized, "unauthenticated")
	w.call(http.MethodPost, "/tools/bash", `{}`, "Afoot-Ack", "other").refused(http.StatusBadRequest, "invalid")

	reader := w.as(auth.Claims{Session: "alice", Scopes: auth.TasksRead})
	for _, name := range []string{"bash", "task_output", "task_kill"} {
		a := reader.call(http.MethodPost, "/tools/"+name, `{"task_id":"bash-1"}`)
		a.refused(http.StatusForbidden, "forbidden")
		w.is.Contains(a.header.Get("WWW-Authenticate"), "insufficient_scope")
	}
	w.is.Equal("bash-1 [bash] running — scripted work", reader.use("task_list", `{}`).text())
	pinned := w.as(auth.Claims{Session: "alice", Agent: "default", Scopes: auth.TasksRead | auth.TasksWrite})
	pinned.call(http.MethodPost, "/tools/task_list", `{}`, "Afoot-Agent", "agent-1").refused(http.StatusForbidden, "forbidden")
	w.call(http.MethodPost, "/tools/task_list", `{}`, "Afoot-Agent", "agent-9").refused(http.StatusNotFound, "unknown_agent")

	bob := w.as(auth.Claims{Session: "bob", Scopes: auth.TasksRead | auth.TasksWrite})
	w.is.True(bob.use("task_output", `{"task_id":"bash-1"}`).IsError)
	w.is.True(bob.use("task_kill", `{"task_id":"bash-1"}`).IsError)
	w.is.True(w.use("task_output", `{"task_id":"bash-7"}`).IsError)
	w.is.True(w.use("task_output", `{}`).IsError)
	w.is.False(w.snapshot("bash-1").Reported)
}

func TestToolReadIsCommittedBehindTheFlush(t *testing.T) {
	w := newWorld(t)
	work := w.start(registrytest.Script{})
	work.Output.Append("one\n")
	a := w.use("task_output", `{"task_id":"bash-1"}`)
	w.is.Equal("one\n[status: running]", a.text())
	w.is.Equal("one\n", a.Value["text"])
	w.is.NotContains(a.Value["task"], "reported")
	w.is.NotContains(a.Value["task"], "ownerSession")
	w.is.NotContains(a.Value["task"], "agent")
	for name, want := range map[string]string{"Afoot-Offset": "0", "Afoot-Next-Offset": "4", "Afoot-Eof": "false", "Afoot-Dropped-Bytes": "0", "Afoot-Timeout-Ms": ""} {
		w.is.Equal(want, a.answer.header.Get(name), name)
	}
	w.is.Equal("(no new output)\n[status: running]", w.use("task_output", `{"task_id":"bash-1"}`).text())

	work.Output.Append("two\n")
	work.Complete("exit code: 0")
	broken := func(flush, write func() error) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		out := &brokenWriter{header: http.Header{}, flush: flush, write: func() {
			if write() != nil {
				cancel()
			}
		}}
		r := w.request(ctx, http.MethodPost, "/tools/task_output", `{"task_id":"bash-1"}`)
		r.Host = "localhost"
		func() {
			defer func() { _ = recover() }() // an answer that is not whole aborts its connection
			w.server.Config.Handler.ServeHTTP(out, r)
		}()
		w.is.Positive(out.bytes)
	}
	well := func() error { return nil }
	badly := func() error { return io.ErrClosedPipe }
	broken(badly, well)
	broken(well, badly)
	w.is.False(w.snapshot("bash-1").Reported)

	for range 2 {
		w.is.Equal("two\n[status: completed, exit code: 0]", w.use("task_output", `{"task_id":"bash-1"}`, "Afoot-Ack", "explicit").text())
	}
	w.is.False(w.snapshot("bash-1").Reported)
	w.call(http.MethodPost, "/tasks/bash-1/ack", `{"nextOffset":8}`).ok(http.StatusNoContent)
	w.is.True(w.snapshot("bash-1").Reported)
	w.is.Equal("600000", w.use("task_output", `{"task_id":"bash-1","wait":true,"timeout_ms":700000}`).answer.header.Get("Afoot-Timeout-Ms"))
}

// TestForegroundEndsWithItsCaller: a command ends when its caller has left.
func TestForegroundEndsWithItsCaller(t *testing.T) {
	for _, more := range []string{"", `,"yield_ms":60000`} {
		w := newWorld(t)
		ctx, cancel := context.WithCancel(context.Background())
		t.Cleanup(cancel)
		r := w.request(ctx, http.MethodPost, "/tools/bash", w.bash(registrytest.Script{}, more))
		done := make(chan error, 1)
		go func() {
			res, err := w.server.Client().Do(r)
			if err == nil {
				res.Body.Close()
			}
			done <- err
		}()
		w.eventually(func() bool { return w.jobs.Work("bash-1") != nil }, "the command runs")
		w.waiters("bash-1", 1)
		w.is.True(w.snapshot("bash-1").Foreground)
		cancel()
		w.is.Error(<-done)
		work := w.jobs.Work("bash-1")
		w.eventually(func() bool { return len(work.Cancels()) > 0 }, "the command is stopped")
		w.is.Equal([]string{"the call was cancelled"}, work.Cancels())
	}
}

// TestPromotedOutlivesItsCaller: from the promotion on leaving changes nothing, and the
// end is a notice.
func TestPromotedOutlivesItsCaller(t *testing.T) {
	w := newWorld(t)
	events := w.subscribe("")
	a := w.use("bash", w.bash(registrytest.Script{Start: func(_ ctx, work *registrytest.Work) error {
		work.Output.Append("so far")
		return nil
	}}, `,"yield_ms":20`))
	w.is.Equal("so far\n[still running as background task bash-1]", a.text())
	w.is.Equal("background", a.Value["kind"])
	w.is.Equal("6", a.answer.header.Get("Afoot-Next-Offset"))
	work := w.jobs.Work("bash-1")
	work.Output.Append(" and on")
	work.Complete("exit code: 0")
	events.next("task.done")
	w.is.Empty(work.Cancels())
	w.is.Equal(" and on\n[status: completed, exit code: 0]", w.use("task_output", `{"task_id":"bash-1"}`).text())
}

// TestToolEndsWithItsToken: a blocked call is 401 then, and its command is stopped.
func TestToolEndsWithItsToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(registrytest.Script{})
	brief := *w
	brief.token = w.mint(auth.Claims{Session: "alice", Scopes: auth.TasksRead | auth.TasksWrite}, 5*time.Second)
	type named struct {
		answer

		tool string
	}
	done := make(chan named, 2)
	for name, arguments := range map[string]string{"bash": w.bash(registrytest.Script{}, ""), "task_output": `{"task_id":"bash-1","wait":true}`} {
		go func() { done <- named{brief.call(http.MethodPost, "/tools/"+name, arguments), name} }()
	}
	want := map[string]string{
		"bash":        "The token expired while this call was waiting; the command that it ran is stopped.",
		"task_output": "The token expired while this call was waiting; get a fresh one and ask again.",
	}
	for range 2 {
		a := <-done
		w.is.Equal(want[a.tool], a.refused(http.StatusUnauthorized, "unauthenticated").Detail)
	}
	w.is.Len(w.jobs.Work("bash-2").Cancels(), 1)
}

// TestLeavingForeground: a daemon that is replaced lets go of the commands that it runs.
func TestLeavingForeground(t *testing.T) {
	for _, leave := range []bool{true, false} {
		w := newWorld(t)
		a, err := api.New(api.Config{Service: w.service, Authority: w.authority, Hub: w.hub, Tools: tools.Config{Background: true}})
		w.is.NoError(err)
		t.Cleanup(a.Close)
		server := httptest.NewServer(a.Handler())
		t.Cleanup(server.Close)
		other := *w
		other.server = server
		done := make(chan toolAnswer, 1)
		go func() { done <- other.use("bash", w.bash(registrytest.Script{}, "")) }()
		w.eventually(func() bool { return w.jobs.Work("bash-1") != nil }, "the command runs")
		w.waiters("bash-1", 1)
		if leave {
			a.Leave()
		}
		closing, stop := context.WithCancel(context.Background())
		stop()
		_ = w.service.Close(closing)
		got := <-done
		if leave {
			w.is.Equal("(no output)\n[still running as background task bash-1]", got.text())
		} else {
			w.is.True(got.IsError)
			w.is.Equal("The daemon is shutting down; task bash-1 is stopped with it.", got.text())
		}
	}
}

// TestLogAddress: as the caller addressed the daemon, and by path alone where there is
// no address.
func TestLogAddress(t *testing.T) {
	w := newWorld(t, func(s *setup) { s.api.Tools.ResultBytes = 150 })
	long := registrytest.Script{Start: func(_ ctx, work *registrytest.Work) error {
		work.Output.Append(strings.Repeat("x", 200))
		work.Settle(registry.Outcome{Status: registry.StatusCompleted, Result: json.RawMessage(`{"exitCode":0}`)})
		return nil
	}}
	w.is.Contains(w.use("bash", w.bash(long, ""), "Host", "localhost:7").text(), "full output: http://localhost:7/tasks/bash-1/log]")

	path := filepath.Join(t.TempDir(), "socket")
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	server := &http.Server{Handler: w.server.Config.Handler, ReadHeaderTimeout: time.Minute}
	go server.Serve(l)
	defer server.Close()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}}}
	r := w.request(context.Background(), http.MethodPost, "/tools/bash", w.bash(long, ""))
	res, err := client.Do(r)
	require.NoError(t, err)
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Contains(t, string(data), "full output: /tasks/bash-2/log]")

	secure := httptest.NewTLSServer(w.server.Config.Handler)
	defer secure.Close()
	other := *w
	other.server = secure
	w.is.Contains(other.use("bash", w.bash(long, "")).text(), "full output: "+secure.URL+"/tasks/bash-3/log]")
}

// TestCancelledCallStartsNothing: the answer says so, if somebody is there to read it.
func TestCancelledCallStartsNothing(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, more := range []string{"", `,"run_in_background":true`, `,"yield_ms":5`} {
		r := w.request(ctx, http.MethodPost, "/tools/bash", w.bash(registrytest.Script{}, more))
		r.Host = "localhost"
		out := httptest.NewRecorder()
		w.server.Config.Handler.ServeHTTP(out, r)
		require.Equal(t, http.StatusOK, out.Code)
		require.Contains(t, out.Body.String(), "nothing was started")
		require.Contains(t, out.Body.String(), `"isError":true`)
	}
	require.Zero(t, w.jobs.Starts())
}
