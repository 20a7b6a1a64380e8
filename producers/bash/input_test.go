package bash

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"afoot/registry"
)

func (k *task) input(data string, last bool) (registry.InputResult, error) {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return k.Input(ctx, []byte(data), last)
}

func requireClosed(t *testing.T, err error, why string) {
	t.Helper()
	require.Equal(t, registry.CodeConflict, registry.CodeOf(err))
	require.ErrorContains(t, err, why)
}

func TestE1NullInputIsAtItsEnd(t *testing.T) {
	task := newStand(t).run("read x; echo rc=$?; cat | wc -c")
	_, err := task.input("x", false)
	require.Equal(t, registry.CodeConflict, registry.CodeOf(err))
	require.Equal(t, "exit code: 0", task.end().Detail)
	require.Equal(t, "rc=1\n0\n", task.output())
	task = newStand(t).run("sleep 330; true")
	_, err = task.input("x", false)
	requireClosed(t, err, "stdin is null")
	require.NoError(t, task.Cancel(""))
	task.end()
}

func TestOpenInputIsReadInOrderAndEndsWithTheLast(t *testing.T) {
	stand := newStand(t)
	for _, long := range []string{"", ": '" + strings.Repeat("x", maxStringBytes) + "'\n"} {
		task := stand.start(fields{"command": long + "read a; echo got $a; cat; echo end", "stdin": "open"})
		got, err := task.input("one\n", false)
		require.NoError(t, err)
		require.Equal(t, registry.InputResult{Written: 4}, got)
		task.has("got one\n")
		got, err = task.input("", false)
		require.NoError(t, err)
		require.Equal(t, registry.InputResult{}, got)
		big := strings.Repeat("0123456789abcdef", 20_000)
		got, err = task.input(big, true)
		require.NoError(t, err)
		require.Equal(t, registry.InputResult{Written: len(big), Closed: true}, got)
		_, err = task.input("more", false)
		if err == nil || !strings.Contains(err.Error(), "ended") {
			requireClosed(t, err, "stdin is closed: an earlier input was the last")
		}
		require.Equal(t, "exit code: 0", task.end().Detail)
		require.Equal(t, "got one\n"+big+"end\n", task.output())
		for _, last := range []bool{true, false} {
			_, err = task.input("", last)
			requireClosed(t, err, "the command has ended")
		}
	}
}

// TestTheCommandsInputBlocks holds that only our end is non-blocking: a program
// that reads before there is something waits.
func TestTheCommandsInputBlocks(t *testing.T) {
	task := newStand(t).start(fields{"command": `grep flags /proc/self/fdinfo/0; exec cat`, "stdin": "open"})
	task.has("\n")
	require.Regexp(t, `flags:\s+00\n`, task.output())
	_, err := task.input("late\n", true)
	require.NoError(t, err)
	task.end()
	require.Contains(t, task.output(), "late\n")
}

func TestE3AReaderThatClosedIsAConflict(t *testing.T) {
	task := newStand(t).start(fields{"command": "exec 0<&-; echo closed; sleep 331; true", "stdin": "open"})
	task.has("closed")
	_, err := task.input("fits", false)
	requireClosed(t, err, "stdin is closed: nobody reads")
	_, err = task.input("fits", true)
	requireClosed(t, err, "stdin is closed: nobody reads")
	require.NoError(t, task.Cancel(""))
	task.end()
	_, err = task.input("fits", false)
	requireClosed(t, err, "stdin is closed: ")
}

// TestNothingIsWrittenToAReaderThatClosed asks with no bytes, to which a write
// would not object.
func TestNothingIsWrittenToAReaderThatClosed(t *testing.T) {
	for _, last := range []bool{true, false} {
		task := newStand(t).start(fields{"command": "exec 0<&-; echo closed; sleep 332; true", "stdin": "open"})
		task.has("closed")
		_, err := task.input("", last)
		requireClosed(t, err, "stdin is closed: nobody reads")
		require.NoError(t, task.Cancel(""))
		task.end()
	}
}

// TestAReaderThatGoesAway lets a write wait for a reader that leaves. The kernel
// raises SIGPIPE then, which the runtime takes.
func TestAReaderThatGoesAway(t *testing.T) {
	task := newStand(t).start(fields{"command": "head -c 100000 | wc -c; exec 0<&-; sleep 333; true", "stdin": "open"})
	got, err := task.input(strings.Repeat("x", 1_000_000), false)
	requireClosed(t, err, fmt.Sprintf("(%d of 1000000 bytes were taken before)", got.Written))
	require.GreaterOrEqual(t, got.Written, 100_000)
	require.True(t, got.Closed)
	task.has("100000\n")
	require.NoError(t, task.Cancel(""))
	task.end()
}

// full tells that a pipe takes no more.
func full(t *testing.T, pipe *os.File) bool {
	t.Helper()
	conn, err := pipe.SyscallConn()
	require.NoError(t, err)
	poll := []unix.PollFd{{Events: unix.POLLOUT}}
	require.NoError(t, conn.Control(func(fd uintptr) {
		poll[0].Fd = int32(fd)
		_, err = unix.Poll(poll, 0)
	}))
	return err == nil && poll[0].Revents&unix.POLLOUT == 0
}

