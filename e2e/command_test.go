package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCommandRun(t *testing.T) {
	t.Parallel()
	d := serve(t)
	for _, row := range []struct {
		args []string
		out  string
		code int
	}{
		{[]string{"sh", "-c", "echo out; echo err >&2; exit 3"}, "out\nerr\n", 3},
		{[]string{"true"}, "", 0},
		{[]string{"printf", "%s|", "a b", "it's", `"q"`, "$HOME", "*", "", `back\slash`, "--flag"}, `a b|it's|"q"|$HOME|*||back\slash|--flag|`, 0},
		{[]string{"printf", `\377\000x`}, "\xff\x00x", 0},
		{[]string{"no_such_cmd_zz"}, "", 127},
		{[]string{"sh", "-c", "seq 1 20000"}, "", 0},
	} {
		out, errs, code := d.command(append([]string{"run", "--"}, row.args...)...)
		require.Equal(t, row.code, code, "%v: %s", row.args, errs)
		switch {
		case row.out != "":
			require.Equal(t, row.out, out, "%v", row.args)
		case row.args[0] == "sh":
			require.Len(t, strings.Fields(out), 20000)
		}
	}
	_, errs, code := d.command("run", "--", "sh", "-c", "kill -9 $$")
	require.NotZero(t, code)
	require.Contains(t, errs, "SIGKILL")
}

func TestCommandsOverOneTask(t *testing.T) {
	t.Parallel()
	d := serve(t)
	ok := func(args ...string) string {
		t.Helper()
		out, errs, code := d.command(args...)
		require.Equal(t, 0, code, "%v: %s", args, errs)
		return out
	}
	require.NotContains(t, ok("ls"), "bash-")
	require.Contains(t, ok("run", "--detach", "--", "sh", "-c", "echo up; sleep 901; echo down"), "bash-1")
	c := d.as("local")
	c.says(t, "bash-1", "up")
	list := ok("ls")
	require.Contains(t, list, "bash-1")
	require.Contains(t, list, "running")
	require.NotContains(t, ok("ls", "--session", "other"), "bash-1")
	require.True(t, json.Valid([]byte(ok("ls", "--json"))))
	require.Contains(t, ok("logs", "bash-1"), "up\n")
	require.Contains(t, ok("output", "bash-1"), "up\n")
	require.Contains(t, ok("kill", "bash-1"), "bash-1")
	c.finish(t, "bash-1")
	require.Contains(t, ok("ls"), "killed")
	require.Equal(t, "up\n", ok("logs", "-f", "bash-1"))
	require.True(t, json.Valid([]byte(ok("output", "--json", "bash-1"))))
	require.True(t, json.Valid([]byte(ok("version", "--json"))))
	require.NotEmpty(t, ok("version"))
	require.Contains(t, ok("completion", "bash"), "afoot")
	help := ok("serve", "--help")
	for _, name := range []string{
		"AFOOT_ADDR", "AFOOT_STATE_DIR", "AFOOT_WORKDIR", "AFOOT_JWT_SECRET_FILE", "AFOOT_JWKS", "AFOOT_JWT_ISSUER", "AFOOT_JWT_AUDIENCE",
		"AFOOT_HOSTS", "AFOOT_ORIGINS", "AFOOT_MAX_TASKS_PER_OWNER", "AFOOT_MAX_TASKS", "AFOOT_MAX_AGENTS_PER_SESSION",
		"AFOOT_MAX_STREAMS_PER_SESSION", "AFOOT_WAIT_DEFAULT", "AFOOT_WAIT_MAX", "AFOOT_KILL_GRACE", "AFOOT_OUTPUT_MAX_BYTES",
		"AFOOT_HEARTBEAT", "AFOOT_LOG_LEVEL", "AFOOT_LOG_FORMAT", "AFOOT_TLS_CERT", "AFOOT_TLS_KEY", "AFOOT_ENV_FILE",
	} {
		require.Contains(t, help, name)
	}
	for _, args := range [][]string{{"output", "bash-99"}, {"logs", "bash-99"}, {"kill", "bash-99"}, {"kill"}, {"run"}, {"nonsense"}, {"ls", "--nonsense"}} {
		out, errs, code := d.command(args...)
		require.NotZero(t, code, "%v", args)
		require.NotEmpty(t, errs, "%v", args)
		require.Empty(t, out, "%v", args)
		require.NotContains(t, errs, "panic")
	}
}

func TestCommandRunInterrupted(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("local")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := d.commandContext(ctx, "run", "--", "sh", "-c", `echo up; sleep 903; echo down`)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	require.NoError(t, cmd.Start())
	eventually(t, 10*time.Second, "task", func() bool { return len(c.list(t, "")) == 1 })
	c.says(t, "bash-1", "up")
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	require.Error(t, cmd.Wait())
	require.NotZero(t, cmd.ProcessState.ExitCode())
	require.Equal(t, "up\n", out.String())
	s, _ := c.finish(t, "bash-1")
	require.Equal(t, "killed", s.Status)
	d.gone(t, "bash-1", time.Second)
}

func TestCommandsWithoutDaemon(t *testing.T) {
	t.Parallel()
	d := prepare(t)
	for _, args := range [][]string{{"ls"}, {"run", "--", "true"}, {"output", "bash-1"}, {"kill", "bash-1"}} {
		out, errs, code := d.command(args...)
		require.NotZero(t, code, "%v", args)
		require.NotEmpty(t, errs, "%v", args)
		require.Empty(t, out, "%v", args)
		require.NotContains(t, errs, "goroutine")
	}
	require.NoDirExists(t, d.state, "looking makes nothing")
}
