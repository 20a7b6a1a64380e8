package tools_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"afoot/api/tools"
	"afoot/registry/inmem"
)

func definitions(t *testing.T, background bool) map[string]tools.Definition {
	t.Helper()
	set, err := tools.New(tools.Config{Service: inmem.New(inmem.Config{}), Background: background})
	require.NoError(t, err)
	all := map[string]tools.Definition{}
	for _, d := range set.Definitions(true) {
		all[d.Name] = d
	}
	return all
}

// TestDefinitions pins what a model and its client see.
func TestDefinitions(t *testing.T) {
	for name, background := range map[string]bool{"definitions": true, "definitions without background": false} {
		set, err := tools.New(tools.Config{Service: inmem.New(inmem.Config{}), Background: background})
		require.NoError(t, err)
		data, err := json.MarshalIndent(set.Definitions(true), "", "  ")
		require.NoError(t, err)
		golden(t, name, string(data)+"\n")
		looks := set.Definitions(false)
		require.Len(t, looks, 1)
		require.Equal(t, tools.NameList, looks[0].Name)
	}
}

// TestSchemasAgreeWithTheTools: what a schema takes or refuses, the tool does too.
func TestSchemasAgreeWithTheTools(t *testing.T) {
	all := definitions(t, true)
	without := definitions(t, false)
	for _, c := range []struct {
		tool, arguments string
		ok              bool
	}{
		{tools.NameList, `{}`, true},
		{tools.NameList, `{"x":1}`, false},
		{tools.NameOutput, `{"task_id":"bash-1"}`, true},
		{tools.NameOutput, `{"task_id":"bash-1","wait":true,"timeout_ms":1}`, true},
		{tools.NameOutput, `{}`, false},
		{tools.NameOutput, `{"task_id":1}`, false},
		{tools.NameOutput, `{"task_id":"bash-1","wait":null}`, false},
		{tools.NameOutput, `{"task_id":"bash-1","timeout_ms":0}`, false},
		{tools.NameOutput, `{"task_id":"bash-1","timeout_ms":1.5}`, false},
		{tools.NameOutput, `{"task_id":"bash-1","timeout_ms":"1"}`, false},
		{tools.NameOutput, `{"task_id":"bash-1","taskId":"bash-1"}`, false},
		{tools.NameKill, `{"task_id":"bash-1","reason":"r"}`, true},
		{tools.NameKill, `{"reason":"r"}`, false},
		{tools.NameBash, `{"command":"c","description":"d","workdir":"/","timeout_ms":5}`, true},
		{tools.NameBash, `{"command":"c"}`, false},
		{tools.NameBash, `{"description":"d"}`, false},
	} {
		require.Equal(t, c.ok, accepts(t, all[c.tool], c.arguments), "%s %s", c.tool, c.arguments)
		require.Equal(t, c.ok, accepts(t, without[c.tool], c.arguments), "%s %s", c.tool, c.arguments)
	}
	for _, arguments := range []string{
		`{"command":"c","description":"d","run_in_background":true}`,
		`{"command":"c","description":"d","yield_ms":5}`,
	} {
		require.True(t, accepts(t, all[tools.NameBash], arguments))
		require.False(t, accepts(t, without[tools.NameBash], arguments))
	}
}

func TestConfigIsChecked(t *testing.T) {
	service := inmem.New(inmem.Config{})
	for name, cfg := range map[string]tools.Config{
		"no service":              {},
		"negative time-out":       {Service: service, Timeout: -1},
		"default beyond maximum":  {Service: service, TimeoutMax: 1e9},
		"wait beyond its maximum": {Service: service, WaitMax: 1e9},
		"no text":                 {Service: service, ResultBytes: -1},
	} {
		_, err := tools.New(cfg)
		require.Error(t, err, name)
	}
}
