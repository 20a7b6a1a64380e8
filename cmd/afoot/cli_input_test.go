package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestInputCommand(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.serve()
	id := strings.TrimSpace(r.ok("run", "-d", "--stdin", "open", "--", "cat; echo done"))
	r.ok("input", id, "one\n")
	cmd := r.command("input", id, "-", "--close")
	cmd.Stdin = strings.NewReader(strings.Repeat("0123456789abcdef", 100_000))
	out, errs, code := r.finish(cmd)
	require.Zero(t, code, errs)
	require.Empty(t, out)
	text := r.ok("output", id, "--wait")
	require.Equal(t, "one\n"+strings.Repeat("0123456789abcdef", 100_000)+"done\n", text)

	_, errs, code = r.afoot("input", id, "x")
	require.Equal(t, exitFailed, code)
	require.Contains(t, errs, "completed")
	_, _, code = r.afoot("input", id)
	require.Equal(t, exitUsage, code)

	idle := strings.TrimSpace(r.ok("run", "-d", "--stdin", "open", "--", "sleep 60"))
	require.JSONEq(t, `{"written":1,"closed":true}`, r.ok("--json", "input", idle, "x", "--close"))
}

func TestRunForwardsItsInput(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.serve()
	cmd := r.command("run", "--stdin", "open", "--", "tr a-z A-Z")
	cmd.Stdin = strings.NewReader("shout\n")
	out, errs, code := r.finish(cmd)
	require.Zero(t, code, errs)
	require.Equal(t, "SHOUT\n", out)
}

func TestSignalCommand(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.serve()
	run := r.begin("run", "--", `trap 'echo hup; exit 7' HUP; echo up; while :; do sleep 0.1; done`)
	require.Equal(t, "up", run.line(t))
	require.Equal(t, "sent HUP to task bash-1\n", r.ok("signal", "bash-1", "HUP"))
	require.Equal(t, 7, run.code(), run.errs)
	_, errs, code := r.afoot("signal", "bash-1", "HUP")
	require.Equal(t, exitFailed, code)
	require.Contains(t, errs, "completed")
}

func TestSplitRun(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.serve()
	const script = "echo out; echo err >&2; exit 3"
	out, errs, code := r.afoot("run", "--streams", "split", "--", script)
	require.Equal(t, []any{3, "out\n", "err\n"}, []any{code, out, errs})
	out, _, code = r.afoot("--json", "run", "--streams", "split", "--", script)
	require.Equal(t, 3, code)
	require.Contains(t, out, `"text":"err\n"`)

	r.ok("run", "-d", "--streams", "split", "--", script)
	require.Equal(t, "err\n", r.ok("logs", "-f", "bash-3", "--stream", "stderr"))
	require.Equal(t, "out\n", r.ok("logs", "bash-3", "--stream", "stdout"))
	require.Equal(t, "err\n", r.ok("output", "bash-3", "--stream", "stderr", "--wait"))
	out, errs, code = r.afoot("output", "bash-3")
	require.Zero(t, code, errs)
	require.Equal(t, "out\n", out)

	r.ok("run", "--", "true")
	_, errs, code = r.afoot("logs", "bash-4", "--stream", "stderr")
	require.Equal(t, exitFailed, code)
	require.Contains(t, errs, "invalid")
}

func TestPlainOutputCommand(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.serve()
	id := strings.TrimSpace(r.ok("run", "-d", "--", `printf '\033[1mbold\033[0m\n10%%\r100%%\nend'`))
	require.Equal(t, "bold\n100%\nend", r.ok("output", id, "--plain", "--wait"))
	require.False(t, r.tasks()[0].Reported)
}

func TestRunTakesLimits(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.serve()
	require.Equal(t, "19\n", r.ok("run", "--nice", "19", "--leftovers", "stop", "--", "nice"))
	for _, flags := range [][]string{{"--nice", "20"}, {"--stdin", "x"}, {"--streams", "x"}, {"--leftovers", "x"}, {"--pids-max", "-1"}, {"--pids-max", "0"}} {
		_, errs, code := r.afoot(append(append([]string{"run"}, flags...), "--", "true")...)
		require.Equal(t, exitRun, code, "%v: %s", flags, errs)
		require.Contains(t, errs, "invalid", flags)
	}
	_, errs, code := r.afoot("run", "--memory-max", "much", "--", "true")
	require.Equal(t, exitRun, code)
	require.Contains(t, errs, "size")
}
