package bash

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"afoot/registry"
)

func TestB3CancelTellsWhatReallyHappened(t *testing.T) {
	impatient, patient := newStand(t), newStand(t, patient)
	for _, c := range []struct{ command, ready, output, detail, result string }{
		{`echo up; exec sleep 311`, "up\n", "up\n", "signal: SIGTERM", `{"signal":"SIGTERM"}`},
		{`trap 'echo bye; exit 0' TERM; echo up; sleep 312 & wait`, "up\n", "up\nbye\n", "exit code: 0", `{"exitCode":0}`},
		{`trap 'sleep .1; echo bye; exit 4' TERM; echo up; sleep 313 & wait`, "up\n", "up\nbye\n", "exit code: 4", `{"exitCode":4}`},
		{`trap '' TERM; echo up; sleep 314; sleep 314`, "up\n", "up\n", "signal: SIGKILL", `{"signal":"SIGKILL"}`},
	} {
		stand := patient
		if strings.Contains(c.command, "trap ''") {
			stand = impatient
		}
		task := stand.run(c.command)
		task.has(c.ready)
		require.NoError(t, task.Cancel("enough"))
		require.NoError(t, task.Cancel("enough"))
		o := task.end()
		require.Equal(t, registry.StatusKilled, o.Status)
		require.Equal(t, c.detail, o.Detail)
		requireSameJSON(t, c.result, o.Result)
		require.Equal(t, c.output, task.output())
		// A moment ago it was the repetition of an accepted one.
		require.Eventually(t, func() bool { return errors.Is(task.Cancel("after the end"), registry.ErrEnded) }, 20*time.Second, time.Millisecond)
	}
}

func TestA4CancelEndsTheTree(t *testing.T) {
	stand := newStand(t, patient, drained) // neither has to be waited for
	for _, c := range []struct {
		command string
		pids    int
	}{
		{`echo $$; sleep 301; echo after`, 1},
		{`sleep 302 & echo $!; sleep 303 & echo $!; wait; echo after`, 2},
		{`sleep 304 | (echo $BASHPID; exec cat); echo after`, 1},
		{`(echo $BASHPID; sleep 305; true); echo after`, 1},
	} {
		task := stand.run(c.command)
		task.has("\n")
		for task.lines() < c.pids {
			size, _ := task.Size()
			<-task.Grown(size)
		}
		require.NoError(t, task.Cancel(""))
		o := task.end()
		require.Equal(t, registry.StatusKilled, o.Status)
		for i := range c.pids {
			require.False(t, alive(task.pid(i)))
		}
		require.NotContains(t, task.output(), "after")
	}
}

func (k *task) lines() (n int) {
	for _, r := range k.output() {
		if r == '\n' {
			n++
		}
	}
	return n
}

func TestA5EscalationOutlivesTheLeader(t *testing.T) {
	const grace = 3 * time.Second // for the leader's handler too
	task := newStand(t, func(c *Config) { c.Grace = grace }).run(`trap 'exit 0' TERM; bash -c 'trap "" TERM; echo $$; exec sleep 306' & wait`)
	task.has("\n")
	begun := time.Now()
	require.NoError(t, task.Cancel(""))
	o := task.end()
	require.False(t, alive(task.pid(0)))
	require.GreaterOrEqual(t, time.Since(begun), grace)
	require.Equal(t, registry.StatusKilled, o.Status)
	require.Equal(t, "exit code: 0", o.Detail)
}

func TestB6TimeOut(t *testing.T) {
	stand := newStand(t, patient)
	begun := time.Now()
	first := stand.start(fields{"command": `printf partial; sleep 315`, "timeoutMs": 3000})
	second := stand.start(fields{"command": `printf partial; trap 'exit 9' TERM; sleep 316 & wait`, "timeoutMs": 3000})
	for task, result := range map[*task]string{
		first:  `{"signal":"SIGTERM","timedOut":true}`,
		second: `{"exitCode":9,"timedOut":true}`,
	} {
		o := task.end()
		require.GreaterOrEqual(t, time.Since(begun), 3*time.Second)
		require.Equal(t, registry.StatusKilled, o.Status)
		require.Equal(t, "timed out after 3000ms", o.Detail)
		requireSameJSON(t, result, o.Result)
		require.Equal(t, "partial", task.output())
	}
	task := stand.start(fields{"command": "exit 3", "timeoutMs": int64(registry.MaxSafeInteger)})
	require.Equal(t, "exit code: 3", task.end().Detail)
}

