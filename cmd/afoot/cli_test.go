package main

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"afoot/api/client"
)

func TestRunExitsAsTheTaskDoes(t *testing.T) {
	t.Parallel()
	r := newRig(t, "HERE=from here")
	r.serve()
	home, err := filepath.EvalSymlinks(r.home)
	require.NoError(t, err)
	for _, c := range []struct {
		name   string
		args   []string
		stdout string
		stderr string
		code   int
	}{
		{"success", []string{"--", "true"}, "", "", 0},
		{"code", []string{"--", "echo out; echo err >&2; exit 3"}, "out\nerr\n", "", 3},
		{"signal", []string{"--", "echo a; kill -9 $$"}, "a\n", "SIGKILL", 137},
		{"argv", []string{"--", "printf", "%s|", "a b", "$HOME", "it's"}, "a b|$HOME|it's|", "", 0},
		{"without dashes", []string{"printf", "%s", "-x"}, "-x", "", 0},
		{"here", []string{"pwd"}, home + "\n", "", 0},
		{"workdir", []string{"--workdir", "/", "pwd"}, "/\n", "", 0},
		{"env", []string{"--env", "A=1 2", "--env", "HERE", "--", `echo "$A $HERE"`}, "1 2 from here\n", "", 0},
		{"timeout", []string{"--timeout", "3s", "--", "echo a; sleep 325; true"}, "a\n", "timed out", 143},
		{"no input", []string{"--", "cat; echo end"}, "end\n", "", 0},
		{"bytes", []string{"--", `printf 'a\0\xff\n'`}, "a\x00\xff\n", "", 0},
		{"refused", []string{"--workdir", "/no/such/dir", "true"}, "", "/no/such/dir", 125},
		{"usage", []string{}, "", "CMD is missing", 125},
		{"bad flag", []string{"--env", "=x", "true"}, "", "--env", 125},
		{"bad duration", []string{"--timeout", "5", "true"}, "", "3s", 125},
	} {
		t.Run(c.name, func(t *testing.T) {
			stdout, stderr, code := r.afoot(append([]string{"run"}, c.args...)...)
			require.Equal(t, c.stdout, stdout)
			require.Equal(t, c.code, code, stderr)
			if c.stderr == "" {
				require.Empty(t, stderr)
			}
			require.Contains(t, stderr, c.stderr)
		})
	}
	t.Run("large", func(t *testing.T) {
		stdout, _, code := r.afoot("run", "--", "seq 1 200000; exit 3")
		require.Equal(t, 3, code)
		require.Len(t, stdout, 1288895)
	})
	t.Run("json", func(t *testing.T) {
		stdout, _, code := r.afoot("run", "--json", "--", "echo j; exit 4")
		require.Equal(t, 4, code)
		var read client.TaskRead
		require.NoError(t, json.Unmarshal([]byte(stdout), &read))
		require.Equal(t, "j\n", read.Text)
		require.True(t, read.Eof)
	})
	t.Run("everything was reported", func(t *testing.T) {
		for _, task := range r.tasks() {
			require.True(t, task.Reported, task.Id)
		}
	})
}

// tasks lists the session's tasks.
func (r *rig) tasks() []client.Snapshot {
	r.t.Helper()
	var list client.TaskList
	require.NoError(r.t, json.Unmarshal([]byte(r.ok("ls", "--json")), &list))
	return list.Tasks
}

func TestDetachedTask(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.serve()
	gate := filepath.Join(r.home, "gate")
	require.NoError(t, syscall.Mkfifo(gate, 0o600))
	id := strings.TrimSpace(r.ok("run", "-d", "--label", "my label", "--", "echo one; read x <"+gate+"; echo two"))
	require.Equal(t, "bash-1", id)
	require.Contains(t, r.ok("ls"), "my label")
	r.eventually("output is there", func() bool { return r.tasks()[0].OutputBytes > 0 })

	stdout, stderr, _ := r.afoot("output", id)
	require.Equal(t, []string{"one\n", "[status: running]\n"}, []string{stdout, stderr})
	stdout, stderr, _ = r.afoot("output", "--wait", "--timeout", "50ms", id)
	require.Equal(t, []string{"", "[status: running]\n"}, []string{stdout, stderr})

	follow := r.begin("logs", "-f", id)
	require.Equal(t, "one", follow.line(t))
	require.NoError(t, os.WriteFile(gate, []byte("x\n"), 0o600))
	require.Equal(t, "two", follow.line(t))
	require.Zero(t, follow.code())

	stdout, stderr, _ = r.afoot("output", "--wait", id)
	require.Equal(t, []string{"two\n", "[status: completed, exit code: 0]\n"}, []string{stdout, stderr})
	require.Equal(t, "one\ntwo\n", r.ok("logs", id))
	require.True(t, r.tasks()[0].Reported)

	require.Equal(t, "task bash-1 had already finished [status: completed, exit code: 0]\n", r.ok("kill", id))
	require.Equal(t, "removed task bash-1\n", r.ok("kill", "--purge", id))
	_, stderr, code := r.afoot("output", id)
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "(gone)")
}

