package bash

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"afoot/registry"
)

func readFile(path string) string {
	data, _ := os.ReadFile(path)
	return string(data)
}

func TestBadRequestsAreRefusedByName(t *testing.T) {
	stand := newStand(t)
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, c := range []struct {
		fields, message string
		code            registry.Code
	}{
		{``, "command is missing", registry.CodeInvalid},
		{`{}`, "command is missing", registry.CodeInvalid},
		{`[]`, "not a valid JSON object", registry.CodeInvalid},
		{`{"command":"true"`, "not a valid JSON object", registry.CodeInvalid},
		{`{"command":""}`, "command must not be empty", registry.CodeInvalid},
		{`{"command":null}`, "command must be a string, not null", registry.CodeInvalid},
		{`{"command":7}`, "command must be a string, not a number", registry.CodeInvalid},
		{`{"command":"a\u0000b"}`, "command must not hold a NUL", registry.CodeInvalid},
		{"{\"command\":\"a\xff\"}", "not a valid JSON object", registry.CodeInvalid},
		{`{"command":"a","command":"b"}`, `"command" is given twice`, registry.CodeInvalid},
		{`{"command":"a","comand":"b"}`, `unknown member "comand"`, registry.CodeInvalid},
		{`{"command":"a","Workdir":"/"}`, `unknown member "Workdir"`, registry.CodeInvalid},
		{`{"command":"a","workdir":""}`, "workdir must not be empty", registry.CodeInvalid},
		{`{"command":"a","workdir":null}`, "workdir must be a string", registry.CodeInvalid},
		{`{"command":"a","workdir":"/no/such"}`, `workdir "/no/such" can't be used: no such file`, registry.CodeInvalid},
		{`{"command":"a","workdir":"/no/../no/such"}`, "no such file", registry.CodeInvalid},
		{`{"command":"a","workdir":"` + file + `"}`, "is not a directory", registry.CodeInvalid},
		{`{"command":"a","workdir":"/tmp\u0000"}`, "workdir must not hold a NUL", registry.CodeInvalid},
		{`{"command":"a","env":[]}`, "env must be an object of strings, not an array", registry.CodeInvalid},
		{`{"command":"a","env":null}`, "env must be an object", registry.CodeInvalid},
		{`{"command":"a","env":{"A":1}}`, "value of env A must be a string, not a number", registry.CodeInvalid},
		{`{"command":"a","env":{"A":"1","A":"2"}}`, `"A" is given twice`, registry.CodeInvalid},
		{`{"command":"a","env":{"":"1"}}`, "env name must not be empty", registry.CodeInvalid},
		{`{"command":"a","env":{"A=B":"1"}}`, `"A=B" must not hold '='`, registry.CodeInvalid},
		{`{"command":"a","env":{"A\u0000":"1"}}`, "must not hold '=' or NUL", registry.CodeInvalid},
		{`{"command":"a","env":{"A":"\u0000"}}`, "value of env A must not hold a NUL", registry.CodeInvalid},
		{`{"command":"a","env":{"AFOOT_X":"1"}}`, "must not begin with AFOOT_", registry.CodeInvalid},
		{`{"command":"a","env":{"BIG":"` + strings.Repeat("x", 140_000) + `"}}`, "env BIG has 140004 bytes", registry.CodeInvalid},
		{`{"command":"a","timeoutMs":0}`, "timeoutMs must be an integer", registry.CodeInvalid},
		{`{"command":"a","timeoutMs":-1}`, "timeoutMs must be an integer", registry.CodeInvalid},
		{`{"command":"a","timeoutMs":1.5}`, "timeoutMs must be an integer from 1 to 9007199254740991, not 1.5", registry.CodeInvalid},
		{`{"command":"a","timeoutMs":"5"}`, `9007199254740991, not "5"`, registry.CodeInvalid},
		{`{"command":"a","timeoutMs":null}`, "timeoutMs must be an integer", registry.CodeInvalid},
		{`{"command":"a","timeoutMs":9007199254740992}`, "timeoutMs must be an integer", registry.CodeInvalid},
		{`{"command":"a","timeoutMs":99999999999999999999999}`, "not 99999999999999999999999", registry.CodeInvalid},
		{`{"command":"a","timeoutMs":"` + strings.Repeat("é", 100) + `"}`, `not "` + strings.Repeat("é", 31) + "…", registry.CodeInvalid},
		{`{"command":"a","` + strings.Repeat("x", 100_000) + `":1}`, `unknown member "xxx`, registry.CodeInvalid},
		{`{"command":"a","env":{"=` + strings.Repeat("x", 100_000) + `":"1"}}`, `must not hold '='`, registry.CodeInvalid},
		{`{"command":"a","workdir":"/` + strings.Repeat("x", 100_000) + `"}`, "file name too long", registry.CodeInvalid},
		{`{"command":"a","nice":-21}`, "nice must be an integer from -20 to 19", registry.CodeInvalid},
		{`{"command":"a","nice":20}`, "nice must be an integer from -20 to 19, not 20", registry.CodeInvalid},
		{`{"command":"a","nice":1.5}`, "nice must be an integer", registry.CodeInvalid},
		{`{"command":"a","nice":null}`, "nice must be an integer", registry.CodeInvalid},
		{`{"command":"a","memoryMaxBytes":0}`, "memoryMaxBytes must be an integer from 1 to 9007199254740991", registry.CodeInvalid},
		{`{"command":"a","memoryMaxBytes":9007199254740992}`, "memoryMaxBytes must be an integer", registry.CodeInvalid},
		{`{"command":"a","memoryMaxBytes":"1"}`, "memoryMaxBytes must be an integer", registry.CodeInvalid},
		{`{"command":"a","pidsMax":0}`, "pidsMax must be an integer from 1", registry.CodeInvalid},
		{`{"command":"a","pidsMax":-1}`, "pidsMax must be an integer from 1", registry.CodeInvalid},
		{`{"command":"a","stdin":"x"}`, `stdin must be "null" or "open", not "x"`, registry.CodeInvalid},
		{`{"command":"a","streams":"both"}`, `streams must be "merged" or "split", not "both"`, registry.CodeInvalid},
		{`{"command":"a","leftovers":null}`, "leftovers must be a string", registry.CodeInvalid},
		{`{"command":"a","leftovers":1}`, "leftovers must be a string, not a number", registry.CodeInvalid},
		{`{"command":"` + strings.Repeat("x", 1<<20+1) + `"}`, "command has 1048577 bytes", registry.CodeTooLarge},
		{strings.Repeat(`{"command":`, 100_000), "not a valid JSON object", registry.CodeInvalid},
	} {
		_, err := stand.Prepare(context.Background(), registry.Spec{Kind: Kind, Fields: []byte(c.fields)})
		shown := c.fields[:min(len(c.fields), 80)]
		require.ErrorContains(t, err, c.message, shown)
		require.Less(t, len(err.Error()), 5000, shown)
		require.Equal(t, c.code, registry.CodeOf(err), shown)
	}
}

