package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// rpc is an answer of JSON-RPC, with the members of the results of the extension Tasks.
type rpc struct {
	Error *struct {
		Code int             `json:"code"`
		Data json.RawMessage `json:"data"`
	} `json:"error"`
	Result struct {
		ResultType     string `json:"resultType"`
		TaskID         string `json:"taskId"`
		Status         string `json:"status"`
		TTLMs          *int64 `json:"ttlMs"`
		PollIntervalMs int64  `json:"pollIntervalMs"`
		IsError        bool   `json:"isError"`
		Content        []struct {
			Text string `json:"text"`
		} `json:"content"`
		Result *struct {
			Content []struct {
				Text string `json:"text"`
			} `json:"content"`
			IsError bool `json:"isError"`
		} `json:"result"`
	} `json:"result"`
}

// extension is what a client says of itself that knows the extension, and nothing of
// one that doesn't.
func extension(knows bool) fields {
	if !knows {
		return fields{}
	}
	return fields{"extensions": fields{"io.modelcontextprotocol/tasks": fields{}}}
}

// rpc makes one request of the protocol without sessions.
func (c *client) rpc(t *testing.T, knows bool, method, name string, params fields) rpc {
	t.Helper()
	params["_meta"] = fields{
		"io.modelcontextprotocol/protocolVersion":    "2026-07-28",
		"io.modelcontextprotocol/clientInfo":         fields{"name": "e2e", "version": "1"},
		"io.modelcontextprotocol/clientCapabilities": extension(knows),
	}
	a := c.do(t, http.MethodPost, "/mcp", fields{"jsonrpc": "2.0", "id": 1, "method": method, "params": params},
		"Accept: application/json, text/event-stream", "Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: "+method, "Mcp-Name: "+name)
	var r rpc
	a.into(t, &r)
	return r
}

// taskOf starts a command by a call that is answered by a task.
func (c *client) taskOf(t *testing.T, command string) string {
	t.Helper()
	r := c.rpc(t, true, "tools/call", "bash", fields{"name": "bash", "arguments": shell(command)})
	require.Nil(t, r.Error)
	require.Equal(t, "task", r.Result.ResultType)
	require.Equal(t, "working", r.Result.Status)
	require.Positive(t, r.Result.PollIntervalMs)
	require.GreaterOrEqual(t, len(r.Result.TaskID), 22, "nobody guesses %s", r.Result.TaskID)
	return r.Result.TaskID
}

// ofTask is a request about such a task.
func (c *client) ofTask(t *testing.T, method, id string) rpc {
	t.Helper()
	return c.rpc(t, true, method, id, fields{"taskId": id})
}

// TestMCPTasks is the extension Tasks from its start to its end, over a restart too.
func TestMCPTasks(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("mcp-tasks")
	g := newGate(t)
	id := c.taskOf(t, "echo up; "+g.wait()+"exit 3")
	require.Equal(t, "working", c.ofTask(t, "tasks/get", id).Result.Status)

	// Strangers know nothing of it, and who does not know the extension can't ask.
	require.Equal(t, -32602, d.as("others").ofTask(t, "tasks/get", id).Error.Code)
	require.Equal(t, -32602, d.as("others").ofTask(t, "tasks/cancel", id).Error.Code)
	require.Equal(t, -32602, c.ofTask(t, "tasks/get", "bash-1").Error.Code)
	refused := c.rpc(t, false, "tasks/get", id, fields{"taskId": id})
	require.Equal(t, -32021, refused.Error.Code)
	require.JSONEq(t, `{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`, string(refused.Error.Data))
	for _, method := range []string{"tasks/result", "tasks/list"} {
		require.Equal(t, -32601, c.ofTask(t, method, id).Error.Code)
	}
	plain := c.rpc(t, false, "tools/call", "bash", fields{"name": "bash", "arguments": shell("echo out; exit 1")})
	require.Equal(t, "complete", plain.Result.ResultType)
	require.Equal(t, "out\n[exit code: 1]", plain.Result.Content[0].Text)
	require.False(t, plain.Result.IsError)

	// A command that failed has completed, with an error of the tool.
	g.open(t)
	var r rpc
	eventually(t, 10*time.Second, "the end", func() bool {
		r = c.ofTask(t, "tasks/get", id)
		return r.Result.Status != "working"
	})
	require.Equal(t, "completed", r.Result.Status)
	require.Equal(t, "complete", r.Result.ResultType)
	require.True(t, r.Result.Result.IsError)
	require.Equal(t, "up\n[exit code: 3]", r.Result.Result.Content[0].Text)
	require.Equal(t, r.Result, c.ofTask(t, "tasks/get", id).Result, "the same each time")

	// One that is cancelled is stopped.
	other := c.taskOf(t, "exec sleep 918")
	require.Equal(t, "complete", c.ofTask(t, "tasks/cancel", other).Result.ResultType)
	eventually(t, 10*time.Second, "the end", func() bool { return c.ofTask(t, "tasks/get", other).Result.Status == "cancelled" })
	require.Equal(t, "complete", c.ofTask(t, "tasks/cancel", other).Result.ResultType)
	require.Empty(t, c.subscribe(t, "", "").quiet(t, c), "what was asked for needs no notice")

	// All are there after a death of the daemon, by the same ids.
	running := c.taskOf(t, "exec sleep 919")
	d.die(t)
	d.again()
	require.Equal(t, "completed", c.ofTask(t, "tasks/get", id).Result.Status)
	require.Equal(t, "cancelled", c.ofTask(t, "tasks/get", other).Result.Status)
	lost := c.ofTask(t, "tasks/get", running)
	require.Equal(t, "completed", lost.Result.Status, "%+v", lost)
	require.True(t, lost.Result.Result.IsError)
}

// TestMCPTaskEndsOutliveAReload: a daemon that did not see who asked for an end tells it
// as the one before would have, and swallows no output.
func TestMCPTaskEndsOutliveAReload(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("mcp-ends")
	crashed := c.taskOf(t, "echo last words; kill -SEGV $$")
	stopped := c.taskOf(t, "trap '' TERM; echo kept; while :; do sleep 0.1; done")
	known := func(id string) snapshot {
		id, _, _ = strings.Cut(id, ".")
		return c.get(t, id)
	}
	eventually(t, 10*time.Second, "one has ended, one has printed", func() bool {
		return known(crashed).Status == "killed" && known(stopped).OutputBytes > 0
	})
	require.Equal(t, "complete", c.ofTask(t, "tasks/cancel", stopped).Result.ResultType)
	d.reloads(t, false)

	first := c.ofTask(t, "tasks/get", crashed).Result
	require.Equal(t, "completed", first.Status)
	require.Equal(t, "last words\n[killed by signal: SIGSEGV]", first.Result.Content[0].Text)
	require.Equal(t, first, c.ofTask(t, "tasks/get", crashed).Result, "the same each time")
	eventually(t, 20*time.Second, "the end", func() bool { return c.ofTask(t, "tasks/get", stopped).Result.Status != "working" })
	require.Equal(t, "cancelled", c.ofTask(t, "tasks/get", stopped).Result.Status)
	require.Equal(t, "kept\n", c.read(t, known(stopped).ID, "").Text, "nobody was given it")
}
