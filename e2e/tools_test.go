package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"
)

// TestToolBashTexts are the texts of commands that somebody waits for, byte by byte.
func TestToolBashTexts(t *testing.T) {
	t.Parallel()
	d := serve(t, "AFOOT_RESULT_BYTES=100")
	c := d.as("bash")
	for _, row := range []struct{ command, text string }{
		{"printf 'out\\n'", "out\n"},
		{"printf out", "out"},
		{"echo out; echo err >&2", "out\nerr\n"},
		{"true", "(no output)"},
		{"exit 3", "(no output)\n[exit code: 3]"},
		{"echo out; exit 3", "out\n[exit code: 3]"},
		{"printf 'out\\n\\n'; exit 3", "out\n\n[exit code: 3]"},
		{"echo out; kill -9 $$", "out\n[killed by signal: SIGKILL]"},
		{"printf '\\377x'", "\ufffdx"},
	} {
		r := c.good(t, "bash", shell(row.command))
		require.Equal(t, row.text, r.text(), "%s", row.command)
		require.Equal(t, "foreground", r.Value.Kind)
		require.True(t, r.Value.EOF)
		require.True(t, r.Value.Task.terminal())
		s, err := c.whole(t.Context(), r.Value.Task.ID)
		require.NoError(t, err)
		require.True(t, s.Foreground && s.Reported, "%+v", s)
	}
	r := c.good(t, "bash", shell("echo up; sleep 905", fields{"timeout_ms": 3000}))
	require.Equal(t, "up\n[timed out after 3000ms]", r.text())
	require.Equal(t, "killed", r.Value.Task.Status)

	// A long text keeps its tail and says where the rest is.
	r = c.good(t, "bash", shell("seq 1 200; exit 1"))
	full := r.Value.Task.ID
	marker := fmt.Sprintf("\n[output truncated; full output: http://%s/tasks/%s/log]\n[exit code: 1]", d.addr, full)
	require.True(t, strings.HasSuffix(r.text(), "\n199\n200"+marker), "%q", r.text())
	require.LessOrEqual(t, len(r.text()), 100+len(marker))
	require.Greater(t, len(r.Value.Text), 80)
	require.Equal(t, r.Value.NextOffset-int64(len(r.Value.Text)), r.Value.Offset)
	require.True(t, strings.HasPrefix(string(c.log(t, full)), "1\n2\n3\n"))

	// Nobody is told of what somebody waited for.
	events := c.subscribe(t, "", "")
	require.Empty(t, events.quiet(t, c))
	require.NotContains(t, c.good(t, "task_list", fields{}).text(), full)
}