func TestWorkdir(t *testing.T) {
	base := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(base, "real", "sub"), 0o755))
	require.NoError(t, os.Symlink(filepath.Join(base, "real", "sub"), filepath.Join(base, "link")))
	stand := newStand(t, func(c *Config) { c.Workdir = base })
	for given, want := range map[string]string{
		"":                  base,
		".":                 base,
		"real/sub":          base + "/real/sub",
		"real/sub/":         base + "/real/sub",
		"link":              base + "/link",
		"link/..":           base + "/real", // as the kernel sees it
		base + "/real//sub": base + "/real/sub",
		"/":                 "/",
	} {
		f := fields{"command": `echo "$PWD"; pwd; pwd -P | cmp - <(cd -P . && pwd); [ "$PWD" -ef . ]`}
		if given != "" {
			f["workdir"] = given
		}
		task := stand.start(f)
		require.Equal(t, "exit code: 0", task.end().Detail, given)
		require.Equal(t, want+"\n"+want+"\n", task.output(), given)
	}
}

func TestB5WorkdirThatGoesAway(t *testing.T) {
	stand := newStand(t)
	dir := filepath.Join(t.TempDir(), "dir")
	require.NoError(t, os.Mkdir(dir, 0o755))
	inside := stand.start(fields{"command": "echo up; sleep 331; echo after", "workdir": dir})
	inside.has("up")
	plan, err := stand.prepare(fields{"command": "true", "workdir": dir})
	require.NoError(t, err)
	require.NoError(t, os.Remove(dir))
	_, err = plan.Start(context.Background(), registry.Launch{ID: "bash-2"})
	require.ErrorContains(t, err, dir)
	require.Equal(t, registry.CodeInvalid, registry.CodeOf(err))

	other := stand.run("echo ok")
	other.end()
	require.Equal(t, "ok\n", other.output())
	require.NoError(t, inside.Cancel(""))
	inside.end()
}

