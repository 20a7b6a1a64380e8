package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// everywhere runs a command and checks that list, get, read, wait, text and notice
// tell the same end, which it gives with the whole output.
func everywhere(t *testing.T, c *client, command string, more ...fields) (snapshot, string) {
	t.Helper()
	events := c.subscribe(t, "", "")
	id := c.start(t, command, more...).ID
	told := events.done(t, 1)[0].notice(t).Task
	require.Equal(t, id, told.ID)
	require.False(t, told.Reported)

	look, text := c.finish(t, id)
	got := c.get(t, id)
	listed := c.find(t, id)
	read := c.read(t, id, "")
	wait := c.read(t, id, "wait=true&timeout_ms=5000")
	for view, s := range map[string]snapshot{
		"look": look, "get": got, "list": listed, "read": read.Snapshot, "wait": wait.Snapshot,
	} {
		require.Equal(t, told.Status, s.Status, view)
		require.Equal(t, told.Detail, s.Detail, view)
		require.Equal(t, told.Result, s.Result, view)
		require.NotNil(t, s.FinishedAt, view)
		require.Equal(t, *told.FinishedAt, *s.FinishedAt, view)
		require.Equal(t, told.StartedAt, s.StartedAt, view)
		require.Equal(t, told.OutputBytes, s.OutputBytes, view)
	}
	require.Equal(t, text, read.Text)
	require.True(t, read.EOF)
	require.Empty(t, wait.Text)
	require.True(t, wait.EOF)

	line := "[status: " + told.Status + ", " + told.Detail + "]"
	a := c.do(t, http.MethodGet, "/tasks/"+id+"/output", nil, "Accept: text/plain")
	require.Equal(t, "(no new output)\n"+line, string(a.body))
	return got, text
}

func TestB1ExitCodes(t *testing.T) {
	t.Parallel()
	d := serve(t)
	for i, row := range []struct {
		command string
		code    int
		bytes   int64
	}{
		{`exit 7`, 7, 0},
		{`{ sleep .2; exit 1; }`, 1, 0},
		{`false | cat`, 0, 0},
		{`seq 1 200000; exit 3`, 3, 1288895},
		{`true`, 0, 0},
		{`exit 255`, 255, 0},
		{`exit 256`, 0, 0},
		{`exit -1`, 255, 0},
		{`set -o pipefail; false | cat`, 1, 0},
		{`(exit 9)`, 9, 0},
		{`trap 'exit 11' EXIT; true`, 11, 0},
		{`exec sh -c 'exit 12'`, 12, 0},
		{`! true`, 1, 0},
		{`sleep .1 & wait $!; exit 42`, 42, 0},
		{`set -e; false; echo never`, 1, 0},
		{`sh -c 'exit 130'`, 130, 0},
		{`echo out; exit 137`, 137, 4},
		{`cat /no/such/file 2>/dev/null`, 1, 0},
	} {
		t.Run(row.command, func(t *testing.T) {
			t.Parallel()
			s, text := everywhere(t, d.as(fmt.Sprintf("b1-%d", i)), row.command)
			require.Equal(t, "completed", s.Status)
			require.Equal(t, fmt.Sprintf("exit code: %d", row.code), s.Detail)
			require.Equal(t, map[string]any{"exitCode": float64(row.code)}, s.Result)
			require.Equal(t, row.bytes, s.OutputBytes)
			require.Len(t, text, int(row.bytes))
		})
	}
}