// What could not be printed is not read.
func TestOutputIsReadOnceItWasPrinted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.serve()
	id := strings.TrimSpace(r.ok("run", "-d", "--", "seq 1 100000"))
	r.eventually("the task has ended", func() bool { return r.tasks()[0].FinishedAt != 0 })
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full here")
	}
	defer func() { _ = full.Close() }()
	cmd := r.command("output", id)
	cmd.Stdout = full
	require.Error(t, cmd.Run())
	require.False(t, r.tasks()[0].Reported)
	require.Len(t, r.ok("output", id), 588895)
	require.True(t, r.tasks()[0].Reported)
}

func TestInterruptedRun(t *testing.T) {
	t.Parallel()
	r := newRig(t, "AFOOT_KILL_GRACE=1m")
	r.serve()
	t.Run("once stops the task", func(t *testing.T) {
		run := r.begin("run", "--", "echo up; sleep 326; true")
		require.Equal(t, "up", run.line(t))
		require.NoError(t, run.cmd.Process.Signal(os.Interrupt))
		require.Equal(t, 143, run.code(), run.errs)
		require.Contains(t, run.errs.String(), "stopping bash-1")
	})
	t.Run("twice leaves it", func(t *testing.T) {
		run := r.begin("run", "--", `trap "" TERM; echo up; while :; do sleep 0.327; done`)
		require.Equal(t, "up", run.line(t))
		require.NoError(t, run.cmd.Process.Signal(os.Interrupt))
		r.eventually("the task is stopping", func() bool { return r.tasks()[1].Status == client.Stopping })
		require.NoError(t, run.cmd.Process.Signal(os.Interrupt))
		require.Equal(t, 130, run.code(), run.errs)
		require.Contains(t, run.errs.String(), "left bash-2")
		require.Equal(t, client.Stopping, r.tasks()[1].Status)
	})
	// The second signal does not wait for a minute.
	require.NoError(t, r.daemon.Process.Signal(syscall.SIGTERM))
	r.eventually("the shutdown has begun", func() bool {
		_, _, code := r.afoot("run", "-d", "true")
		return code != exitOK
	})
	require.NoError(t, r.daemon.Process.Signal(syscall.SIGTERM))
	require.NoError(t, r.ended(r.soon()), r.out.String())
}

func TestEventsCommand(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.serve()
	r.ok("run", "-d", "--label", "early", "--", "exit 6")
	events := r.begin("events")
	require.Equal(t, "background task bash-1 (bash: early) finished [status: completed, exit code: 6]. Read its output with task_output.", events.line(t))
	r.ok("run", "-d", "--label", "late", "--", "true")
	require.Contains(t, events.line(t), "bash-2 (bash: late)")

	asJSON := r.begin("events", "--json", "--observe", "--after", "nonsense-1")
	var line eventLine
	require.NoError(t, json.Unmarshal([]byte(asJSON.line(t)), &line))
	require.Equal(t, "gap", line.Event)
	r.ok("run", "-d", "--", "true")
	for line.Event != "task.done" {
		require.NoError(t, json.Unmarshal([]byte(asJSON.line(t)), &line))
	}
	require.Contains(t, string(line.Data), "bash-3")
	require.NotEmpty(t, line.ID)
}

func TestAgentsCommand(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.serve()
	id := strings.TrimSpace(r.ok("agents", "open", "--label", "worker", "--lease", "1h"))
	require.Regexp(t, `^agent-\d+$`, id)
	require.Regexp(t, id+` +1h0m0s +worker`, r.ok("agents", "ls"))
	r.ok("--agent", id, "run", "-d", "--", "sleep 328; true")
	require.Equal(t, id, r.tasks()[0].Agent)
	r.ok("agents", "end", id)
	require.Empty(t, r.tasks())
	_, stderr, code := r.afoot("--agent", id, "run", "true")
	require.Equal(t, exitRun, code)
	require.Contains(t, stderr, "(gone)")
	for _, lease := range []string{"500us", "-1h"} {
		_, stderr, code = r.afoot("agents", "open", "--lease", lease)
		require.Equal(t, exitFailed, code, "%s is not for ever", lease)
		require.Contains(t, stderr, "leaseMs")
	}
}