// TestToolTexts are the texts of the three control tools, byte by byte.
func TestToolTexts(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("texts")
	require.Equal(t, "(no background tasks)", c.good(t, "task_list", fields{}).text())

	g := newGate(t)
	r := c.good(t, "bash", shell("echo up; "+g.wait()+"printf down; exit 4", fields{"run_in_background": true, "description": "two steps"}))
	require.Equal(t, "started background task bash-1", r.text())
	require.Equal(t, "background", r.Value.Kind)
	require.Equal(t, "bash-1", r.Value.TaskID)
	require.Equal(t, "bash-1 [bash] running — two steps", c.good(t, "task_list", fields{}).text())
	c.says(t, "bash-1", "up")
	id := fields{"task_id": "bash-1"}
	require.Equal(t, "up\n[status: running]", c.good(t, "task_output", id).text())
	require.Equal(t, "(no new output)\n[status: running]", c.good(t, "task_output", id).text())
	r = c.good(t, "task_output", fields{"task_id": "bash-1", "wait": true, "timeout_ms": 50})
	require.Equal(t, "(no new output)\n[status: running]", r.text())
	r = c.good(t, "task_output", fields{"task_id": "bash-1", "wait": true, "timeout_ms": 1}, "Afoot-Ack: explicit")
	require.Equal(t, "(no new output)\n[status: running]", r.text())
	g.open(t)
	r = c.good(t, "task_output", fields{"task_id": "bash-1", "wait": true, "timeout_ms": 3_600_000})
	require.Equal(t, "down\n[status: completed, exit code: 4]", r.text())
	require.EqualValues(t, 600_000, r.Value.TimeoutMs)
	require.Equal(t, "600000", r.header.Get("Afoot-Timeout-Ms"))
	require.Equal(t, "3", r.header.Get("Afoot-Offset"))
	require.Equal(t, "7", r.header.Get("Afoot-Next-Offset"))
	require.Equal(t, "true", r.header.Get("Afoot-Eof"))
	require.Equal(t, "0", r.header.Get("Afoot-Dropped-Bytes"))
	require.Equal(t, "(no new output)\n[status: completed, exit code: 4]", c.good(t, "task_output", id).text())
	require.Equal(t, "bash-1 [bash] completed — two steps", c.good(t, "task_list", fields{}).text())
	require.Equal(t, "task bash-1 had already finished [status: completed, exit code: 4]", c.good(t, "task_kill", id).text())

	// A kill leaves what was printed to be read.
	r = c.good(t, "bash", shell("echo up; exec sleep 906", fields{"run_in_background": true}))
	id = fields{"task_id": r.Value.TaskID}
	c.says(t, r.Value.TaskID, "up")
	r = c.good(t, "task_kill", fields{"task_id": r.Value.TaskID, "reason": "enough"})
	require.Equal(t, "requested cancellation of task bash-2", r.text())
	require.Equal(t, "requested", r.Value.Outcome)
	c.finish(t, "bash-2")
	require.Equal(t, "task bash-2 had already finished [status: killed, signal: SIGTERM]", c.good(t, "task_kill", id).text())
	require.Equal(t, "up\n[status: killed, signal: SIGTERM]", c.good(t, "task_output", id).text())
	require.Equal(t, "bash-1 [bash] completed — two steps\nbash-2 [bash] killed — e2e", c.good(t, "task_list", fields{}).text())

	// The answers show neither the owner nor what was reported.
	a := c.do(t, http.MethodPost, "/tools/task_list", fields{})
	require.NotContains(t, string(a.body), "ownerSession")
	require.NotContains(t, string(a.body), "reported")
	require.NotContains(t, string(a.body), `"agent"`)
}

// TestToolLimits are texts about tasks with an outputLimitBytes.
func TestToolLimits(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("limits")
	g := newGates(t, 8)
	for i, limit := range []int{48, 20, 8, 1, 30, 30, 30, 64} {
		s := c.start(t, "printf '%.0s界' $(seq 100); "+g[i].wait(), fields{"outputLimitBytes": limit})
		require.Equal(t, fmt.Sprintf("bash-%d", i+1), s.ID)
		c.says(t, s.ID, strings.Repeat("界", 100))
	}
	output := func(id string) string { return c.tool(t, "task_output", fields{"task_id": id}).text() }
	require.Equal(t, "界界界\n[output truncated]\n[status: running]", output("bash-1"))
	require.Equal(t, "d]\n[status: running]", output("bash-2"))
	require.Equal(t, "unning]", output("bash-3")[1:])
	require.Equal(t, "]", output("bash-4"))
	require.Equal(t, "task bash-7\n[result truncated]", c.good(t, "task_kill", fields{"task_id": "bash-7"}).text())
	// Errors about a task that is seen fit too; of one that is not seen nothing is known.
	for id, limit := range map[string]int{"bash-4": 1, "bash-3": 8, "bash-5": 30, "bash-8": 64} {
		for _, args := range []fields{
			{"task_id": id, "wait": true, "timeout_ms": -1}, {"task_id": id, "nonsense": strings.Repeat("x", 100)}, {"task_id": id, "wait": "yes"},
		} {
			r := c.tool(t, "task_output", args)
			require.True(t, r.IsError, "%v", args)
			require.LessOrEqual(t, len(r.text()), limit, "%q", r.text())
			require.NotEmpty(t, r.text())
		}
	}
	for i := range g {
		if i != 6 {
			g[i].open(t)
		}
	}
	s, _ := c.finish(t, "bash-3")
	require.Equal(t, "completed", s.Status)
	require.Equal(t, "code: 0]", output("bash-3"))
}

