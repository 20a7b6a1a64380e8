package render_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"afoot/api/render"
	"afoot/registry"
)

var update = flag.Bool("update", false, "write the golden files anew")

func done(id, kind, label, detail string, limit int64) registry.Snapshot {
	return registry.Snapshot{
		ID: registry.ID(id), Kind: registry.Kind(kind), Label: label, Detail: detail,
		Status: registry.StatusCompleted, OutputLimitBytes: limit,
	}
}

// TestWorkedExamples are the examples of the contract, word for word.
func TestWorkedExamples(t *testing.T) {
	notice := func(limit int64) string {
		return render.Notice(done("pty-100", "pty", strings.Repeat("x", 100), "exit code: 0", limit))
	}
	read := func(limit int64) string {
		return render.Read(registry.Read{
			Text:     strings.Repeat("界", 100),
			Snapshot: registry.Snapshot{ID: "bash-1", Kind: "bash", Status: registry.StatusRunning, OutputLimitBytes: limit},
		})
	}
	for _, c := range []struct{ name, got, want string }{
		{"notice in 80", notice(80), "background task pty-100 (pty: xxxxxxxxxxxx\n[notice truncated]\nDone; task_output."},
		{"notice in 64", notice(64), "background task pty-100 (p\n[notice truncated]\nDone; task_output."},
		{"notice in 47", notice(47), "background task pty-100\nDone; task_output."},
		{"notice in 32", notice(32), "background ta\nDone; task_output."},
		{"notice in 8", notice(8), "_output."},
		{"read in 48", read(48), "界界界\n[output truncated]\n[status: running]"},
		{"read in 20", read(20), "d]\n[status: running]"},
		{"kill in 30", render.Kill(registry.KillRequested, done("bash-7", "bash", "", "", 30)), "task bash-7\n[result truncated]"},
	} {
		require.Equal(t, c.want, c.got, c.name)
	}
}

// TestTexts are the texts without a limit.
func TestTexts(t *testing.T) {
	running := registry.Snapshot{ID: "bash-1", Kind: "bash", Label: "sleep 9", Status: registry.StatusRunning}
	ended := done("bash-2", "bash", "make", "exit code: 0", 0)
	read := func(text string, skipped int64) string {
		return render.Read(registry.Read{Text: text, Skipped: skipped, Snapshot: ended})
	}
	both := func(text, second string, skipped int64) string {
		return render.Read(registry.Read{Text: text, Snapshot: ended, Stderr: &registry.Piece{Text: second, Skipped: skipped}})
	}
	bash := func(output string, c render.Command) string {
		c.Output, c.Log = output, "http://x/tasks/bash-1/log"
		return render.Bash(c, 0)
	}
	for _, c := range []struct{ name, got, want string }{
		{"status", render.StatusLine(running), "[status: running]"},
		{"status with detail", render.StatusLine(ended), "[status: completed, exit code: 0]"},
		{"read", read("hi", 0), "hi\n[status: completed, exit code: 0]"},
		{"read of a whole line", read("hi\n", 0), "hi\n[status: completed, exit code: 0]"},
		{"read of two newlines", read("hi\n\n", 0), "hi\n\n[status: completed, exit code: 0]"},
		{"read of a newline", read("\n", 0), "\n[status: completed, exit code: 0]"},
		{"empty read", read("", 0), "(no new output)\n[status: completed, exit code: 0]"},
		{"read behind dropped bytes", read("hi\n", 12), "[12 bytes of older output were dropped]\nhi\n[status: completed, exit code: 0]"},
		{"read of both streams", both("out", "err\n", 0), "out\n[stderr]\nerr\n[status: completed, exit code: 0]"},
		{"read of both streams, whole lines", both("out\n", "err", 0), "out\n[stderr]\nerr\n[status: completed, exit code: 0]"},
		{"read of the second stream alone", both("", "err\n", 0), "[stderr]\nerr\n[status: completed, exit code: 0]"},
		{"read of the first stream alone", both("out\n", "", 0), "out\n[status: completed, exit code: 0]"},
		{"read of two empty streams", both("", "", 0), "(no new output)\n[status: completed, exit code: 0]"},
		{"second stream behind dropped bytes", both("out\n", "err", 7), "out\n[stderr]\n[7 bytes of older output were dropped]\nerr\n[status: completed, exit code: 0]"},
		{"second stream all dropped", both("", "", 7), "[stderr]\n[7 bytes of older output were dropped]\n[status: completed, exit code: 0]"},
		{"empty list", render.List(nil), "(no background tasks)"},
		{"list", render.List([]registry.Snapshot{running, ended}), "bash-1 [bash] running — sleep 9\nbash-2 [bash] completed — make"},
		{"kill", render.Kill(registry.KillRequested, running), "requested cancellation of task bash-1"},
		{"kill of a finished task", render.Kill(registry.KillAlreadyFinished, ended), "task bash-2 had already finished [status: completed, exit code: 0]"},
		{"start", render.Started(running), "started background task bash-1"},
		{"bash", bash("hi\n", render.Command{}), "hi\n"},
		{"bash without newline", bash("hi", render.Command{}), "hi"},
		{"bash without output", bash("", render.Command{}), "(no output)"},
		{"bash of a newline", bash("\n", render.Command{}), "\n"},
		{"bash, exit code", bash("hi\n", render.Command{ExitCode: 3}), "hi\n[exit code: 3]"},
		{"bash, exit code, no newline", bash("hi", render.Command{ExitCode: 255}), "hi\n[exit code: 255]"},
		{"bash, exit code, two newlines", bash("hi\n\n", render.Command{ExitCode: 1}), "hi\n\n[exit code: 1]"},
		{"bash, exit code alone", bash("", render.Command{ExitCode: 1}), "(no output)\n[exit code: 1]"},
		{"bash, signal", bash("hi\n", render.Command{Signal: "SIGKILL"}), "hi\n[killed by signal: SIGKILL]"},
		{"bash, time-out", bash("hi\n", render.Command{TimedOutMs: 500, Signal: "SIGTERM"}), "hi\n[timed out after 500ms]"},
		{"bash, skipped", bash("hi\n", render.Command{Skipped: 1}), "hi\n[output truncated; full output: http://x/tasks/bash-1/log]"},
		{"bash, skipped and more", bash("hi", render.Command{Skipped: 1, ExitCode: 2}), "hi\n[output truncated; full output: http://x/tasks/bash-1/log]\n[exit code: 2]"},
		{"bash, all skipped", bash("", render.Command{Skipped: 1}), "[output truncated; full output: http://x/tasks/bash-1/log]"},
		{"bash, running", bash("hi\n", render.Command{Running: "bash-1"}), "hi\n[still running as background task bash-1]"},
		{"notice", render.Notice(ended), "background task bash-2 (bash: make) finished [status: completed, exit code: 0]. Read its output with task_output."},
	} {
		require.Equal(t, c.want, c.got, c.name)
	}
}

