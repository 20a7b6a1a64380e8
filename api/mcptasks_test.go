package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"afoot/auth"
	"afoot/registry"
)

const (
	version2026 = "2026-07-28"
	tasksName   = "io.modelcontextprotocol/tasks"
)

// rpc makes a request of the protocol of 2026-07-28. Declared says that its client
// knows the extension for tasks.
func (w *world) rpc(method, params string, declared bool, more ...string) (int, rpcAnswer) {
	w.t.Helper()
	extensions := ""
	if declared {
		extensions = fmt.Sprintf(`"extensions":{%q:{}}`, tasksName)
	}
	meta := fmt.Sprintf(`{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":{%s}}`, version2026, extensions)
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":%q,"params":{%s"_meta":%s}}`, method, params, meta)
	headers := append([]string{"Mcp-Protocol-Version", version2026, "Mcp-Method", method}, more...)
	if method == "tools/call" {
		headers = append(headers, "Mcp-Name", "bash")
	}
	res, err := w.post(context.Background(), body, headers...)
	w.is.NoError(err)
	defer res.Body.Close()
	var answer rpcAnswer
	w.is.NoError(json.NewDecoder(res.Body).Decode(&answer))
	return res.StatusCode, answer
}

type rpcAnswer struct {
	Result *mcpTask
	Error  *struct {
		Code int
		Data json.RawMessage
	}
}

type mcpTask struct {
	ResultType     string
	TaskID         string
	Status         string
	CreatedAt      time.Time
	LastUpdatedAt  time.Time
	TTLMs          *int64 `json:"ttlMs"`
	PollIntervalMs int
	Result         *struct {
		Content           []struct{ Text string }
		IsError           bool
		StructuredContent map[string]any
	}
}

func (w *world) task(method, params string, more ...string) mcpTask {
	w.t.Helper()
	status, answer := w.rpc(method, params, true, more...)
	w.is.Equal(http.StatusOK, status)
	w.is.Nil(answer.Error)
	return *answer.Result
}

func (w *world) refusedTask(method, params string, declared bool) (status, code int) {
	w.t.Helper()
	status, answer := w.rpc(method, params, declared)
	w.is.NotNil(answer.Error, "%+v", answer.Result)
	return status, answer.Error.Code
}

func withKey(s *setup) {
	s.api.MCP.Key = []byte(strings.Repeat("k", 32))
	s.api.MCP.Retention = time.Hour
}

func (w *world) bashTask() mcpTask {
	w.t.Helper()
	return w.task("tools/call", fmt.Sprintf(`"name":"bash","arguments":{"command":%q,"description":"x"},`, w.command()))
}

func byID(t mcpTask) string { return fmt.Sprintf(`"taskId":%q,`, t.TaskID) }

func TestMCPTask(t *testing.T) {
	w := newWorld(t, withBackground, withKey)
	created := w.bashTask()
	w.is.Equal("task", created.ResultType)
	w.is.Equal("working", created.Status)
	w.is.Equal(1000, created.PollIntervalMs)
	w.is.GreaterOrEqual(*created.TTLMs, time.Hour.Milliseconds())
	w.is.NotEqual("bash-1", created.TaskID)

	working := w.task("tasks/get", byID(created))
	w.is.Equal("complete", working.ResultType)
	w.is.Equal("working", working.Status)
	w.is.Nil(working.Result)
	w.is.Equal("complete", w.task("tasks/update", byID(created)+`"inputResponses":{},`).ResultType)

	work := w.jobs.Work("bash-1")
	work.Output.Append("out\n")
	work.Settle(registry.Outcome{Status: registry.StatusCompleted, Detail: "exit code: 3", Result: []byte(`{"exitCode":3}`)})
	w.eventually(func() bool { return w.snapshot("bash-1").Status.Terminal() }, "ended")
	for range 2 {
		done := w.task("tasks/get", byID(created))
		w.is.Equal("completed", done.Status)
		w.is.Equal("out\n[exit code: 3]", done.Result.Content[0].Text)
		w.is.True(done.Result.IsError)
		w.is.Equal("out\n", done.Result.StructuredContent["text"])
		w.is.False(done.LastUpdatedAt.Before(done.CreatedAt))
	}
	w.eventually(func() bool { return w.snapshot("bash-1").Reported }, "reported")
	w.is.Equal("(no new output)\n[status: completed, exit code: 3]", string(w.get("/tasks/bash-1/output", "Accept", "text/plain").body))
}

