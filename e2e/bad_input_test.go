package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// TestBadInput tries everything that must be refused with a clear problem: its
// code and status, what it names, that nothing changed, and that no id was burnt.
func TestBadInput(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("bad")
	live := c.start(t, `echo out; sleep 801`).ID
	c.says(t, live, "out")
	file := filepath.Join(d.work, "plain-file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))

	type row struct {
		name, method, path string
		body               any
		status             int
		code               string
		says               string
	}
	var rows []row
	start := func(name string, body any, says string) {
		rows = append(rows, row{"start: " + name, "POST", "/tasks", body, 400, "invalid", says})
	}
	for name, text := range map[string]string{
		"nothing":             "",
		"blanks":              " \n",
		"broken":              `{"kind":"bash","command":"true"`,
		"broken text":         `{"kind":"bash","command":"true}`,
		"single quotes":       `{'kind':'bash'}`,
		"comma too many":      `{"kind":"bash","command":"true",}`,
		"comment":             `{"kind":"bash","command":"true"} // hi`,
		"two values":          `{"kind":"bash","command":"true"}{"kind":"bash","command":"true"}`,
		"something behind":    `{"kind":"bash","command":"true"} x`,
		"null":                `null`,
		"list":                `[{"kind":"bash","command":"true"}]`,
		"text":                `"true"`,
		"number":              `5`,
		"not JSON":            `kind=bash&command=true`,
		"bad escape":          `{"kind":"bash","command":"\x41"}`,
		"newline in text":     "{\"kind\":\"bash\",\"command\":\"a\nb\"}",
		"empty object":        `{}`,
		"no kind":             `{"command":"true"}`,
		"empty kind":          `{"kind":"","command":"true"}`,
		"kind null":           `{"kind":null,"command":"true"}`,
		"kind number":         `{"kind":5,"command":"true"}`,
		"no command":          `{"kind":"bash"}`,
		"command null":        `{"kind":"bash","command":null}`,
		"command number":      `{"kind":"bash","command":5}`,
		"command list":        `{"kind":"bash","command":["true"]}`,
		"command bool":        `{"kind":"bash","command":true}`,
		"limit as text":       `{"kind":"bash","command":"true","outputLimitBytes":"5"}`,
		"limit huge":          `{"kind":"bash","command":"true","outputLimitBytes":1e400}`,
		"member with a case":  `{"kind":"bash","Command":"true"}`,
		"kind with a case":    `{"Kind":"bash","command":"true"}`,
		"a case beside right": `{"kind":"bash","command":"true","COMMAND":"false"}`,
	} {
		start(name, text, "")
	}
	with := func(name string, value any) map[string]any { return startBody("true", fields{name: value}) }
	for name, x := range map[string]struct {
		body any
		says string
	}{
		"unknown member":            {with("comand", "x"), "comand"},
		"another unknown member":    {with("background", true), "background"},
		"unknown kind":              {with("kind", "nope"), "nope"},
		"kind in capitals":          {with("kind", "Bash"), "Bash"},
		"kind with a blank":         {with("kind", "bash "), ""},
		"empty command":             {with("command", ""), "command"},
		"empty label":               {with("label", ""), "label"},
		"label too long":            {with("label", strings.Repeat("x", 513)), "label"},
		"label too long in bytes":   {with("label", strings.Repeat("界", 171)), "label"},
		"label with a newline":      {with("label", "a\nb"), "label"},
		"label with a tab":          {with("label", "a\tb"), "label"},
		"label with escape":         {with("label", "a\x1b[31m"), "label"},
		"label with DEL":            {with("label", "a\x7f"), "label"},
		"label with a C1 control":   {with("label", "a\u0085b"), "label"},
		"label number":              {with("label", 5), "label"},
		"label list":                {with("label", []string{"a"}), "label"},
		"limit zero":                {with("outputLimitBytes", 0), "outputLimitBytes"},
		"limit negative":            {with("outputLimitBytes", -1), "outputLimitBytes"},
		"limit fraction":            {with("outputLimitBytes", 1.5), "outputLimitBytes"},
		"limit unsafe":              {with("outputLimitBytes", uint64(1)<<53), "outputLimitBytes"},
		"limit beyond 64 bits":      {with("outputLimitBytes", 1e30), "outputLimitBytes"},
		"workdir missing":           {with("workdir", "/no/such/dir"), "/no/such/dir"},
		"workdir a file":            {with("workdir", file), file},
		"workdir number":            {with("workdir", 5), "workdir"},
		"env list":                  {with("env", []string{"A=b"}), "env"},
		"env text":                  {with("env", "A=b"), "env"},
		"env value number":          {with("env", fields{"A": 1}), "A"},
		"env value null":            {with("env", fields{"A": nil}), "A"},
		"env name empty":            {with("env", fields{"": "x"}), "env"},
		"env name with =":           {with("env", fields{"A=B": "x"}), "A=B"},
		"env name AFOOT_X":          {with("env", fields{"AFOOT_X": "x"}), "AFOOT_X"},
		"env name AFOOT_TASK_ID":    {with("env", fields{"AFOOT_TASK_ID": "bash-9"}), "AFOOT_TASK_ID"},
		"env value too long":        {with("env", fields{"LONG_ONE": strings.Repeat("x", 131072)}), "LONG_ONE"},
		"env value far too long":    {with("env", fields{"LONG_ONE": strings.Repeat("x", 140000)}), "LONG_ONE"},
		"env value long in bytes":   {with("env", fields{"LONG_ONE": strings.Repeat("é", 66000)}), "LONG_ONE"},
		"time-out zero":             {with("timeoutMs", 0), "timeoutMs"},
		"time-out negative":         {with("timeoutMs", -5), "timeoutMs"},
		"time-out fraction":         {with("timeoutMs", 1.5), "timeoutMs"},
		"time-out text":             {with("timeoutMs", "5"), "timeoutMs"},
		"time-out beyond 64 bits":   {with("timeoutMs", 1e30), "timeoutMs"},
		"stdin unknown":             {with("stdin", "maybe"), "stdin"},
		"streams unknown":           {with("streams", "both"), "streams"},
		"leftovers unknown":         {with("leftovers", "eat"), "leftovers"},
		"one good, one bad":         {startBody("true", fields{"label": "fine", "timeoutMs": "x"}), "timeoutMs"},
		"label of the wrong object": {startBody("true", fields{"env": fields{"A": fields{"B": "c"}}}), "A"},
	} {
		start(name, x.body, x.says)
	}
	big := strings.Repeat("x", 2<<20)
	rows = append(rows,
		row{"start: body over 2 MiB", "POST", "/tasks", startBody("true", fields{"label": big}), 413, "too_large", ""},
		row{"start: command over 1 MiB", "POST", "/tasks", startBody(": " + strings.Repeat("x", 1<<20)), 413, "too_large", ""},
		row{"start: command just over 1 MiB", "POST", "/tasks", startBody(strings.Repeat("#", 1<<20+1)), 413, "too_large", ""},
		row{"agents: body over 2 MiB", "POST", "/agents", fields{"label": big}, 413, "too_large", ""},
		row{"ack: body over 2 MiB", "POST", "/tasks/" + live + "/ack", `{"nextOffset":` + strings.Repeat(" ", 2<<20) + `0}`, 413, "too_large", ""},
	)
	query := func(path, name string, values ...string) {
		for _, value := range values {
			says := name
			rows = append(rows, row{fmt.Sprintf("%s%s=%.30s", path, name, value), "GET", path + name + "=" + value, nil, 400, "invalid", says})
		}
	}
	out := "/tasks/" + live + "/output?"
	query(out+"wait=true&", "timeout_ms", "-1", "0", "1.5", "NaN", "abc", "5ms")
	query(out+"wait=true&offset=0&", "timeout_ms", "-1", "0", "1.5", "NaN", "abc", "5ms")
	query(out, "offset", "-1", "1.5", "abc", "5", "99999999999999999999", "0x0", "NaN", "+0", "")
	query(out, "limit_bytes", "0", "-1", "1.5", "abc", "NaN", "")
	query(out+"offset=0&", "limit_bytes", "0", "-1", "1.5", "abc", "1KiB")
	query(out, "wait", "maybe", "2")
	query("/tasks?", "status", "bogus", "Running", "done", "running,completed", "running%20")
	query("/tasks?", "limit", "0", "-1", "1.5", "abc")
	query("/tasks?", "after", "garbage", "bash-1", "%00", strings.Repeat("A", 5000))
	query("/events?", "observe", "maybe")
	query("/tasks/"+live+"/log?", "follow", "maybe")
	for _, x := range [][2]string{{"timeout_ms", "0"}, {"timeout_ms", "abc"}, {"timeout_ms", "1.5"}, {"timeout_ms", "-1"}} {
		rows = append(rows, row{"start with wait: " + x[0] + "=" + x[1], "POST", "/tasks?wait=true&" + x[0] + "=" + x[1], startBody("true"), 400, "invalid", x[0]})
	}
	rows = append(rows, row{"kill: purge=maybe", "DELETE", "/tasks/" + live + "?purge=maybe", nil, 400, "invalid", "purge"})
	for name, body := range map[string]any{
		"empty": "", "no offset": fields{}, "text": fields{"nextOffset": "1"}, "fraction": fields{"nextOffset": 1.5},
		"negative": fields{"nextOffset": -1}, "null": fields{"nextOffset": nil}, "unknown": fields{"nextOffset": 0, "x": 1}, "list": "[]",
	} {
		rows = append(rows, row{"ack: " + name, "POST", "/tasks/" + live + "/ack", body, 400, "invalid", ""})
	}
	for name, body := range map[string]any{
		"broken": "{", "unknown": fields{"labl": "x"}, "empty label": fields{"label": ""}, "long label": fields{"label": strings.Repeat("x", 513)},
		"label with a newline": fields{"label": "a\nb"}, "lease too short": fields{"leaseMs": 999}, "lease zero": fields{"leaseMs": 0},
		"lease too long": fields{"leaseMs": 86400001}, "lease fraction": fields{"leaseMs": 1000.5}, "lease text": fields{"leaseMs": "1000"},
		"lease negative": fields{"leaseMs": -1000}, "list": "[]", "null": "null",
	} {
		rows = append(rows, row{"agents: " + name, "POST", "/agents", body, 400, "invalid", ""})
	}
	for _, id := range []string{
		"bash-999999", "bash-0", "bash-01", "bash-+1", "bash--1", "bash-1x", "bash-", "bash", "-1", "1", "nope-1", "BASH-1", "bash-1.0",
		"bash-99999999999999999999999", "bash-%31x", "bash%2D1%20", "%00", "..%2f..%2fetc%2fpasswd", "bash-1%2foutput", "bash-１",
	} {
		for _, x := range [][2]string{{"GET", ""}, {"GET", "/output"}, {"GET", "/log"}, {"DELETE", ""}} {
			rows = append(rows, row{x[0] + " " + id + x[1], x[0], "/tasks/" + id + x[1], nil, 404, "unknown_task", ""})
		}
	}
	rows = append(rows,
		row{"ack of nobody", "POST", "/tasks/bash-999999/ack", fields{"nextOffset": 0}, 404, "unknown_task", ""},
		row{"no such agent", "DELETE", "/agents/agent-99", nil, 404, "unknown_agent", ""},
		row{"no agent at all", "DELETE", "/agents/x", nil, 404, "unknown_agent", ""},
		row{"stream of no agent", "GET", "/events?agent=agent-99", nil, 404, "unknown_agent", ""},
	)

	before := c.list(t, "")
	number := 1
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			a := c.do(t, r.method, r.path, r.body)
			text := a.refused(t, r.status, r.code)
			if r.says != "" {
				require.Contains(t, text, r.says, "the problem names what is wrong")
			}
			require.NotContains(t, text, "goroutine ")
			if r.method == http.MethodPost {
				number++
				s := c.start(t, "true")
				require.Equal(t, numbered(number), s.ID, "no id was burnt")
				require.NotEmpty(t, c.read(t, s.ID, "wait=true").Snapshot.FinishedAt)
				a = c.do(t, http.MethodDelete, "/tasks/"+s.ID+"?purge=true", nil)
				require.Equal(t, http.StatusNoContent, a.status, "%s", a)
			}
			require.Equal(t, before, c.list(t, ""), "nothing changed")
		})
	}
	require.Equal(t, "out\n", c.read(t, live, "").Text, "nothing was consumed")
	require.NotEmpty(t, d.aliveOf(live))
	a := c.do(t, http.MethodGet, "/agents", nil)
	require.NotContains(t, string(a.body), "agent-", "no agent was made")
	require.Equal(t, "agent-1", c.open(t, fields{}).agent, "no agent's id was burnt")
}

