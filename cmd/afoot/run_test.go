package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"afoot/api/client"
)

func TestCommandLineReachesTheProgramUnchanged(t *testing.T) {
	for _, args := range [][]string{
		{"a b", "c"},
		{"", "x"},
		{"it's", `"q"`, "$HOME", "`id`", `\`, "!", "*", "a\nb", "ü"},
		{"-n", "--x=y z"},
		{"plain/word.go:1,2@3%4+5"},
		{"=", "#", "~"},
	} {
		line := commandLine(append([]string{"printf", "<%s>\\n"}, args...))
		got, err := exec.Command("bash", "-c", line).Output()
		require.NoError(t, err, line)
		require.Equal(t, "<"+strings.Join(args, ">\n<")+">\n", string(got), line)
	}
	require.Equal(t, "echo $HOME | cat", commandLine([]string{"echo $HOME | cat"}), "one argument is a line for the shell")
}

func TestTaskCode(t *testing.T) {
	for _, c := range []struct {
		result map[string]any
		want   int
	}{
		{map[string]any{"exitCode": 0.0}, 0},
		{map[string]any{"exitCode": 7.0}, 7},
		{map[string]any{"signal": "SIGKILL"}, 137},
		{map[string]any{"signal": "SIGTERM", "timedOut": true}, 143},
		{map[string]any{"signal": "SIGWHAT"}, exitRun},
		{nil, exitRun},
	} {
		require.Equal(t, c.want, taskCode(client.Snapshot{Result: c.result}), c.result)
	}
}

func TestTaskEnv(t *testing.T) {
	a := &app{cfg: &Config{Environ: []string{"HERE=1=2", "EMPTY="}}}
	env, err := a.taskEnv([]string{"A=b=c", "HERE", "EMPTY", "NONE="})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"A": "b=c", "HERE": "1=2", "EMPTY": "", "NONE": ""}, env)
	for _, bad := range []string{"=x", "", "UNSET"} {
		_, err := a.taskEnv([]string{bad})
		require.Error(t, err, bad)
	}
}