// TestMarkersAreNotDoubled: a text that a producer already cut keeps its one marker.
func TestMarkersAreNotDoubled(t *testing.T) {
	cut := strings.Repeat("y", 50) + "\n[output truncated]"
	for _, text := range []string{cut, cut + "\n"} {
		got := render.Read(registry.Read{Text: text, Snapshot: registry.Snapshot{Status: registry.StatusRunning, OutputLimitBytes: 60}})
		require.Equal(t, strings.Repeat("y", 23)+"\n[output truncated]\n[status: running]", got)
	}
	require.Equal(t, "yyy\n[result truncated]", render.Fit(strings.Repeat("y", 40)+"\n[result truncated]", 22))
	require.Equal(t, "ncated]", render.Fit(strings.Repeat("y", 40), 7))
}

// TestGolden pins every text at every limit, with characters of one to four bytes
// on the cut.
func TestGolden(t *testing.T) {
	limits := []int64{0, 4096, 80, 64, 48, 47, 32, 30, 20, 8, 1}
	const address = "/tasks/bash-7/log"
	for _, char := range []struct{ name, text string }{
		{"1-byte", "x"}, {"2-byte", "é"}, {"3-byte", "界"}, {"4-byte", "🜁"},
	} {
		var b strings.Builder
		body := strings.Repeat(char.text, 100)
		show := func(what string, limit int64, text string) {
			require.True(t, limit == 0 || int64(len(text)) <= limit, "%s in %d: %q", what, limit, text)
			fmt.Fprintf(&b, "%s limit=%d bytes=%d %q\n", what, limit, len(text), text)
		}
		for _, limit := range limits {
			running := registry.Snapshot{ID: "bash-7", Kind: "bash", Label: body, Status: registry.StatusRunning, OutputLimitBytes: limit}
			ended := done("pty-100", "pty", body, "exit code: 0", limit)
			show("read", limit, render.Read(registry.Read{Text: body, Snapshot: running}))
			show("read line", limit, render.Read(registry.Read{Text: body + "\n", Snapshot: ended}))
			show("read dropped", limit, render.Read(registry.Read{Text: body, Skipped: 1234, Snapshot: running}))
			show("read both", limit, render.Read(registry.Read{Text: body[:len(body)/2], Snapshot: running, Stderr: &registry.Piece{Text: body[len(body)/2:] + "\n", Skipped: 7}}))
			show("read nothing", limit, render.Read(registry.Read{Snapshot: running}))
			show("notice", limit, render.Notice(ended))
			show("kill", limit, render.Kill(registry.KillRequested, running))
			show("kill finished", limit, render.Kill(registry.KillAlreadyFinished, ended))
			show("started", limit, render.Started(running))
			show("fit", limit, render.Fit(body, limit))
			show("error", limit, render.Fit("The argument \""+body+"\" is unknown here.", limit))
			show("bash", limit, render.Bash(render.Command{Output: body, Log: address}, limit))
			show("bash line", limit, render.Bash(render.Command{Output: body + "\n", Log: address}, limit))
			show("bash nothing", limit, render.Bash(render.Command{Log: address}, limit))
			show("bash exit", limit, render.Bash(render.Command{Output: body + "\n", Log: address, ExitCode: 3}, limit))
			show("bash signal", limit, render.Bash(render.Command{Output: body, Log: address, Signal: "SIGKILL"}, limit))
			show("bash time-out", limit, render.Bash(render.Command{Output: body, Log: address, TimedOutMs: 120000, Signal: "SIGTERM"}, limit))
			show("bash skipped", limit, render.Bash(render.Command{Output: body, Skipped: 9, Log: address, ExitCode: 1}, limit))
			show("bash running", limit, render.Bash(render.Command{Output: body, Log: address, Running: "bash-7"}, limit))
		}
		golden(t, char.name, b.String())
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}
