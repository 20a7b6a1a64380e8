package tools_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"afoot/api/tools"
	"afoot/registry"
	"afoot/registry/registrytest"
)

// fields are what a command was started with.
type fields struct {
	Command   string `json:"command"`
	Workdir   string `json:"workdir"`
	TimeoutMs int64  `json:"timeoutMs"`
	Script    int    `json:"script"`
}

func (w *world) fields(id registry.ID) (f fields) {
	w.t.Helper()
	w.is.NoError(json.Unmarshal(w.jobs.Work(id).Spec.Fields, &f))
	f.Script = 0
	return f
}

func (w *world) get(id registry.ID) registry.Snapshot {
	w.t.Helper()
	s, err := w.service.Get(context.Background(), alice(), id)
	w.is.NoError(err)
	return s
}

func TestForeground(t *testing.T) {
	inBubble(t, func(w *world) {
		for _, c := range []struct {
			output, result string
			status         registry.Status
			want           string
		}{
			{"hi\n", `{"exitCode":0}`, registry.StatusCompleted, "hi\n"},
			{"", `{"exitCode":0}`, registry.StatusCompleted, "(no output)"},
			{"hi\n", `{"exitCode":3}`, registry.StatusCompleted, "hi\n[exit code: 3]"},
			{"hi", `{"signal":"SIGSEGV"}`, registry.StatusKilled, "hi\n[killed by signal: SIGSEGV]"},
			{"hi", `{"signal":"SIGTERM","timedOut":true}`, registry.StatusKilled, "hi\n[timed out after 120000ms]"},
			{"hi", `{"exitCode":1,"timedOut":true}`, registry.StatusKilled, "hi\n[timed out after 120000ms]"},
			{"hi", ``, registry.StatusCompleted, "hi"},
		} {
			w.script(finishing(c.output, c.status, "detail", c.result))
			a := w.well(tools.NameBash, `{"command":"echo","description":"say it","workdir":"/w"}`)
			w.is.Equal(c.want, a.Text)
			v := value[tools.Bash](w, a)
			w.is.Equal(tools.BashForeground, v.Kind)
			w.is.Equal(a.ID, v.Task.ID)
			w.is.Equal("say it", v.Task.Label)
			w.is.True(v.Task.Foreground)
			w.is.Equal(c.output, *v.Text)
			w.is.EqualValues(len(c.output), *v.NextOffset)
			w.is.True(*v.EOF)
			w.is.Equal(fields{Command: "echo", Workdir: "/w", TimeoutMs: 120_000}, w.fields(a.ID))
			w.is.True(w.get(a.ID).Reported)
		}
		w.is.Empty(w.told())
	})
}

// TestFailedWork: work that could not be done is the tool's failure.
func TestFailedWork(t *testing.T) {
	inBubble(t, func(w *world) {
		w.script(finishing("hi\n", registry.StatusFailed, "no shell", ""))
		a := w.call(tools.NameBash, `{"command":"c","description":"d"}`)
		w.is.True(a.IsError)
		w.is.Equal("hi\n[status: failed, no shell]", a.Text)
		w.script(registrytest.Script{Start: func(context.Context, *registrytest.Work) error {
			return registry.Errorf(registry.CodeUnavailable, "no more processes")
		}})
		w.is.Equal("no more processes", w.failed(tools.NameBash, `{"command":"c","description":"d"}`))
	})
}

func TestForegroundTimeout(t *testing.T) {
	inBubble(t, func(w *world) {
		w.script(finishing("", registry.StatusCompleted, "", `{"exitCode":0}`))
		for _, c := range []struct {
			more         string
			sent, answer int64
		}{
			{``, 120_000, 0},
			{`,"timeout_ms":5`, 5, 0},
			{`,"timeout_ms":600000`, 600_000, 0},
			{`,"timeout_ms":600001`, 600_000, 600_000},
			{`,"timeout_ms":99999999999999999999`, 600_000, 600_000},
			{`,"run_in_background":false`, 120_000, 0},
			{`,"run_in_background":true`, 0, 0},
			{`,"run_in_background":true,"timeout_ms":700000`, 700_000, 0},
			{`,"run_in_background":true,"timeout_ms":99999999999999999999`, registry.MaxSafeInteger, 0},
			{`,"yield_ms":100`, 0, 0},
			{`,"yield_ms":100,"timeout_ms":700000`, 700_000, 0},
			{`,"yield_ms":700000`, 0, 600_000},
		} {
			a := w.well(tools.NameBash, `{"command":"c","description":"d"`+c.more+`}`)
			w.is.Equal(c.sent, w.fields(a.ID).TimeoutMs, c.more)
			w.is.Equal(c.answer, a.Clamped.Milliseconds(), c.more)
			w.is.Equal(c.answer, value[tools.Bash](w, a).TimeoutMs, c.more)
		}
	})
}