func TestB2DeathBySignal(t *testing.T) {
	t.Parallel()
	d := serve(t)
	for i, row := range []struct {
		command, signal string
		code            int
	}{
		{`kill -9 $$`, "SIGKILL", 0},
		{`kill -TERM $$`, "SIGTERM", 0},
		{`kill -HUP $$`, "SIGHUP", 0},
		{`kill -INT $$`, "SIGINT", 0},
		{`kill -SEGV $$`, "SIGSEGV", 0},
		{`kill -PIPE $$`, "SIGPIPE", 0},
		{`kill -USR1 $$`, "SIGUSR1", 0},
		{`kill -ALRM $$`, "SIGALRM", 0},
		{`ulimit -c 0; kill -ABRT $$`, "SIGABRT", 0},
		{`exec sh -c 'kill -KILL $$'`, "SIGKILL", 0},
		{`exec sleep 0.1 & kill -9 $$; wait`, "SIGKILL", 0},
		{`bash -c 'kill -SEGV $$'; exit $?`, "", 139},
		{`bash -c 'kill -9 $$'; exit $?`, "", 137},
		{`sh -c 'kill -TERM $$'; exit $?`, "", 143},
		{`(kill -9 $BASHPID); exit $?`, "", 137},
		{`bash -c 'kill -9 $$' | cat`, "", 0},
	} {
		t.Run(row.command, func(t *testing.T) {
			t.Parallel()
			s, _ := everywhere(t, d.as(fmt.Sprintf("b2-%d", i)), row.command)
			if row.signal != "" {
				require.Equal(t, "killed", s.Status)
				require.Equal(t, "signal: "+row.signal, s.Detail)
				require.Equal(t, map[string]any{"signal": row.signal}, s.Result)
				return
			}
			require.Equal(t, "completed", s.Status)
			require.Equal(t, fmt.Sprintf("exit code: %d", row.code), s.Detail)
			require.Equal(t, map[string]any{"exitCode": float64(row.code)}, s.Result)
		})
	}
}

func TestB3KilledKeepsWhatHappened(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("b3")
	for _, row := range []struct{ command, text, detail, key string }{
		{`echo up; exec sleep 311`, "up\n", "signal: SIGTERM", "signal"},
		{`echo up; sleep 309`, "up\n", "signal: SIGTERM", "signal"},
		{`trap 'echo bye; exit 0' TERM; echo up; sleep 312 & wait`, "up\nbye\n", "exit code: 0", "exitCode"},
		{`trap 'echo bye; exit 5' TERM; echo up; sleep 319 & wait`, "up\nbye\n", "exit code: 5", "exitCode"},
		{`trap "" TERM; echo up; while :; do sleep 0.317; done`, "up\n", "signal: SIGKILL", "signal"},
		{`trap 'echo flushed; trap - TERM; kill -TERM $$' TERM; echo up; sleep 315 & wait`, "up\nflushed\n", "signal: SIGTERM", "signal"},
	} {
		t.Run(row.command, func(t *testing.T) {
			t.Parallel()
			id := c.start(t, row.command).ID
			c.says(t, id, "up\n")
			k := c.kill(t, id)
			require.Equal(t, "requested", k.Outcome)
			require.Equal(t, "stopping", k.Snapshot.Status)
			s, text := c.finish(t, id)
			require.Equal(t, "killed", s.Status)
			require.Equal(t, row.text, text)
			require.Equal(t, row.detail, s.Detail)
			require.Contains(t, s.Result, row.key)
			require.True(t, s.Reported)
			d.gone(t, id, time.Second)
			k = c.kill(t, id)
			require.Equal(t, "already-finished", k.Outcome)
			require.Equal(t, row.text, c.read(t, id, "").Text, "a kill consumes no output")
		})
	}
}

func TestB4ShellErrors(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("b4")
	for _, row := range []struct {
		command, message string
		code             int
	}{
		{`no_such_cmd_zz`, "command not found", 127},
		{`./no_such_file`, "No such file or directory", 127},
		{`/no/such/dir/cmd arg`, "No such file or directory", 127},
		{`/etc/passwd`, "Permission denied", 126},
		{`/tmp`, "Is a directory", 126},
		{`echo 'oops`, "unexpected EOF while looking for matching", 2},
		{`echo "oops`, "unexpected EOF while looking for matching", 2},
		{`echo $(oops`, "unexpected EOF while looking for matching", 2},
		{`if true`, "syntax error", 2},
		{`)`, "syntax error", 2},
		{`for`, "syntax error", 2},
		{`echo ok; no_such_cmd_zz; exit $?`, "command not found", 127},
		{`--version`, "command not found", 127},
		{`-c true`, "command not found", 127},
		{`+x`, "command not found", 127},
	} {
		t.Run(row.command, func(t *testing.T) {
			t.Parallel()
			s, text := c.finish(t, c.start(t, row.command).ID)
			require.Equal(t, "completed", s.Status, "%s", text)
			require.Equal(t, row.code, s.exitCode(), "%s", text)
			require.Contains(t, text, row.message)
			require.Contains(t, text, "bash")
		})
	}
}