func TestTimeOutDoesNotCountAfterTheExit(t *testing.T) {
	task := newStand(t, drained).start(fields{"command": "sleep 317 & echo $!; exit 5", "timeoutMs": 3_600_000})
	require.Eventually(t, func() bool {
		task.mu.Lock()
		defer task.mu.Unlock()
		return task.live.exited
	}, 20*time.Second, time.Millisecond)
	task.has("\n")
	task.timeOut(task.live) // as its timer does, and the output is still waited for
	require.NoError(t, syscall.Kill(task.pid(0), syscall.SIGKILL))
	o := task.end()
	require.Equal(t, registry.StatusCompleted, o.Status)
	require.Contains(t, o.Detail, "exit code: 5")
}

func TestCancelDuringTheDrainStillCounts(t *testing.T) {
	stand := newStand(t, drained)
	task := stand.run(`sleep 318 & echo $!; exit 5`)
	task.has("\n")
	shell := task.live.process.Pid()
	require.Eventually(t, func() bool { return !alive(shell) }, 20*time.Second, time.Millisecond)
	require.NoError(t, task.Cancel(""))
	o := task.end()
	require.Equal(t, registry.StatusKilled, o.Status)
	require.Equal(t, "exit code: 5", o.Detail)
	require.False(t, alive(task.pid(0)))
}

// TestCancelRacesTheEnd holds that a cancel which comes too late finds the end
// reported, and one which does not gives a killed task.
func TestCancelRacesTheEnd(t *testing.T) {
	stand := newStand(t)
	for i := range 200 {
		task := stand.run(fmt.Sprintf("exec sleep 0.00%d", i%7))
		want := registry.StatusKilled
		if err := task.Cancel(""); err != nil {
			require.ErrorIs(t, err, registry.ErrEnded)
			want = registry.StatusCompleted
		}
		_ = task.Cancel("") // again, whatever it met
		require.Equal(t, want, task.end().Status)
		require.NoError(t, task.Discard())
	}
}

func TestA1LeftoversAreNamedAndOwned(t *testing.T) {
	stand := newStand(t)
	// Not before its exec it has the name that it is told by.
	const done = " until grep -q ^sleep /proc/$!/cmdline; do :; done; echo done"
	for _, c := range []struct{ command, text, leftover string }{
		{"sleep 320 &" + done, "done\n", "sleep 320"},
		{"sleep 321 >/dev/null &" + done, "done\n", "sleep 321"},
		{"sleep 322 >/dev/null 2>&1 &" + done, "done\n", "sleep 322"},
		{"set -m; sleep 323 >/dev/null 2>&1 & set +m;" + done, "done\n", "sleep 323"},
	} {
		for _, stop := range []func(*task){
			func(k *task) { <-k.StopLeftovers("") },
			func(k *task) { require.ErrorIs(t, k.Cancel(""), registry.ErrEnded); <-k.StopLeftovers("") },
			func(k *task) {
				require.NoError(t, k.Discard())
				if gone := k.StopLeftovers(""); gone != nil {
					<-gone
				}
			},
		} {
			task := stand.run(c.command)
			o := task.end()
			require.Equal(t, registry.StatusCompleted, o.Status)
			require.Equal(t, "exit code: 0; 1 process left running", o.Detail)
			require.Equal(t, c.text, task.output())
			pid := task.ghosts.known(t)
			requireSameJSON(t, fmt.Sprintf(`{"exitCode":0,"leftovers":[{"pid":%d,"command":%q}]}`, pid, c.leftover), o.Result)
			require.True(t, alive(pid))
			stop(task)
			require.False(t, alive(pid))
			require.Nil(t, task.StopLeftovers(""))
		}
	}
	require.Eventually(t, func() bool { return stand.sink.Len() == 0 }, 20*time.Second, time.Millisecond)
}

func TestCloseEndsLeftoversAndRefusesNewWork(t *testing.T) {
	stand := newStand(t, func(c *Config) { c.Grace = 2 * time.Second })
	task := stand.run(`trap "" TERM; (sleep 325; sleep 325) & echo $!`)
	task.end()
	pid := task.pid(0)
	require.True(t, alive(pid))
	short, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, stand.Close(short), context.DeadlineExceeded)
	long, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	require.NoError(t, stand.Close(long))
	require.False(t, alive(pid))
	plan, err := stand.prepare(fields{"command": "true"})
	require.NoError(t, err)
	_, err = plan.Start(context.Background(), registry.Launch{ID: "bash-2"})
	require.Equal(t, registry.CodeUnavailable, registry.CodeOf(err))
}

