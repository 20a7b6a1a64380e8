package e2e

import (
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// shellName is how a shell that was started by its path names itself.
var shellName = regexp.MustCompile(`(?m)^(/usr)?/bin/bash:`)

// direct runs a command by bash itself, both streams into one pipe.
func direct(t *testing.T, dir, command string) (text string, code int) {
	t.Helper()
	cmd := exec.Command("bash", "-c", "--", command)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func TestF1CommandIsVerbatim(t *testing.T) {
	t.Parallel()
	d := serve(t, "HOME=/home/e2e")
	c := d.as("f1")
	t.Run("exact", func(t *testing.T) {
		for _, row := range []struct{ command, text string }{
			{"cat <<'EOF'\nback\\slash \\\\ \\n\n\"q\" 'q'\n$HOME ${x} $(y) `z` ! !! #\n\ttab\nEOF\n",
				"back\\slash \\\\ \\n\n\"q\" 'q'\n$HOME ${x} $(y) `z` ! !! #\n\ttab\n"},
			{"echo hi # c", "hi\n"},
			{"# only a comment", ""},
			{"cat <<EOF\nline\nEOF", "line\n"},
			{"cat <<-EOF\n\tline\n\tEOF", "line\n"},
			{"echo $HOME", "/home/e2e\n"},
			{"  echo lead\n\n\n", "lead\n"},
			{"#!/bin/sh\necho shebang", "shebang\n"},
			{"echo 'ä 界 😀 \u2028'", "ä 界 😀 \u2028\n"},
			{"echo '%s' %d \\%", "%s %d %\n"},
			{"echo a\\\nb", "ab\n"},
			{"printf '%s|' \"$#\" \"$@\"", "0|"},
			{"echo !!; echo !x", "!!\n!x\n"},
			{"printf '%s' '" + strings.Repeat("x", 100000) + "' | wc -c", "100000\n"},
		} {
			s, text := c.finish(t, c.start(t, row.command).ID)
			require.Equal(t, row.text, text, "%.200q", row.command)
			require.Equal(t, 0, s.exitCode(), "%.200q", row.command)
		}
	})
	t.Run("as bash itself", func(t *testing.T) {
		for _, command := range []string{
			`echo hi \`,
			"echo hi \\\n",
			"(",
			"{",
			"echo 'a",
			"cat <<EOF\nno mark",
			"echo one\r\necho two\r\n",
			"a=1; echo $a$",
			"echo \\\\",
			"echo -e 'x\\ty'",
			"shopt -o history; set -o | grep -c on; echo $-",
			"[[ a == a ]] && echo yes",
			"echo {1..3} ~root *nomatch*",
			"exit",
			":",
			";",
			"&& true",
			"-x",
			"-",
			"--",
			"--help",
			"echo $BASH_EXECUTION_STRING",
		} {
			want, code := direct(t, d.work, command)
			s, text := c.finish(t, c.start(t, command).ID)
			require.Equal(t, code, s.exitCode(), "%q gave %q", command, text)
			require.Equal(t, want, shellName.ReplaceAllString(text, "bash:"), "%q", command)
		}
	})
	t.Run("syntax error", func(t *testing.T) {
		s, text := c.finish(t, c.start(t, "(").ID)
		require.Equal(t, 2, s.exitCode())
		require.Contains(t, text, "bash")
		require.Contains(t, text, "syntax error")
	})
	t.Run("kept as given", func(t *testing.T) {
		command := "  echo 'x'  # é \n"
		s := c.start(t, command)
		require.Equal(t, command, c.get(t, s.ID).Request["command"])
	})
	t.Run("no login shell, not interactive", func(t *testing.T) {
		_, text := c.finish(t, c.start(t, `shopt login_shell; case $- in *i*) echo interactive;; esac; tty`).ID)
		require.Equal(t, "login_shell    \toff\nnot a tty\n", text)
	})
}

func TestF4BodiesThatCannotBeCommands(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("f4")
	deep := func(open, end string) string {
		return strings.Repeat(open, 500000) + strings.Repeat(end, 500000)
	}
	next := 0
	for name, body := range map[string]string{
		"NUL in command":            `{"kind":"bash","command":"echo a\u0000b"}`,
		"NUL ends command":          `{"kind":"bash","command":"echo a\u0000"}`,
		"raw NUL in command":        "{\"kind\":\"bash\",\"command\":\"a\x00b\"}",
		"NUL in workdir":            `{"kind":"bash","command":"true","workdir":"/tmp\u0000x"}`,
		"NUL in an env value":       `{"kind":"bash","command":"true","env":{"A":"b\u0000c"}}`,
		"NUL in an env name":        `{"kind":"bash","command":"true","env":{"A\u0000":"b"}}`,
		"NUL in label":              `{"kind":"bash","command":"true","label":"a\u0000"}`,
		"NUL in kind":               `{"kind":"bash\u0000","command":"true"}`,
		"bad byte in command":       "{\"kind\":\"bash\",\"command\":\"echo \xff\"}",
		"torn character":            "{\"kind\":\"bash\",\"command\":\"echo \xe2\x82\"}",
		"overlong slash":            "{\"kind\":\"bash\",\"command\":\"echo \xc0\xaf\"}",
		"encoded surrogate":         "{\"kind\":\"bash\",\"command\":\"echo \xed\xa0\x80\"}",
		"bad byte in a name":        "{\"kind\":\"bash\",\"command\":\"true\",\"env\":{\"A\xfe\":\"x\"}}",
		"UTF-16":                    "\xff\xfe{\x00}\x00",
		"duplicate command":         `{"kind":"bash","command":"true","command":"false"}`,
		"duplicate, same value":     `{"kind":"bash","command":"true","command":"true"}`,
		"duplicate kind":            `{"kind":"bash","kind":"bash","command":"true"}`,
		"duplicate, written apart":  `{"kind":"bash","command":"true","c\u006fmmand":"false"}`,
		"duplicate in env":          `{"kind":"bash","command":"true","env":{"A":"1","A":"2"}}`,
		"1 MB of arrays":            deep("[", "]"),
		"1 MB of objects":           `{"kind":"bash","command":"true","env":{"A":` + strings.Repeat(`{"a":`, 200000) + "1" + strings.Repeat("}", 200000) + `}}`,
		"1 MB of unclosed":          strings.Repeat("[", 1000000),
		"deep in an unknown member": `{"kind":"bash","command":"true","x":` + deep("[", "]") + `}`,
	} {
		t.Run(name, func(t *testing.T) {
			c.do(t, http.MethodPost, "/tasks", body).refused(t, http.StatusBadRequest, "invalid")
			s := c.start(t, "true")
			next++
			require.Equal(t, numbered(next), s.ID, "no id was burnt")
			c.finish(t, s.ID)
		})
	}
	require.Len(t, c.list(t, ""), next, "nothing else was started")
}

func TestF5Environment(t *testing.T) {
	t.Parallel()
	d := serve(t, "JWT_KEY=s3cr3t-1", "X_API_KEY=s3cr3t-2", "my_secret_x=s3cr3t-3", "GithubToken=s3cr3t-4",
		"DB_PASSWORD=s3cr3t-5", "AWS_CREDENTIALS=s3cr3t-6", "monkey=s3cr3t-7", "PLAIN=kept", "PAGER=less", "TERM=xterm")
	c := d.as("f5")
	s, text := c.finish(t, c.start(t, `env`, fields{"env": fields{"FOO": "zzz", "GIT_PAGER": "mine", "API_KEY": "given"}}).ID)
	got := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		got[name] = value
	}
	require.NotContains(t, text, "s3cr3t")
	for name, value := range map[string]string{
		"PLAIN": "kept", "FOO": "zzz", "API_KEY": "given", "NO_COLOR": "1", "TERM": "dumb", "PAGER": "cat",
		"GIT_PAGER": "mine", "GIT_TERMINAL_PROMPT": "0", "AFOOT_TASK_ID": s.ID, "AFOOT_SESSION": "f5",
	} {
		require.Equal(t, value, got[name], name)
	}
	for name := range got {
		if strings.HasPrefix(name, "AFOOT_") {
			require.Contains(t, []string{"AFOOT_TASK_ID", "AFOOT_SESSION"}, name)
		}
	}
	_, text = c.finish(t, c.start(t, `tr '\0' ' ' </proc/$$/cmdline`, fields{"env": fields{"FOO": "zzz"}}).ID)
	require.NotContains(t, text, "zzz")
	require.NotContains(t, c.do(t, http.MethodGet, "/tasks/"+s.ID, nil).String(), "zzz", "of env only the names are shown")
	require.Contains(t, c.do(t, http.MethodGet, "/tasks/"+s.ID, nil).String(), "FOO")
}

func TestF6Descriptors(t *testing.T) {
	t.Parallel()
	d := prepare(t)
	d.argv = []string{"bash", "-c", `exec 9</dev/null 11>/dev/null 200</etc/passwd; exec "$0" serve`, binary}
	d.launch()
	d.ready()
	c := d.as("f6")
	long := ": '" + strings.Repeat("x", 200000) + "'\n"
	for _, row := range []struct {
		command string
		more    fields
	}{
		{`ls /proc/self/fd`, nil},
		{`ls /proc/self/fd`, nil},
		{`ls /proc/self/fd`, fields{"stdin": "open"}},
		{`ls /proc/self/fd`, fields{"streams": "split"}},
		{`ls /proc/self/fd`, fields{"stdin": "open", "streams": "split", "leftovers": "stop", "nice": 3}},
		{`exec ls /proc/self/fd`, nil},
		{long + `ls /proc/self/fd`, nil},
		{long + `ls /proc/self/fd`, fields{"stdin": "open", "streams": "split"}},
		{`sh -c 'ls /proc/self/fd'`, nil},
	} {
		_, text := c.finish(t, c.start(t, row.command, row.more).ID)
		require.Equal(t, "0\n1\n2\n3\n", text, "0, 1, 2 and the directory's own: %.40q %v", row.command, row.more)
	}
	_, text := c.finish(t, c.start(t, `for n in 0 1 2; do readlink /proc/self/fd/$n; done`).ID)
	require.Regexp(t, `^/dev/null\npipe:\[(\d+)\]\npipe:\[\d+\]\n$`, text)
	_, text = c.finish(t, c.start(t, `ps -o tty=,sid=,pid= -p $$ | tr -s ' '; (exec </dev/tty) 2>/dev/null || echo none`).ID)
	words := strings.Fields(text)
	require.Len(t, words, 4, text)
	require.Equal(t, []string{"?", words[2], words[2], "none"}, words, "a session of its own without a terminal")
}