// What is unusual but right passes.
func TestGoodInput(t *testing.T) {
	t.Parallel()
	d := serve(t, "AFOOT_MAX_TASKS_PER_OWNER=50")
	c := d.as("good")
	for name, x := range map[string]struct {
		body  any
		label string
	}{
		"largest limit":      {startBody("true", fields{"outputLimitBytes": int64(1)<<53 - 1}), "true"},
		"label of 512 bytes": {startBody("true", fields{"label": strings.Repeat("x", 512)}), strings.Repeat("x", 512)},
		"default label":      {startBody("echo first\necho second"), "echo first"},
		"defaults said":      {startBody("true", fields{"stdin": "null", "streams": "merged", "leftovers": "keep"}), "true"},
		"empty env":          {startBody("true", fields{"env": fields{}}), "true"},
		"long env": {
			startBody("true", fields{"env": fields{"A": strings.Repeat("x", 131000)}}), "true",
		},
		"escapes": {`{"kind":"bash","c\u006fmmand":"\u0074rue"}`, "true"},
		"blanks":  {" \n{ \"kind\" : \"bash\" , \"command\" : \"true\" }\n ", "true"},
	} {
		t.Run(name, func(t *testing.T) {
			a := c.do(t, http.MethodPost, "/tasks", x.body)
			require.Equal(t, http.StatusCreated, a.status, "%s", a)
			var s snapshot
			a.into(t, &s)
			require.Equal(t, x.label, s.Label)
			end, _ := c.finish(t, s.ID)
			require.Equal(t, 0, end.exitCode())
		})
	}
}