func TestSessionsOfCommands(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.serve()
	r.ok("run", "--session", "a", "--", "true")
	require.Empty(t, r.tasks())
	require.Contains(t, r.ok("ls", "--session", "a"), "bash-1")
	r.env = append(r.env, "AFOOT_SESSION=a")
	require.Len(t, r.tasks(), 1)
	require.Contains(t, r.ok("run", "--", "echo $AFOOT_SESSION"), "a\n")
}

func TestOpenPrintsALink(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.serve("--link")
	r.eventually("the link is printed", func() bool { return strings.Contains(r.out.String(), "works once") })
	require.Regexp(t, `the page: http://127\.0\.0\.1:\d+/#code=\S+`, r.out.String())
	require.Regexp(t, `^http://127\.0\.0\.1:\d+/#code=\S+\n$`, r.ok("open"))
}

func TestTokenCommand(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, args := range [][]string{{"token"}, {"secret", "rotate"}} {
		_, stderr, code := r.afoot(args...)
		require.Equal(t, exitUsage, code)
		require.Contains(t, stderr, "afoot secret make")
	}
	require.NoDirExists(t, r.state)
	require.Equal(t, "made "+filepath.Join(r.state, "secret")+"\n", r.ok("secret", "make"))
	require.Contains(t, r.ok("secret", "make"), "there already")
	r.serve()

	claims := func(args ...string) map[string]any {
		t.Helper()
		token := r.ok(append([]string{"token"}, args...)...)
		require.Regexp(t, `^[\w-]+\.[\w-]+\.[\w-]+\n$`, token, "the token and nothing else")
		text, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
		require.NoError(t, err)
		var claims map[string]any
		require.NoError(t, json.Unmarshal(text, &claims))
		return claims
	}
	c := claims("--session", "s", "--agent", "agent-1", "--ttl", "1h")
	require.Equal(t, "s", c["sid"])
	require.Equal(t, "agent-1", c["agent"])
	require.Equal(t, "tasks:read tasks:write", c["scope"])
	r.env = append(r.env, "AFOOT_SESSION=other")
	require.NotContains(t, claims(), "sid", "no session unless told")
	require.Equal(t, "metrics", claims("--scope", "metrics")["scope"])

	for _, bad := range [][]string{{"--scope", "everything"}, {"--ttl", "0s"}, {"--ttl", "-1h"}, {"--session", "ü"}, {"--agent", "agent-1"}, {"extra"}} {
		stdout, _, code := r.afoot(append([]string{"token"}, bad...)...)
		require.Equal(t, exitUsage, code, bad)
		require.Empty(t, stdout, bad)
	}

	token := strings.TrimSpace(r.ok("token", "--session", "s"))
	r.env = append(r.env, "AFOOT_TOKEN="+token)
	require.Equal(t, "x\n", r.ok("run", "--", "echo x"))
	info, err := readListenInfo(r.state)
	require.NoError(t, err)
	far := newRig(t, "AFOOT_TOKEN="+token)
	require.Contains(t, far.ok("ls", "--addr", info.Addr), "bash-1")
	require.Contains(t, far.ok("ls", "--addr", info.URL+"/"), "bash-1")

	r.ok("secret", "rotate", "--keep", "0s")
	r.eventually("the daemon takes the new secret up", func() bool {
		_, stderr, code := r.afoot("ls")
		return code == exitFailed && strings.Contains(stderr, "(unauthenticated)")
	})
}