func TestBackground(t *testing.T) {
	inBubble(t, func(w *world) {
		w.script(registrytest.Script{})
		a := w.well(tools.NameBash, `{"command":"c","description":"d","run_in_background":true}`)
		w.is.Equal("started background task bash-1", a.Text)
		data, err := json.Marshal(a.Value)
		w.is.NoError(err)
		w.is.JSONEq(`{"kind":"background","taskId":"bash-1"}`, string(data))
		w.is.False(w.get("bash-1").Foreground)
		w.jobs.Work("bash-1").Complete("exit code: 0")
		w.is.Len(w.told(), 1)
	})
}

// TestBackgroundOff: what is not in the schema is refused when it comes all the same.
func TestBackgroundOff(t *testing.T) {
	inBubble(t, func(w *world) {
		w.is.Equal(`The argument "run_in_background" is unknown here.`, w.failed(tools.NameBash, `{"command":"c","description":"d","run_in_background":true}`))
		w.is.Equal(`The argument "yield_ms" is unknown here.`, w.failed(tools.NameBash, `{"command":"c","description":"d","yield_ms":5}`))
		w.is.Zero(w.jobs.Starts())
		w.script(finishing("hi", registry.StatusCompleted, "", `{"exitCode":0}`))
		w.is.Equal("hi", w.well(tools.NameBash, `{"command":"c","description":"d"}`).Text)
	}, func(c *tools.Config) { c.Background = false })
}

// TestPromotion: after yield_ms the command goes on as a background task.
func TestPromotion(t *testing.T) {
	inBubble(t, func(w *world) {
		w.script(registrytest.Script{})
		g := w.begin(tools.NameBash, `{"command":"c","description":"d","yield_ms":5000}`)
		work := w.jobs.Work("bash-1")
		work.Output.Append("so far\n")
		w.is.True(w.get("bash-1").Foreground)
		pass(4999 * time.Millisecond)
		w.is.False(g.returned())
		pass(time.Millisecond)
		a := g.wait()
		w.is.Equal("so far\n[still running as background task bash-1]", a.Text)
		v := value[tools.Bash](w, a)
		w.is.Equal(tools.BashBackground, v.Kind)
		w.is.Equal(registry.ID("bash-1"), v.TaskID)
		w.is.Equal("so far\n", *v.Text)
		w.is.EqualValues(7, *v.NextOffset)
		w.is.False(v.Task.Foreground)
		w.is.NoError(a.Confirm())
		g.cancel() // changes nothing any more
		pass(time.Hour)
		w.is.Empty(work.Cancels())
		w.is.False(w.get("bash-1").Foreground)
		work.Output.Append("the rest")
		work.Complete("exit code: 0")
		w.is.Len(w.told(), 1)
		w.is.Equal("the rest\n[status: completed, exit code: 0]", w.well(tools.NameOutput, `{"task_id":"bash-1"}`).Text)
	})
}

// TestPromotionUnread: an answer that was lost leaves a background task whose text is
// unread.
func TestPromotionUnread(t *testing.T) {
	inBubble(t, func(w *world) {
		w.script(registrytest.Script{Start: func(_ context.Context, work *registrytest.Work) error {
			work.Output.Append("so far\n")
			return nil
		}})
		a, err := w.do(context.Background(), tools.NameBash, `{"command":"c","description":"d","yield_ms":1}`)
		w.is.NoError(err)
		a.Abandon()
		w.is.Empty(w.jobs.Work("bash-1").Cancels())
		w.is.Equal("so far\n[status: running]", w.well(tools.NameOutput, `{"task_id":"bash-1"}`).Text)
		w.jobs.Work("bash-1").Complete("exit code: 0")
		w.is.Len(w.told(), 1)
	})
}

func TestEndBeforeYield(t *testing.T) {
	inBubble(t, func(w *world) {
		w.script(registrytest.Script{})
		g := w.begin(tools.NameBash, `{"command":"c","description":"d","yield_ms":5000}`)
		pass(time.Second)
		w.jobs.Work("bash-1").Output.Append("done\n")
		w.jobs.Work("bash-1").Complete("exit code: 0")
		a := g.wait()
		w.is.Equal("done\n", a.Text)
		w.is.Equal(tools.BashForeground, value[tools.Bash](w, a).Kind)
		w.is.NoError(a.Confirm())
		pass(time.Minute)
		w.is.Empty(w.told())
	})
}

// TestForegroundCancelled: the command ends with its call.
func TestForegroundCancelled(t *testing.T) {
	for _, more := range []string{"", `,"yield_ms":5000`} {
		inBubble(t, func(w *world) {
			w.script(registrytest.Script{Cancel: func(work *registrytest.Work, _ string) error {
				work.Output.Append("last words")
				work.Settle(registry.Outcome{Status: registry.StatusKilled, Detail: "signal: SIGTERM"})
				return nil
			}})
			g := w.begin(tools.NameBash, `{"command":"c","description":"d"`+more+`}`)
			work := w.jobs.Work("bash-1")
			g.cancel()
			a := g.wait()
			w.is.True(a.IsError)
			w.is.Equal("The call was cancelled; task bash-1, which ran its command, is stopped.", a.Text)
			w.is.Equal([]string{"the call was cancelled"}, work.Cancels())
			w.is.Equal(registry.StatusKilled, w.get("bash-1").Status)
			read, err := w.service.Look(context.Background(), alice(), "bash-1", 0, registry.LookOptions{})
			w.is.NoError(err)
			w.is.Equal("last words", read.Text)
			w.is.Empty(w.told())
		})
	}
}