func (g *ghosts) known(t *testing.T) int {
	t.Helper()
	left, err := g.tree.Lingering(0)
	require.NoError(t, err)
	require.Len(t, left, 1)
	return left[0].PID
}

func TestA2OutputNeverGrowsAfterTheEnd(t *testing.T) {
	stand := newStand(t)
	ticks := t.TempDir() + "/ticks"
	task := stand.start(fields{
		"command": `(while :; do echo tick; echo >>"$TICKS"; sleep .05; done) & echo fg`,
		"env":     map[string]string{"TICKS": ticks},
	})
	o := task.end()
	require.Equal(t, registry.StatusCompleted, o.Status)
	require.Contains(t, o.Detail, "left running")
	require.Contains(t, task.output(), "fg\n")
	size, _ := task.Size()
	require.Equal(t, 1, stand.sink.Len())
	ticked := len(readFile(ticks))
	require.Eventually(t, func() bool { return len(readFile(ticks)) > ticked+5 }, 20*time.Second, 10*time.Millisecond, "it goes on")
	after, _ := task.Size()
	require.Equal(t, size, after)
	<-task.StopLeftovers("")
}

// TestALeftoverThatPrintsIsNeitherBlockedNorKilled prints more than a pipe holds
// after the end.
func TestALeftoverThatPrintsIsNeitherBlockedNorKilled(t *testing.T) {
	stand := newStand(t)
	start, mark := t.TempDir()+"/start", t.TempDir()+"/mark"
	task := stand.start(fields{
		"command": `(until [ -e "$START" ]; do sleep .01; done; head -c 3000000 /dev/zero; echo $? >"$MARK") & echo up`,
		"env":     map[string]string{"START": start, "MARK": mark},
	})
	task.end()
	require.NoError(t, os.WriteFile(start, nil, 0o600))
	require.Eventually(t, func() bool { return readFile(mark) == "0\n" }, 20*time.Second, 5*time.Millisecond)
	require.Equal(t, "up\n", task.output())
	require.Eventually(t, func() bool { return stand.sink.Len() == 0 }, 20*time.Second, time.Millisecond)
	if gone := task.StopLeftovers(""); gone != nil {
		<-gone
	}
}

func TestA11ASessionOfItsOwnIsALeftoverToo(t *testing.T) {
	stand := newStand(t, drained) // nobody holds the pipe
	if name, reason := stand.Net(); name == "group" {
		t.Skipf("no net that sees it: %s", reason)
	}
	task := stand.run(`(setsid sleep 324 >/dev/null 2>&1 & echo $!); echo up`)
	o := task.end()
	require.Equal(t, registry.StatusCompleted, o.Status)
	require.Equal(t, "exit code: 0; 1 process left running", o.Detail)
	require.Contains(t, task.output(), "up\n")
	require.True(t, task.Left())
	require.ErrorIs(t, task.Cancel(""), registry.ErrEnded)
	if gone := task.StopLeftovers(""); gone != nil {
		<-gone
	}
	require.False(t, alive(task.pid(0)))
	require.False(t, task.Left())
}

func TestA6SessionsOfTheirOwnAreStopped(t *testing.T) {
	stand := newStand(t)
	if name, reason := stand.Net(); name == "group" {
		t.Skipf("no net that sees them: %s", reason)
	}
	task := stand.run(`setsid sleep 307 & echo $!; setsid bash -c "setsid sleep 308 & echo \$!; wait" & wait`)
	for task.lines() < 2 {
		size, _ := task.Size()
		<-task.Grown(size)
	}
	require.NoError(t, task.Cancel(""))
	require.Equal(t, registry.StatusKilled, task.end().Status)
	require.False(t, alive(task.pid(0)))
	require.False(t, alive(task.pid(1)))
}

func TestSetGrace(t *testing.T) {
	stand := newStand(t, patient)
	task := stand.run(`trap '' TERM; echo up; sleep 315; sleep 315`)
	task.has("up\n")
	stand.SetGrace(50 * time.Millisecond)
	require.NoError(t, task.Cancel("enough"))
	require.Equal(t, "signal: SIGKILL", task.end().Detail)
}