// TestToolRefusals tells what is an error of HTTP from what is a tool's.
func TestToolRefusals(t *testing.T) {
	t.Parallel()
	d := serve(t, "AFOOT_MAX_TASKS_PER_OWNER=2")
	c := d.as("refusals")
	other := d.as("others").start(t, "exec sleep 907")
	post := func(c *client, path string, body any, headers ...string) *answer {
		return c.do(t, http.MethodPost, path, body, headers...)
	}
	post(c, "/tools/nonsense", fields{}).refused(t, http.StatusNotFound, "not_found")
	post(c, "/tools/task_list", `{"a":`).refused(t, http.StatusBadRequest, "invalid")
	post(c, "/tools/task_list", `[]`).refused(t, http.StatusBadRequest, "invalid")
	post(c, "/tools/bash", `{"command":"true","command":"false","description":"x"}`).refused(t, http.StatusBadRequest, "invalid")
	post(c, "/tools/task_list", `{} {}`).refused(t, http.StatusBadRequest, "invalid")
	post(c, "/tools/task_list", `{}`, "Content-Type: text/plain").refused(t, http.StatusUnsupportedMediaType, "unsupported_media")
	post(d.with("nonsense"), "/tools/task_list", fields{}).refused(t, http.StatusUnauthorized, "unauthenticated")
	reader := d.with(d.mint(jwt.MapClaims{"sid": "refusals", "scope": "tasks:read"}))
	for _, name := range []string{"bash", "task_kill", "task_output"} {
		post(reader, "/tools/"+name, fields{"task_id": "bash-1"}).refused(t, http.StatusForbidden, "forbidden")
	}
	require.Equal(t, "(no background tasks)", reader.good(t, "task_list", fields{}).text())
	post(c, "/tools/task_list", fields{}, "Afoot-Agent: agent-99").refused(t, http.StatusNotFound, "unknown_agent")

	for _, id := range []string{other.ID, "bash-99", "nonsense", ""} {
		c.bad(t, "task_output", fields{"task_id": id})
		c.bad(t, "task_kill", fields{"task_id": id})
	}
	for _, row := range []struct {
		name  string
		args  any
		words []string
	}{
		{"bash", fields{"command": "true"}, []string{"description"}},
		{"bash", fields{"description": "x"}, []string{"command"}},
		{"bash", shell("true", fields{"timeoutMs": 5}), []string{"timeoutMs"}},
		{"bash", shell("true", fields{"timeout_ms": "5"}), []string{"timeout_ms"}},
		{"bash", shell("true", fields{"timeout_ms": 0}), []string{"timeout_ms"}},
		{"bash", shell("true", fields{"timeout_ms": 1.5}), []string{"timeout_ms"}},
		{"bash", shell("true", fields{"workdir": "/nowhere/at/all"}), []string{"workdir"}},
		{"bash", shell("true", fields{"run_in_background": true, "yield_ms": 5}), []string{"yield_ms"}},
		{"bash", shell("true", fields{"description": "two\nlines"}), nil},
		{"task_output", fields{"task_id": "bash-1", "offset": 3}, []string{"offset"}},
		{"task_output", fields{}, []string{"task_id"}},
		{"task_list", fields{"all": true}, []string{"all"}},
		{"task_kill", fields{"task_id": "bash-1", "signal": "INT"}, []string{"signal"}},
	} {
		c.bad(t, row.name, row.args, row.words...)
	}
	require.Empty(t, c.list(t, ""), "none of it started anything")

	// The limit counts those whose callers wait, too.
	g := newGate(t)
	waiting := make(chan error, 1)
	go func() {
		_, err := c.tryTool(t.Context(), "bash", shell(g.wait()))
		waiting <- err
	}()
	eventually(t, 10*time.Second, "the first runs", func() bool { return len(c.list(t, "status=running")) == 1 })
	c.good(t, "bash", shell("exec sleep 908", fields{"run_in_background": true}))
	c.bad(t, "bash", shell("true"), "2")
	require.Len(t, c.list(t, ""), 2)
	g.open(t)
	require.NoError(t, <-waiting)
	c.good(t, "bash", shell("true"))
}

