package bash

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"afoot/registry"
)

func TestF1CommandsAreVerbatim(t *testing.T) {
	stand := newStand(t)
	for _, c := range []struct{ command, output string }{
		{"cat <<'EOF'\n\\a \"q\" 'p' $HOME `id` ! \\\nEOF\n", "\\a \"q\" 'p' $HOME `id` ! \\\n"},
		{"echo hi # c", "hi\n"},
		{"cat <<EOF\nhi\nEOF", "hi\n"},
		{"echo hi \\", "hi \\\n"},
		{"echo $0 $#", "bash 0\n"},
		{"shopt -q login_shell; echo $?; case $- in *i*) echo i;; esac", "1\n"},
		{"read x; echo rc=$?; cat | wc -c", "rc=1\n0\n"},
		{"tty; ls /proc/self/fd | tr '\\n' ' '", "not a tty\n0 1 2 3 "},
	} {
		for _, long := range []bool{false, true} {
			command := c.command
			if long {
				// The same at a length that no argument can have.
				command = ": '" + strings.Repeat("x", maxStringBytes) + "'\n" + command
			}
			task := stand.run(command)
			require.Equal(t, "exit code: 0", task.end().Detail, c.command)
			require.Equal(t, c.output, task.output(), c.command)
		}
	}
	task := stand.run("(")
	require.Equal(t, "exit code: 2", task.end().Detail)
	require.Contains(t, task.output(), "syntax error")
}

func TestF3LongCommandGoesByDescriptor(t *testing.T) {
	stand := newStand(t)
	for _, size := range []int{maxStringBytes - 40, maxStringBytes, maxStringBytes + 1, 200_000, maxCommandBytes} {
		tail := "'; cat | wc -c; echo ok ${#AFOOT_COMMAND}"
		task := stand.run(": '" + strings.Repeat("x", size-3-len(tail)) + tail)
		require.Equal(t, "exit code: 0", task.end().Detail)
		require.Equal(t, "0\nok 0\n", task.output())
	}
}

func TestF5Environment(t *testing.T) {
	stand := newStand(t, func(c *Config) {
		c.Env = []string{
			"PATH=/usr/bin:/bin", "HOME=/root", "JWT_KEY=s3cr3t", "X_API_KEY=s3cr3t", "my_secret_x=s3cr3t", "GhToken=s3cr3t",
			"PGPASSWORD=s3cr3t", "AWS_CREDENTIALS=s3cr3t", "AFOOT_ADDR=x", "TERM=xterm", "PAGER=less", "PWD=/wrong", "A=1", "A=2", "=odd", "odd",
		}
	})
	env := func(f fields, owner registry.Owner) map[string]string {
		f["command"] = "env -0"
		plan, err := stand.prepare(f)
		require.NoError(t, err)
		done := make(chan registry.Outcome, 1)
		started, err := plan.Start(t.Context(), registry.Launch{ID: "bash-7", Owner: owner, Settle: func(o registry.Outcome, _ error) { done <- o }})
		require.NoError(t, err)
		<-done
		page, err := started.(registry.Stream).Page(0, 1<<20)
		require.NoError(t, err)
		got := make(map[string]string)
		for entry := range strings.SplitSeq(strings.TrimSuffix(page.Text, "\x00"), "\x00") {
			name, value, _ := strings.Cut(entry, "=")
			require.NotContains(t, got, name, "each name once")
			got[name] = value
		}
		return got
	}
	want := map[string]string{
		"PATH": "/usr/bin:/bin", "HOME": "/root", "A": "2", "PWD": stand.workdir, "SHLVL": "0", "_": "/usr/bin/env",
		"NO_COLOR": "1", "TERM": "dumb", "PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0",
		"AFOOT_TASK_ID": "bash-7",
	}
	require.Equal(t, want, env(fields{}, registry.Owner{}))

	want["AFOOT_SESSION"] = "s1"
	want["FOO"], want["TERM"], want["MY_KEY"], want["A"] = "zzz", "vt100", "mine", ""
	given := map[string]string{"FOO": "zzz", "TERM": "vt100", "MY_KEY": "mine", "A": ""}
	require.Equal(t, want, env(fields{"env": given}, registry.Owner{Session: "s1", Agent: "default", Incarnation: 1}))
}

// TestEnvironmentOfTheContext: who starts a command can hand it variables; they win over
// the daemon's and lose to the caller's.
func TestEnvironmentOfTheContext(t *testing.T) {
	type key struct{}
	stand := newStand(t, func(c *Config) {
		c.Env = []string{"PATH=/usr/bin:/bin", "TRACEPARENT=the daemon's", "MINE=base"}
		c.ContextEnv = func(ctx context.Context) []string {
			return []string{"TRACEPARENT=" + ctx.Value(key{}).(string), "MINE=context"}
		}
	})
	plan, err := stand.prepare(fields{"command": `env | grep -c ^TRACEPARENT=; echo "$TRACEPARENT $MINE"`, "env": map[string]string{"MINE": "caller's"}})
	require.NoError(t, err)
	done := make(chan struct{})
	run, err := plan.Start(context.WithValue(t.Context(), key{}, "00-1"), registry.Launch{ID: "bash-1", Settle: func(registry.Outcome, error) { close(done) }})
	require.NoError(t, err)
	<-done
	page, err := run.(registry.Stream).Page(0, 100)
	require.NoError(t, err)
	require.Equal(t, "1\n00-1 caller's\n", page.Text)
}