func TestB5Workdirs(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("b5")
	first := c.start(t, "pwd")
	_, text := c.finish(t, first.ID)
	require.Equal(t, d.work+"\n", text, "the default working directory")

	file := filepath.Join(d.work, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	dangling := filepath.Join(d.work, "dangling")
	require.NoError(t, os.Symlink("/no/such/target", dangling))
	for _, dir := range []string{"/no/such", file, filepath.Join(file, "sub"), dangling, filepath.Join(d.work, "gone")} {
		a := c.do(t, http.MethodPost, "/tasks", startBody("true", fields{"workdir": dir}))
		require.Contains(t, a.refused(t, http.StatusBadRequest, "invalid"), dir)
	}
	require.Equal(t, "bash-2", c.start(t, "true").ID, "no id was burnt")

	dir := filepath.Join(d.work, "with space 'quote'")
	require.NoError(t, os.Mkdir(dir, 0o700))
	g := newGate(t)
	inside := c.start(t, "echo in; "+g.wait()+"echo still here", fields{"workdir": dir})
	c.says(t, inside.ID, "in\n")
	require.NoError(t, os.Remove(dir))
	a := c.do(t, http.MethodPost, "/tasks", startBody("true", fields{"workdir": dir}))
	require.Contains(t, a.refused(t, http.StatusBadRequest, "invalid"), dir)
	g.open(t)
	s, text := c.finish(t, inside.ID)
	require.Equal(t, 0, s.exitCode())
	require.Equal(t, "in\nstill here\n", text)
}

func TestB5StartDirectoryDeleted(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("b5")
	require.NoError(t, os.Remove(d.dir))
	s, text := c.finish(t, c.start(t, "pwd").ID)
	require.Equal(t, 0, s.exitCode())
	require.Equal(t, d.work+"\n", text)
	other := t.TempDir()
	s, text = c.finish(t, c.start(t, "pwd; ls / >/dev/null", fields{"workdir": other}).ID)
	require.Equal(t, 0, s.exitCode())
	require.Equal(t, other+"\n", text)
}

func TestB6TimeOut(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("b6")
	for _, row := range []struct {
		command, text string
		ms            int
		least, most   time.Duration
	}{
		{`printf partial; sleep 313`, "partial", 3000, 3 * time.Second, 5 * time.Second},
		{`printf partial; sleep 323 & sleep 325 & wait`, "partial", 3500, 3500 * time.Millisecond, 5500 * time.Millisecond},
		{`printf partial; trap 'printf tidy; exit 0' TERM; sleep 327 & wait`, "partialtidy", 3700, 3700 * time.Millisecond, 5700 * time.Millisecond},
		{`printf partial; trap "" TERM; while :; do sleep 0.329; done`, "partial", 3600, 3600*time.Millisecond + grace, 6*time.Second + grace},
		{`printf partial; sleep 331 | cat`, "partial", 3800, 3800 * time.Millisecond, 5800 * time.Millisecond},
	} {
		t.Run(row.command, func(t *testing.T) {
			t.Parallel()
			id := c.start(t, row.command, fields{"timeoutMs": row.ms}).ID
			s, text := c.finish(t, id)
			require.Equal(t, "killed", s.Status)
			require.Contains(t, s.Detail, fmt.Sprintf("timed out after %dms", row.ms))
			require.Equal(t, true, s.Result["timedOut"])
			require.Equal(t, row.text, text)
			require.GreaterOrEqual(t, s.lasted(t), row.least-20*time.Millisecond)
			require.Less(t, s.lasted(t), patient(row.most))
			require.Empty(t, d.aliveOf(id), "settled before the tree was gone")
			require.False(t, s.Reported, "a time-out is an end of its own: the notice is due")
		})
	}
	s, _ := c.finish(t, c.start(t, "exit 4", fields{"timeoutMs": 60000}).ID)
	require.Equal(t, "exit code: 4", s.Detail)
	require.NotContains(t, s.Result, "timedOut")
}
