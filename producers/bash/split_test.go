package bash

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"afoot/registry"
)

func (k *task) errors() string {
	k.t.Helper()
	page, err := k.Stderr().Page(0, registry.MaxPageBytes)
	require.NoError(k.t, err)
	return page.Text
}

func TestOneStreamHasNoOther(t *testing.T) {
	task := newStand(t).run("echo a; echo b >&2")
	task.end()
	require.Nil(t, task.Stderr())
	require.Equal(t, "a\nb\n", task.output())
}

func TestSplitStreamsAreTwo(t *testing.T) {
	stand := newStand(t)
	task := stand.start(fields{"command": "echo a; echo bb >&2; echo c >/dev/stdout; echo d >/dev/stderr; exit 3", "streams": "split"})
	require.Equal(t, "exit code: 3", task.end().Detail)
	second := task.Stderr()
	require.Same(t, second, task.Stderr())
	require.Equal(t, "a\nc\n", task.output())
	require.Equal(t, "bb\nd\n", task.errors())
	for stream, want := range map[registry.Stream]int64{task.run: 4, task.Stderr(): 5} {
		page, err := stream.Page(want, 1)
		require.NoError(t, err)
		require.True(t, page.End)
		written, dropped := stream.Size()
		require.Equal(t, want, written)
		require.Zero(t, dropped)
		<-stream.Grown(want)
		raw, err := stream.Open()
		require.NoError(t, err)
		_, next, ended := raw.Bounds()
		require.Equal(t, want, next)
		require.True(t, ended)
		require.NoError(t, raw.Close())
	}
	require.NoError(t, task.Discard())
}

// TestSplitStreamsDoNotWaitForEachOther fills one while nothing comes on the other.
func TestSplitStreamsDoNotWaitForEachOther(t *testing.T) {
	stand := newStand(t)
	for _, command := range []string{
		"head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2; exec sleep 337",
		"exec 2>&-; head -c 3000000 /dev/zero; exec sleep 337",
		"exec >&-; head -c 3000000 /dev/zero >&2; exec sleep 337",
	} {
		task := stand.start(fields{"command": command, "streams": "split"})
		if !strings.HasPrefix(command, "exec >&-") {
			<-task.Grown(2_999_999)
		}
		if !strings.HasPrefix(command, "exec 2>&-") {
			<-task.Stderr().Grown(2_999_999)
		}
		require.NoError(t, task.Cancel(""))
		require.Equal(t, "signal: SIGTERM", task.end().Detail)
		require.NoError(t, task.Discard())
	}
}

func TestA1OneBoundForBothStreams(t *testing.T) {
	const drain = 3 * time.Second
	for name, c := range map[string]struct {
		command string
		held    int
	}{
		"both":   {"sleep 338 & echo done; echo err >&2", 2},
		"stderr": {"sleep 338 >/dev/null & echo done; echo err >&2", 1},
		"stdout": {"sleep 338 2>/dev/null & echo done; echo err >&2", 1},
		"busy":   {"(while :; do echo tick; echo tock >&2; sleep .05; done) & echo done; echo err >&2", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stand := newStand(t, func(c *Config) { c.Drain = drain })
			begun := time.Now()
			task := stand.start(fields{"command": c.command, "streams": "split"})
			o := task.end()
			require.Less(t, time.Since(begun), 2*drain, "one bound behind the other")
			require.Contains(t, o.Detail, "left running")
			require.Contains(t, task.output(), "done\n")
			require.Contains(t, task.errors(), "err\n")
			require.Equal(t, c.held, stand.sink.Len())
			for _, stream := range []registry.Stream{task.run, task.Stderr()} {
				size, _ := stream.Size()
				<-stream.Grown(size) // has ended
			}
			<-task.StopLeftovers("")
			require.Eventually(t, func() bool { return stand.sink.Len() == 0 }, 20*time.Second, time.Millisecond)
		})
	}
}

func TestSplitOutputIsGivenBack(t *testing.T) {
	stand := newStand(t)
	task := stand.start(fields{"command": "echo a; echo b >&2; : " + strings.Repeat("x", 5000), "streams": "split"})
	task.end()
	require.NoError(t, task.Discard())
	_, err := task.Page(0, 10)
	require.ErrorContains(t, err, "gone or damaged")
	_, err = task.Stderr().Page(0, 10)
	require.ErrorContains(t, err, "gone or damaged")
}