func TestRequestShowsNoValues(t *testing.T) {
	stand := newStand(t)
	task := stand.start(fields{"command": "true", "workdir": "/", "timeoutMs": 60000, "env": map[string]string{"B": "s3cr3t", "A": "s3cr3t"}})
	task.end()
	request, err := task.Request()
	require.NoError(t, err)
	requireSameJSON(t, `{"command":"true","workdir":"/","env":["A","B"],"timeoutMs":60000,"stdin":"null","streams":"merged","leftovers":"keep"}`, request)

	r, err := parse([]byte(`{"command":"true","stdin":"open","streams":"split","leftovers":"stop","nice":5,"memoryMaxBytes":9007199254740991,"pidsMax":3}`))
	require.NoError(t, err)
	described, err := r.describe()
	require.NoError(t, err)
	requireSameJSON(t, `{"command":"true","workdir":"","stdin":"open","streams":"split","leftovers":"stop","nice":5,"memoryMaxBytes":9007199254740991,"pidsMax":3}`, described.json())

	long := ": " + strings.Repeat("é", 3000)
	task = stand.run(long)
	task.end()
	require.Empty(t, task.request, "a long one is not kept in memory")
	request, err = task.Request()
	require.NoError(t, err)
	var shown struct{ Command string }
	require.NoError(t, json.Unmarshal(request, &shown))
	require.Equal(t, long, shown.Command)
	require.NoError(t, task.Discard())
	_, err = task.Request()
	require.Equal(t, registry.CodeInternal, registry.CodeOf(err))
}

func TestLabel(t *testing.T) {
	for command, want := range map[string]string{
		"echo hi":                        "echo hi",
		"\n\n  echo hi\nmore":            "echo hi",
		"echo\thi\x1b[1m\r\n":            "echo hi [1m",
		" \n\t":                          "bash",
		"a\u2028b":                       "a b",
		strings.Repeat("x", 200):         strings.Repeat("x", 200),
		strings.Repeat("x", 201):         strings.Repeat("x", 197) + "…",
		"x" + strings.Repeat("界", 100):   "x" + strings.Repeat("界", 65) + "…",
		strings.Repeat("x", 300) + "\ny": strings.Repeat("x", 197) + "…",
	} {
		got := label(command)
		require.Equal(t, want, got)
		require.NoError(t, registry.ValidateLabel(got))
	}
}

func FuzzPrepare(f *testing.F) {
	f.Add([]byte(`{"command":"echo hi","env":{"A":"b"},"timeoutMs":5,"workdir":"/"}`))
	f.Add([]byte(`{"command":"\u0000"}`))
	f.Fuzz(func(t *testing.T, fields []byte) {
		r, err := parse(fields)
		if err != nil {
			code := registry.CodeOf(err)
			require.Contains(t, []registry.Code{registry.CodeInvalid, registry.CodeTooLarge}, code)
			return
		}
		require.NotEmpty(t, r.command)
		require.NotContains(t, r.command, "\x00")
		require.NoError(t, registry.ValidateLabel(label(r.command)))
		described, err := r.describe()
		require.NoError(t, err)
		require.True(t, json.Valid(described.json()))
	})
}
