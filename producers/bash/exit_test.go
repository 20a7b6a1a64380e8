package bash

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"afoot/registry"
)

func TestB1B2B4ExitFacts(t *testing.T) {
	stand := newStand(t)
	for _, c := range []struct {
		name, command string
		status        registry.Status
		detail        string
		result        string
	}{
		{"B1", "exit 7", registry.StatusCompleted, "exit code: 7", `{"exitCode":7}`},
		{"B1", "{ sleep .2; exit 1; }", registry.StatusCompleted, "exit code: 1", `{"exitCode":1}`},
		{"B1", "false | cat", registry.StatusCompleted, "exit code: 0", `{"exitCode":0}`},
		{"B1", "seq 1 200000; exit 3", registry.StatusCompleted, "exit code: 3", `{"exitCode":3}`},
		{"B2", "kill -9 $$", registry.StatusKilled, "signal: SIGKILL", `{"signal":"SIGKILL"}`},
		{"B2", "kill -TERM $$", registry.StatusKilled, "signal: SIGTERM", `{"signal":"SIGTERM"}`},
		{"B2", "ulimit -c 0; bash -c 'kill -SEGV $$'; exit $?", registry.StatusCompleted, "exit code: 139", `{"exitCode":139}`},
		{"B4", "no_such_cmd_zz", registry.StatusCompleted, "exit code: 127", `{"exitCode":127}`},
		{"B4", "/etc/passwd", registry.StatusCompleted, "exit code: 126", `{"exitCode":126}`},
		{"B4", "echo 'oops", registry.StatusCompleted, "exit code: 2", `{"exitCode":2}`},
	} {
		task := stand.run(c.command)
		o := task.end()
		require.Equal(t, c.status, o.Status, c.command)
		require.Equal(t, c.detail, o.Detail, c.command)
		requireSameJSON(t, c.result, o.Result)
		if c.name == "B4" {
			require.Contains(t, task.output(), "bash: ")
		}
	}
}

func TestA3OutputBeforeTheEndIsThere(t *testing.T) {
	task := newStand(t, drained).run("exec > >(sleep 0.3; cat) 2>&1; echo hi; exit 3")
	require.Contains(t, task.end().Detail, "exit code: 3") // and the filter may take its time to go
	require.Equal(t, "hi\n", task.output())
}

func TestC8C15OneDescriptorForBothStreams(t *testing.T) {
	stand := newStand(t)
	want := "o1\ne1\no2\ne2\no3\ne3\no4\ne4\no5\ne5\n"
	for range 100 {
		task := stand.run("for i in 1 2 3 4 5; do echo o$i; echo e$i >&2; done")
		task.end()
		require.Equal(t, want, task.output())
		require.NoError(t, task.Discard())
	}
	task := stand.run("echo a; echo b >/dev/stderr; echo c >/dev/stdout; echo d")
	task.end()
	require.Equal(t, "a\nb\nc\nd\n", task.output())
}

func TestC13EveryByteIsThereAtTheEnd(t *testing.T) {
	stand := newStand(t)
	for range 50 {
		task := stand.run("seq 1 200000; exit 3")
		require.Equal(t, "exit code: 3", task.end().Detail)
		written, dropped := task.Size()
		require.EqualValues(t, 1_288_895, written)
		require.Zero(t, dropped)
		page, err := task.Page(written-7, 100)
		require.NoError(t, err)
		require.Equal(t, "200000\n", page.Text)
		require.True(t, page.End)
		require.NoError(t, task.Discard())
	}
}

func TestC5C11BigOutput(t *testing.T) {
	stand := newStand(t)
	task := stand.run(`head -c 5000000 /dev/zero | tr '\0' x; echo; echo END`)
	task.end()
	require.Len(t, task.output(), 5_000_005)
	require.True(t, strings.HasSuffix(task.output(), "x\nEND\n"))

	task = stand.run("head -c 10000000 /dev/zero; echo done >&2")
	require.Equal(t, "exit code: 0", task.end().Detail)
}

func TestC9BoundedOutputKeepsTheNewest(t *testing.T) {
	task := newStand(t).run("head -c 100000000 /dev/zero; echo END")
	task.end()
	written, dropped := task.Size()
	require.EqualValues(t, 100_000_004, written)
	require.Greater(t, dropped, written-9<<20)
	page, err := task.Page(written-5, 100)
	require.NoError(t, err)
	require.Equal(t, "\x00END\n", page.Text)
}

func TestC1ACutCharacterWaits(t *testing.T) {
	task := newStand(t).run(`printf '\xe2\x82'; read -t .3 <> <(:); printf '\xac\n'; printf '\xf0\x9f'`)
	text, next := "", int64(0)
	for {
		grown := task.Grown(next)
		page, err := task.Page(next, 100)
		require.NoError(t, err)
		text, next = text+page.Text, page.NextOffset
		if page.End {
			break
		}
		if page.NextOffset == page.Offset {
			<-grown
			if size, _ := task.Size(); size > next {
				// Bytes that are no character yet: wait for what is behind them.
				<-task.Grown(size)
			}
		}
	}
	task.end()
	require.Equal(t, "€\n\uFFFD", text)
	require.EqualValues(t, 6, next)
}

func TestC6APromptIsThereAtOnce(t *testing.T) {
	task := newStand(t).run(`printf 'Password: '; sleep 501; true`)
	task.has("Password: ")
	require.NoError(t, task.Cancel(""))
	task.end()
}

func TestC3RawBytes(t *testing.T) {
	stand := newStand(t)
	task := stand.run(`printf 'a\0b\xff\n'`)
	task.end()
	require.Equal(t, "a\x00b\uFFFD\n", task.output())
	raw, err := task.Open()
	require.NoError(t, err)
	defer func() { require.NoError(t, raw.Close()) }()
	buf := make([]byte, 5)
	_, err = raw.ReadAt(buf, 0)
	require.NoError(t, err)
	require.Equal(t, "a\x00b\xff\n", string(buf))
}