func TestCommandsWithoutADaemon(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, args := range [][]string{{"ls"}, {"output", "bash-1"}, {"logs", "-f", "bash-1"}, {"kill", "bash-1"}, {"events"}, {"open"}} {
		_, stderr, code := r.afoot(args...)
		require.Equal(t, exitNoDaemon, code, args)
		require.Contains(t, stderr, r.state)
	}
	_, _, code := r.afoot("run", "true")
	require.Equal(t, exitRun, code)
	_, stderr, code := r.afoot("ls", "--addr", "127.0.0.1:1")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "AFOOT_TOKEN")
	r.env = append(r.env, "AFOOT_TOKEN=x")
	_, stderr, code = r.afoot("ls", "--addr", "127.0.0.1:1")
	require.Equal(t, exitNoDaemon, code)
	require.Contains(t, stderr, "afoot serve")
	for _, addr := range []string{"ht!tp://x", "ftp://x", "x:y:z", "unix:"} {
		_, stderr, code = r.afoot("ls", "--addr", addr)
		require.Equal(t, exitUsage, code, addr)
		require.Contains(t, stderr, "is no address such as")
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, args := range [][]string{{"nonsense"}, {"ls", "--nonsense"}, {"ls", "extra"}, {"output"}, {"kill"}, {"serve", "extra"}, {"serve", "--addr", "127.0.0.1:0"}, {"serve", "--session", "s"}, {"serve", "--json"},
		{"webhooks"}, {"completion"}, {"completion", "tcsh"}, {"help", "nonsense"},
		{"ls", "--status", "bogus"}, {"logs", "bash-1", "--stream", "foo"}, {"signal", "bash-1", "NOPE"}, {"webhooks", "add", "notaurl"},
		{"output", "bash-1", "--timeout", "3s"}, {"agents", "open", "--lease", "3"}} {
		_, stderr, code := r.afoot(args...)
		require.Equal(t, exitUsage, code, args)
		require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
	}
	for want, args := range map[string][]string{
		"afoot: ID is missing: see `afoot output --help`\n":                                                      {"output"},
		"afoot: NAME is missing: see `afoot signal --help`\n":                                                    {"signal", "bash-1"},
		"afoot: \"x\" is an argument too many: see `afoot ls --help`\n":                                          {"ls", "x"},
		"afoot: unknown command \"rnu\" for \"afoot\": did you mean run?\n":                                      {"rnu"},
		"afoot: unknown command \"lss\" for \"afoot webhooks\": did you mean ls?\n":                              {"webhooks", "lss"},
		`{"code":"usage","detail":"ID is missing: see ` + "`afoot output --help`" + `"}` + "\n":                  {"output", "--json"},
		`{"code":"usage","detail":"unknown command \"zzz\" for \"afoot\": see ` + "`afoot --help`" + `"}` + "\n": {"--json", "zzz"},
	} {
		_, stderr, _ := r.afoot(args...)
		require.Equal(t, want, stderr)
	}
	help := r.ok("serve", "--help")
	require.Contains(t, help, "AFOOT_KILL_GRACE")
	require.NotContains(t, help, "session to act for")
	require.Contains(t, r.ok("version"), "afoot ")
	require.Equal(t, r.ok("version"), r.ok("--version"))
	require.Contains(t, r.ok(), "Usage:")
	require.Contains(t, r.ok("serve", "--check", "--json"), `"version"`)
	require.Contains(t, r.ok("completion", "bash"), "afoot")
	require.Contains(t, r.ok("__complete", ""), "run\t")
	require.Equal(t, "null\nopen\n:4\n", r.ok("__complete", "run", "--stdin", ""))
	require.Equal(t, ":4\n", r.ok("__complete", "output", ""), "no daemon answers")
	require.Equal(t, ":0\n", r.ok("__complete", "backup", ""), "a file")
	require.Equal(t, ":4\n", r.ok("__complete", "run", "--label", ""))
	r.env = append(r.env, "AFOOT_KILLGRACE=1s")
	_, stderr, code := r.afoot("ls")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "AFOOT_KILL_GRACE")
	r.ok("version")
	r.env[len(r.env)-1] = "AFOOT_KILL_GRACE=1"
	_, stderr, code = r.afoot("ls")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "3s is one")
}

func TestCompletionOfIDs(t *testing.T) {
	t.Parallel()
	r := newRig(t, "AFOOT_WEBHOOK_HOSTS=127.0.0.1")
	r.serve()
	r.ok("run", "--label", "one", "--", "true")
	r.ok("run", "--label", "two", "--", "true")
	agent := strings.TrimSpace(r.ok("agents", "open", "--label", "worker"))
	add := r.command("webhooks", "add", "http://127.0.0.1:9/")
	add.Stdin = strings.NewReader("whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 32)))
	hook, errs, code := r.finish(add)
	require.Zero(t, code, errs)
	for want, args := range map[string][]string{
		"bash-1\tcompleted, one\nbash-2\tcompleted, two\n:4\n":  {"output", ""},
		"bash-2\tcompleted, two\n:4\n":                          {"kill", "bash-1", ""},
		":4\n":                                                  {"logs", "bash-1", ""},
		"default\n" + agent + "\tworker\n:4\n":                  {"--agent", ""},
		"default\n" + agent + "\tworker\n:4\n\n":                {"agents", "end", ""},
		strings.TrimSpace(hook) + "\thttp://127.0.0.1:9/\n:4\n": {"webhooks", "rm", ""},
	} {
		require.Equal(t, strings.TrimSpace(want), strings.TrimSpace(r.ok(append([]string{"__complete"}, args...)...)), args)
	}
	require.Contains(t, r.ok("__complete", "signal", "bash-1", ""), "INT\nTERM\n")

	_, stderr, code := r.afoot("--json", "output", "bash-99")
	require.Equal(t, exitFailed, code)
	var problem client.Problem
	require.NoError(t, json.Unmarshal([]byte(stderr), &problem), stderr)
	require.Equal(t, []any{404, client.ErrorCodeUnknownTask, "there is no task bash-99"}, []any{problem.Status, problem.Code, problem.Detail})
	require.NotEmpty(t, problem.RequestId, "by which the log is searched")
}