// TestForegroundCancelledInStart: from its publication on the task belongs to the call,
// which ends it.
func TestForegroundCancelledInStart(t *testing.T) {
	inBubble(t, func(w *world) {
		ctx, cancel := context.WithCancel(context.Background())
		w.script(registrytest.Script{Start: func(context.Context, *registrytest.Work) error {
			cancel()
			return nil
		}})
		a, err := w.do(ctx, tools.NameBash, `{"command":"c","description":"d"}`)
		w.is.NoError(err)
		w.is.True(a.IsError)
		w.is.Len(w.jobs.Work("bash-1").Cancels(), 1)
	})
}

// TestForegroundExpires: the command ends with the right to its call.
func TestForegroundExpires(t *testing.T) {
	inBubble(t, func(w *world) {
		w.script(registrytest.Script{})
		_, err := w.do(context.Background(), tools.NameBash, `{"command":"c","description":"d","yield_ms":5000}`, func(c *tools.Call) {
			c.Until = time.Now().Add(time.Second)
		})
		w.is.ErrorIs(err, tools.ErrExpired)
		w.is.Len(w.jobs.Work("bash-1").Cancels(), 1)
		w.is.True(w.get("bash-1").Foreground)
	})
}

// TestForegroundLetGo: a command that can't be stopped with its call goes on as a
// background task, whose end is told.
func TestForegroundLetGo(t *testing.T) {
	inBubble(t, func(w *world) {
		w.script(registrytest.Script{Cancel: func(*registrytest.Work, string) error { return errBoom }})
		g := w.begin(tools.NameBash, `{"command":"c","description":"d"}`)
		g.cancel()
		w.is.True(g.wait().IsError)
		w.is.False(w.get("bash-1").Foreground)
		w.jobs.Work("bash-1").Complete("")
		w.is.Len(w.told(), 1)
	})
}

// TestDaemonIsReplaced: the command goes on under the next daemon.
func TestDaemonIsReplaced(t *testing.T) {
	left := make(chan struct{})
	inBubble(t, func(w *world) {
		w.script(registrytest.Script{})
		g := w.begin(tools.NameBash, `{"command":"c","description":"d"}`)
		w.jobs.Work("bash-1").Output.Append("so far")
		close(left)
		// What a hand-over does to reads is what the end of the service does.
		closing, stop := context.WithCancel(context.Background())
		go func() { _ = w.service.Close(closing) }()
		a := g.wait()
		w.is.False(a.IsError, a.Text)
		w.is.Equal("so far\n[still running as background task bash-1]", a.Text)
		w.is.NoError(a.Confirm())
		stop()
	}, func(c *tools.Config) { c.Leaving = func() <-chan struct{} { return left } })
}

// TestDaemonShutsDown: the call is told, and the owner is after the next start.
func TestDaemonShutsDown(t *testing.T) {
	inBubble(t, func(w *world) {
		w.script(registrytest.Script{})
		g := w.begin(tools.NameBash, `{"command":"c","description":"d"}`)
		go func() { _ = w.service.Close(context.Background()) }()
		a := g.wait()
		w.is.True(a.IsError)
		w.is.Equal("The daemon is shutting down; task bash-1 is stopped with it.", a.Text)
		w.jobs.Work("bash-1").Settle(registry.Outcome{Status: registry.StatusKilled, Detail: registry.DetailShutdown})
		synctest.Wait()
		s := w.get("bash-1")
		w.is.False(s.Foreground)
		w.is.False(s.Reported)
		w.is.Contains(w.failed(tools.NameBash, `{"command":"c","description":"d"}`), "shutting down")
	})
}

// TestResultIsBounded: the tail is kept, all of it can be had elsewhere.
func TestResultIsBounded(t *testing.T) {
	inBubble(t, func(w *world) {
		w.script(finishing(strings.Repeat("a", 200)+"\n", registry.StatusCompleted, "", `{"exitCode":2}`))
		a := w.well(tools.NameBash, `{"command":"c","description":"d"}`, func(c *tools.Call) {
			c.LogAddress = func(id registry.ID) string { return "http://x/" + string(id) }
		})
		end := "\n[output truncated; full output: http://x/bash-1]\n[exit code: 2]"
		w.is.Equal(strings.Repeat("a", 100-len(end))+end, a.Text)
		w.is.EqualValues(201, *value[tools.Bash](w, a).NextOffset)
	}, func(c *tools.Config) { c.ResultBytes = 100 })
}