// TestToolDefinitions are the three forms of the list, and the guidance.
func TestToolDefinitions(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("definitions")
	list := func(c *client, format string) (tools []map[string]any) {
		t.Helper()
		a := c.do(t, http.MethodGet, "/tools"+format, nil)
		require.Equal(t, http.StatusOK, a.status, "%s", a)
		var all struct {
			Tools []map[string]any `json:"tools"`
		}
		a.into(t, &all)
		return all.Tools
	}
	arguments := func(schema any) (names []string) {
		for name := range schema.(map[string]any)["properties"].(map[string]any) {
			names = append(names, name)
		}
		return names
	}
	want := map[string][]string{
		"bash":        {"command", "description", "workdir", "timeout_ms", "run_in_background", "yield_ms"},
		"task_output": {"task_id", "wait", "timeout_ms"},
		"task_list":   nil,
		"task_kill":   {"task_id", "reason"},
	}
	check := func(name, schema any) {
		t.Helper()
		require.Contains(t, want, name)
		require.Equal(t, "object", schema.(map[string]any)["type"])
		require.Equal(t, false, schema.(map[string]any)["additionalProperties"])
		if want[name.(string)] != nil {
			require.ElementsMatch(t, want[name.(string)], arguments(schema), "%s", name)
		}
	}
	for _, format := range []string{"", "?format=mcp"} {
		tools := list(c, format)
		require.Len(t, tools, 4)
		for _, tool := range tools {
			check(tool["name"], tool["inputSchema"])
			require.NotEmpty(t, tool["description"])
			require.NotEmpty(t, tool["title"])
			require.Equal(t, "object", tool["outputSchema"].(map[string]any)["type"])
			require.Contains(t, tool["annotations"], "readOnlyHint")
		}
	}
	tools := list(c, "?format=openai")
	require.Len(t, tools, 4)
	for _, tool := range tools {
		require.Equal(t, "function", tool["type"])
		function := tool["function"].(map[string]any)
		check(function["name"], function["parameters"])
		require.NotEmpty(t, function["description"])
	}
	tools = list(c, "?format=anthropic")
	require.Len(t, tools, 4)
	for _, tool := range tools {
		check(tool["name"], tool["input_schema"])
		require.NotEmpty(t, tool["description"])
		require.Len(t, tool, 3, "that API refuses members that it does not know: %v", tool)
	}
	c.do(t, http.MethodGet, "/tools?format=nonsense", nil).refused(t, http.StatusBadRequest, "invalid")
	reader := d.with(d.mint(jwt.MapClaims{"sid": "definitions", "scope": "tasks:read"}))
	tools = list(reader, "")
	require.Len(t, tools, 1)
	require.Equal(t, "task_list", tools[0]["name"])

	a := c.do(t, http.MethodGet, "/tools/guidance", nil)
	require.Equal(t, http.StatusOK, a.status)
	require.True(t, strings.HasPrefix(a.header.Get("Content-Type"), "text/plain"), "%v", a.header)
	require.NotContains(t, strings.TrimSpace(string(a.body)), "\n", "one paragraph")
	require.Contains(t, string(a.body), "task_output")
}

// TestToolWithoutBackground leaves the arguments out of the schema and refuses them.
func TestToolWithoutBackground(t *testing.T) {
	t.Parallel()
	d := serve(t, "AFOOT_BASH_BACKGROUND=false")
	c := d.as("foreground")
	a := c.do(t, http.MethodGet, "/tools", nil)
	require.NotContains(t, string(a.body), "run_in_background")
	require.NotContains(t, string(a.body), "yield_ms")
	c.bad(t, "bash", shell("true", fields{"run_in_background": true}), "run_in_background")
	c.bad(t, "bash", shell("true", fields{"run_in_background": false}), "run_in_background")
	c.bad(t, "bash", shell("true", fields{"yield_ms": 5}), "yield_ms")
	require.Equal(t, "out\n", c.good(t, "bash", shell("echo out")).text())
	require.Len(t, c.list(t, ""), 1)
}
