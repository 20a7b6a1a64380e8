package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A relative directory is seen from where the command stands, not the daemon.
func TestRelativeWorkdir(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.serve()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "below"), 0o700))
	cmd := r.command("run", "--workdir", "below", "pwd")
	cmd.Dir = dir
	stdout, stderr, code := r.finish(cmd)
	require.Zero(t, code, stderr)
	require.Equal(t, filepath.Join(dir, "below"), strings.TrimSpace(stdout))
}

// A result that nobody got is not told as a success.
func TestResultsThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.serve()
	for _, args := range [][]string{
		{"run", "-d", "true"}, {"agents", "open"}, {"token"}, {"open"}, {"kill", "bash-1"}, {"version"}, {"ls", "--json"},
	} {
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Skip("no /dev/full here")
		}
		cmd := r.command(args...)
		cmd.Stdout = full
		require.Error(t, cmd.Run(), "%v", args)
		require.NoError(t, full.Close())
	}
}

func TestJSONEverywhere(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.serve()
	r.ok("run", "--", "true")
	agent := strings.TrimSpace(r.ok("agents", "open"))
	for _, args := range [][]string{
		{"kill", "--purge", "bash-1"}, {"agents", "ls"}, {"agents", "end", agent}, {"version"}, {"open"}, {"token"},
	} {
		out := r.ok(append([]string{"--json"}, args...)...)
		require.True(t, json.Valid([]byte(out)) && strings.TrimSpace(out) != "", "%v: %q", args, out)
	}
}

func TestGroupsRefuseUnknownCommands(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, args := range [][]string{{"agents", "bogus"}, {"secret", "bogus"}, {"agents"}, {"secret"}, {"token", "--ttl", "0s"}} {
		_, stderr, code := r.afoot(args...)
		require.Equal(t, exitUsage, code, "%v", args)
		require.NotEmpty(t, stderr, "%v", args)
	}
}