func TestDefaultLabel(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("label")
	for _, command := range []string{
		"true #" + strings.Repeat("z", 100000),
		"echo " + strings.Repeat("界", 100) + "\nsecond line",
		"true " + strings.Repeat("é", 98) + "x",
	} {
		s := c.start(t, command)
		head, cut := strings.CutSuffix(s.Label, "…")
		require.True(t, cut, "%q", s.Label)
		require.True(t, strings.HasPrefix(command, head))
		require.LessOrEqual(t, len(head), 200)
		require.Greater(t, len(head), 190)
		require.True(t, utf8.ValidString(s.Label))
	}
	for command, label := range map[string]string{
		"true first\ntrue second":                  "true first",
		"true " + strings.Repeat("x", 195):         "true " + strings.Repeat("x", 195),
		"echo a\tb >/dev/null":                     "",
		"\n\ntrue after blank lines":               "",
		"printf '\x1b[31m' >/dev/null\r\n":         "",
		": " + strings.Repeat("\u0085", 3) + " C1": "",
	} {
		s := c.start(t, command)
		require.NotEmpty(t, s.Label)
		require.False(t, strings.ContainsFunc(s.Label, unicode.IsControl), "%q", s.Label)
		if label != "" {
			require.Equal(t, label, s.Label)
		}
		c.finish(t, s.ID)
	}
}