func TestAFullPipeIsNoErrorAndCountsWhatItTook(t *testing.T) {
	mark := t.TempDir() + "/mark"
	task := newStand(t).start(fields{
		"command": `until [ -e "$MARK" ]; do sleep .01; done; exec wc -c`,
		"env":     map[string]string{"MARK": mark},
		"stdin":   "open",
	})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var got registry.InputResult
	var err error
	var writing sync.WaitGroup
	writing.Go(func() { got, err = task.Input(ctx, make([]byte, 200_000), true) })
	require.Eventually(t, func() bool { return full(t, task.live.stdin.pipe) }, 20*time.Second, time.Millisecond)
	cancel()
	writing.Wait()
	require.NoError(t, err)
	require.False(t, got.Closed, "not all was taken")
	require.Greater(t, got.Written, 4096)
	require.Less(t, got.Written, 200_000)
	over, stop := context.WithCancel(context.Background())
	stop()
	none, err := task.Input(over, []byte("x"), true)
	require.NoError(t, err)
	require.Equal(t, registry.InputResult{}, none)

	require.NoError(t, os.WriteFile(mark, nil, 0o600))
	rest, err := task.input(strings.Repeat("x", 200_000-got.Written), true)
	require.NoError(t, err)
	require.Equal(t, registry.InputResult{Written: 200_000 - got.Written, Closed: true}, rest)
	task.end()
	require.Equal(t, "200000\n", task.output())
}

// TestInputThatWaitsBlocksNothing holds a full pipe and looks at everything else.
func TestInputThatWaitsBlocksNothing(t *testing.T) {
	stand := newStand(t)
	task := stand.start(fields{"command": "echo up; sleep 334; true", "stdin": "open"})
	task.has("up")
	var waiting sync.WaitGroup
	errs := make(chan error, 3)
	for range 3 {
		waiting.Go(func() {
			_, err := task.input(strings.Repeat("x", 200_000), false)
			errs <- err
		})
	}
	// One of them has filled the pipe when a turn is taken and stays so.
	require.Eventually(t, func() bool { return len(task.live.stdin.turn) == 1 }, 20*time.Second, time.Millisecond)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	got, err := task.Input(ctx, []byte("y"), true)
	require.NoError(t, err)
	require.Equal(t, registry.InputResult{}, got)
	require.Equal(t, "up\n", task.output())
	other := stand.start(fields{"command": "cat", "stdin": "open"})
	_, err = other.input("other", true)
	require.NoError(t, err)
	other.end()
	require.Equal(t, "other", other.output())
	require.NoError(t, task.Signal("CONT"))
	require.NoError(t, task.Cancel(""))
	require.Equal(t, registry.StatusKilled, task.end().Status)
	waiting.Wait()
	for range 3 {
		requireClosed(t, <-errs, "stdin is closed")
	}
}

// TestInputEndsWithTheCommand lets a leftover hold the reading end.
func TestInputEndsWithTheCommand(t *testing.T) {
	task := newStand(t).start(fields{"command": "exec 5<&0; sleep 335 <&5 & read -rn1; exit 3", "stdin": "open"})
	got, err := task.input(strings.Repeat("x", 200_000), false)
	requireClosed(t, err, "stdin is closed: the command has ended")
	require.Positive(t, got.Written)
	require.Equal(t, "exit code: 3; 1 process left running", task.end().Detail)
	<-task.StopLeftovers("")
}

// TestAnOpenInputLeaksNowhere starts others meanwhile: only without another
// writer is there an end.
func TestAnOpenInputLeaksNowhere(t *testing.T) {
	stand := newStand(t)
	var readers, sleepers []*task
	for range 5 {
		readers = append(readers, stand.start(fields{"command": "cat", "stdin": "open"}))
		sleepers = append(sleepers, stand.start(fields{"command": "ls /proc/self/fd | tr '\\n' ' '; sleep 336; true", "stdin": "open"}))
	}
	for _, reader := range readers {
		_, err := reader.input("", true)
		require.NoError(t, err)
		require.Equal(t, "exit code: 0", reader.end().Detail)
	}
	for _, sleeper := range sleepers {
		sleeper.has("0 1 2 3 ")
		require.NoError(t, sleeper.Cancel(""))
		sleeper.end()
	}
}

// TestManyInputsAtOnceStayWhole lets writers meet at one command.
func TestManyInputsAtOnceStayWhole(t *testing.T) {
	task := newStand(t).start(fields{"command": `sort | uniq -c | awk '{print $1, length($2)}'`, "stdin": "open"})
	var writers sync.WaitGroup
	for i := range 8 {
		writers.Go(func() {
			for range 20 {
				line := strings.Repeat(string(rune('a'+i)), 20_000) + "\n"
				if got, err := task.input(line, false); err != nil || got.Written != len(line) {
					t.Errorf("took %d, %v", got.Written, err)
				}
			}
		})
	}
	writers.Wait()
	_, err := task.input("", true)
	require.NoError(t, err)
	task.end()
	require.Equal(t, strings.Repeat("20 20000\n", 8), task.output())
}