func TestMCPTaskCancelled(t *testing.T) {
	w := newWorld(t, withBackground, withKey)
	created := w.bashTask()
	w.is.Equal("complete", w.task("tasks/cancel", byID(created)).ResultType)
	w.eventually(func() bool { return w.snapshot("bash-1").Status.Terminal() }, "ended")
	w.is.Equal("cancelled", w.task("tasks/get", byID(created)).Status)
	w.is.Equal("complete", w.task("tasks/cancel", byID(created)).ResultType, "again")

	// A death that nobody asked for has a result.
	other := w.bashTask()
	w.jobs.Work("bash-2").Settle(registry.Outcome{Status: registry.StatusKilled, Detail: "signal: SIGSEGV", Result: []byte(`{"signal":"SIGSEGV"}`)})
	w.eventually(func() bool { return w.snapshot("bash-2").Status.Terminal() }, "ended")
	done := w.task("tasks/get", byID(other))
	w.is.Equal("completed", done.Status)
	w.is.Equal("(no output)\n[killed by signal: SIGSEGV]", done.Result.Content[0].Text)
}

func TestMCPTaskIsForThoseWhoAskForIt(t *testing.T) {
	w := newWorld(t, withBackground, withKey)
	created := w.bashTask()
	for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
		status, code := w.refusedTask(method, byID(created), false)
		w.is.Equal(-32021, code, method)
		w.is.Equal(http.StatusBadRequest, status)
		_, code = w.refusedTask(method, `"taskId":"bash-1",`, true)
		w.is.Equal(-32602, code, method)
		_, code = w.as(auth.Claims{Session: "bob", Scopes: auth.TasksRead | auth.TasksWrite}).refusedTask(method, byID(created), true)
		w.is.Equal(-32602, code, "of another session")
	}
	for _, method := range []string{"tasks/result", "tasks/list"} {
		status, code := w.refusedTask(method, byID(created), true)
		w.is.Equal(-32601, code, method)
		w.is.Equal(http.StatusNotFound, status)
	}
	res, err := w.post(context.Background(), fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":"tasks/get","params":{%s"_meta":{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":{"extensions":{%q:{}}}}}}`, byID(created), version2026, tasksName),
		"Mcp-Protocol-Version", version2026, "Mcp-Method", "tasks/get", "Mcp-Name", "another")
	w.is.NoError(err)
	w.is.NoError(res.Body.Close())
	w.is.Equal(http.StatusBadRequest, res.StatusCode, "a header that names another task")
	_, code := w.refusedTask("subscriptions/listen", `"notifications":{"taskIds":["x"]},`, false)
	w.is.Equal(-32021, code)

	// Whoever does not declare it waits for the result.
	answers := make(chan rpcAnswer, 1)
	go func() {
		_, answer := w.rpc("tools/call", fmt.Sprintf(`"name":"bash","arguments":{"command":%q,"description":"x"},`, w.command()), false)
		answers <- answer
	}()
	w.waiters("bash-2", 1)
	w.jobs.Work("bash-2").Complete("exit code: 0")
	answer := <-answers
	w.is.Equal("complete", answer.Result.ResultType)
	w.is.Empty(answer.Result.TaskID)

	// And a call that names a way of its own goes that way.
	own := w.task("tools/call", fmt.Sprintf(`"name":"bash","arguments":{"command":%q,"description":"x","run_in_background":true},`, w.command()))
	w.is.Empty(own.TaskID)
}
