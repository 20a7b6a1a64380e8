package tools_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"afoot/api/tools"
	"afoot/registry"
	"afoot/registry/registrytest"
)

func TestOutput(t *testing.T) {
	inBubble(t, func(w *world) {
		work := w.start(registrytest.Script{}, 0)
		work.Output.Append("one\n")
		a := w.well(tools.NameOutput, `{"task_id":"bash-1"}`)
		w.is.Equal("one\n[status: running]", a.Text)
		v := value[tools.Output](w, a)
		w.is.Equal("one\n", v.Text)
		w.is.EqualValues(0, v.Offset)
		w.is.EqualValues(4, v.NextOffset)
		w.is.False(v.EOF)
		w.is.Equal(registry.ID("bash-1"), v.Task.ID)

		a, err := w.do(context.Background(), tools.NameOutput, `{"task_id":"bash-1"}`)
		w.is.NoError(err)
		w.is.Equal("(no new output)\n[status: running]", a.Text)
		a.Abandon()

		work.Output.Append("two")
		a, err = w.do(context.Background(), tools.NameOutput, `{"task_id":"bash-1"}`)
		w.is.NoError(err)
		a.Abandon() // it did not arrive
		work.Complete("exit code: 0")
		a = w.well(tools.NameOutput, `{"task_id":"bash-1"}`)
		w.is.Equal("two\n[status: completed, exit code: 0]", a.Text)
		w.is.True(value[tools.Output](w, a).EOF)
	})
}

func TestOutputWaits(t *testing.T) {
	inBubble(t, func(w *world) {
		work := w.start(registrytest.Script{}, 0)
		begun := time.Now()
		w.is.Equal("(no new output)\n[status: running]", w.well(tools.NameOutput, `{"task_id":"bash-1","wait":true}`).Text)
		w.is.Equal(30*time.Second, time.Since(begun))

		begun = time.Now()
		a := w.well(tools.NameOutput, `{"task_id":"bash-1","wait":true,"timeout_ms":99999999999999999999}`)
		w.is.Equal(10*time.Minute, time.Since(begun))
		w.is.Equal(10*time.Minute, a.Clamped)
		w.is.EqualValues(600_000, value[tools.Output](w, a).TimeoutMs)

		a = w.well(tools.NameOutput, `{"task_id":"bash-1","wait":true,"timeout_ms":600000}`)
		w.is.Zero(a.Clamped)
		begun = time.Now()
		w.well(tools.NameOutput, `{"task_id":"bash-1","timeout_ms":5000}`)
		w.is.Zero(time.Since(begun), "nothing waits that is not asked to")

		g := w.begin(tools.NameOutput, `{"task_id":"bash-1","wait":true}`)
		w.is.False(g.returned())
		work.Complete("exit code: 0")
		w.is.Equal("(no new output)\n[status: completed, exit code: 0]", g.wait().Text)
		w.is.NoError(g.answer.Confirm())
		w.is.Empty(w.told(), "its end was waited for")
	})
}

func TestOutputEndsWithTheRightToIt(t *testing.T) {
	inBubble(t, func(w *world) {
		work := w.start(registrytest.Script{}, 0)
		work.Output.Append("text")
		_, err := w.do(context.Background(), tools.NameOutput, `{"task_id":"bash-1","wait":true}`, func(c *tools.Call) {
			c.Until = time.Now().Add(time.Second)
		})
		w.is.ErrorIs(err, tools.ErrExpired)
		w.is.Equal("text\n[status: running]", w.well(tools.NameOutput, `{"task_id":"bash-1"}`).Text)
	})
}

func TestOutputCancelled(t *testing.T) {
	inBubble(t, func(w *world) {
		work := w.start(registrytest.Script{}, 0)
		work.Output.Append("text")
		g := w.begin(tools.NameOutput, `{"task_id":"bash-1","wait":true}`)
		g.cancel()
		w.is.True(g.wait().IsError)
		w.is.Equal("The call was cancelled: nothing was started, read or stopped.", g.answer.Text)
		w.is.Empty(work.Cancels())
		w.is.Equal("text\n[status: running]", w.well(tools.NameOutput, `{"task_id":"bash-1"}`).Text)
	})
}

func TestOutputExplicit(t *testing.T) {
	inBubble(t, func(w *world) {
		w.start(registrytest.Script{}, 0).Output.Append("text")
		explicit := func(c *tools.Call) { c.Explicit = true }
		for range 2 {
			w.is.Equal("text\n[status: running]", w.well(tools.NameOutput, `{"task_id":"bash-1"}`, explicit).Text)
		}
		w.is.NoError(w.service.Ack(context.Background(), alice(), "bash-1", 4))
		w.is.Equal("(no new output)\n[status: running]", w.well(tools.NameOutput, `{"task_id":"bash-1"}`, explicit).Text)
	})
}

// TestOutputTail: what is too long is read to its end, and its tail is shown.
func TestOutputTail(t *testing.T) {
	inBubble(t, func(w *world) {
		work := w.start(registrytest.Script{Split: true}, 0)
		work.Output.Append(strings.Repeat("a", 150) + strings.Repeat("b", 50))
		a := w.well(tools.NameOutput, `{"task_id":"bash-1"}`)
		w.is.Equal(strings.Repeat("b", 50)+"\n[output truncated]\n[status: running]", strings.TrimLeft(a.Text, "a"))
		w.is.Len(a.Text, 100)
		v := value[tools.Output](w, a)
		w.is.Equal(strings.Repeat("a", 50)+strings.Repeat("b", 50), v.Text)
		w.is.EqualValues(100, v.Offset)
		w.is.EqualValues(200, v.NextOffset)
		w.is.NotNil(v.Stderr)
		w.is.Equal("(no new output)\n[status: running]", w.well(tools.NameOutput, `{"task_id":"bash-1"}`).Text)
	}, func(c *tools.Config) { c.ResultBytes = 100 })
}

func TestList(t *testing.T) {
	inBubble(t, func(w *world) {
		a := w.well(tools.NameList, `{}`)
		w.is.Equal("(no background tasks)", a.Text)
		w.is.Empty(value[tools.List](w, a).Tasks)
		w.is.Equal("(no background tasks)", w.well(tools.NameList, ``).Text)
		w.start(registrytest.Script{Label: "first"}, 0)
		w.start(finishing("", registry.StatusCompleted, "exit code: 0", `{"exitCode":0}`), 0)
		w.script(finishing("", registry.StatusCompleted, "exit code: 0", `{"exitCode":0}`))
		w.well(tools.NameBash, `{"command":"c","description":"waited for"}`)
		w.script(registrytest.Script{})
		g := w.begin(tools.NameBash, `{"command":"c","description":"is waited for"}`)
		a = w.well(tools.NameList, `{}`, func(c *tools.Call) { c.Writes = false })
		w.is.Equal("bash-1 [bash] running — first\nbash-2 [bash] completed — scripted work\nbash-4 [bash] running — is waited for", a.Text)
		w.is.Len(value[tools.List](w, a).Tasks, 3)
		w.jobs.Work("bash-4").Complete("")
		w.is.NoError(g.wait().Confirm())
	})
}

func TestKill(t *testing.T) {
	inBubble(t, func(w *world) {
		work := w.start(registrytest.Script{}, 0)
		work.Output.Append("text")
		for range 2 {
			a := w.well(tools.NameKill, `{"task_id":"bash-1","reason":"no longer needed"}`)
			w.is.Equal("requested cancellation of task bash-1", a.Text)
			v := value[tools.Kill](w, a)
			w.is.Equal(registry.KillRequested, v.Outcome)
			w.is.Equal(registry.StatusStopping, v.Task.Status)
		}
		w.is.Contains(work.Cancels(), "no longer needed")
		work.Settle(registry.Outcome{Status: registry.StatusKilled, Detail: "signal: SIGTERM"})
		a := w.well(tools.NameKill, `{"task_id":"bash-1"}`)
		w.is.Equal("task bash-1 had already finished [status: killed, signal: SIGTERM]", a.Text)
		w.is.Equal(registry.KillAlreadyFinished, value[tools.Kill](w, a).Outcome)
		w.is.Equal("text\n[status: killed, signal: SIGTERM]", w.well(tools.NameOutput, `{"task_id":"bash-1"}`).Text)
		w.is.Empty(w.told())
	})
}

// TestArguments: everything that is wrong with arguments is told to the model.
func TestArguments(t *testing.T) {
	inBubble(t, func(w *world) {
		w.start(registrytest.Script{}, 0)
		long := strings.Repeat("x", 513)
		for _, c := range []struct{ tool, arguments, want string }{
			{tools.NameList, `{"all":true}`, `The argument "all" is unknown here.`},
			{tools.NameList, `[]`, `The arguments must be a JSON object.`},
			{tools.NameList, `"x`, `The arguments must be a JSON object.`},
			{tools.NameList, `null`, `The arguments must be a JSON object.`},
			{tools.NameOutput, `{}`, `The argument "task_id" is missing.`},
			{tools.NameOutput, `{"task_id":"bash-1","task_id":"bash-1"}`, `The argument "task_id" is there twice.`},
			{tools.NameOutput, `{"task_id":7}`, `The argument "task_id" must be a string.`},
			{tools.NameOutput, `{"task_id":null}`, `The argument "task_id" must not be null; leave it out if it has no value.`},
			{tools.NameOutput, `{"task_id":"bash-1","wait":"yes"}`, `The argument "wait" must be true or false.`},
			{tools.NameOutput, `{"task_id":"bash-1","timeout_ms":0}`, `The argument "timeout_ms" must be a positive whole number of milliseconds.`},
			{tools.NameOutput, `{"task_id":"bash-1","timeout_ms":-5}`, `The argument "timeout_ms" must be a positive whole number of milliseconds.`},
			{tools.NameOutput, `{"task_id":"bash-1","timeout_ms":1.5}`, `The argument "timeout_ms" must be a positive whole number of milliseconds.`},
			{tools.NameOutput, `{"task_id":"bash-1","timeout_ms":"5"}`, `The argument "timeout_ms" must be a positive whole number of milliseconds.`},
			{tools.NameOutput, `{"task_id":"bash-1","timeout_ms":null}`, `The argument "timeout_ms" must not be null; leave it out if it has no value.`},
			{tools.NameOutput, `{"task_id":"bash-1","taskId":"bash-1"}`, `The argument "taskId" is unknown here.`},
			{tools.NameOutput, `{"task_id":"bash-1","Wait":true}`, `The argument "Wait" is unknown here.`},
			{tools.NameKill, `{"task_id":"bash-1","reason":"a\nb"}`, `The argument "reason" must be one line of at most 512 bytes without control characters.`},
			{tools.NameKill, `{"task_id":"bash-1","reason":"` + long + `"}`, `The argument "reason" must be one line of at most 512 bytes without control characters.`},
			{tools.NameBash, `{"command":"c"}`, `The argument "description" is missing.`},
			{tools.NameBash, `{"description":"d"}`, `The argument "command" is missing.`},
			{tools.NameBash, `{"command":"","description":"d"}`, `The argument "command" is empty.`},
			{tools.NameBash, `{"command":"c","description":""}`, `The argument "description" must not be empty.`},
			{tools.NameBash, `{"command":"c","description":"a\nb"}`, `The argument "description" must be one line without control characters.`},
			{tools.NameBash, `{"command":"c","description":"d","env":{}}`, `The argument "env" is unknown here.`},
			{tools.NameBash, `{"command":"c","description":"d","yield_ms":0}`, `The argument "yield_ms" must be a positive whole number of milliseconds.`},
			{tools.NameBash, `{"command":"c","description":"d","run_in_background":true,"yield_ms":5}`, `The arguments "run_in_background" and "yield_ms" exclude each other: the one does not wait at all.`},
		} {
			w.is.Equal(c.want, w.failed(c.tool, c.arguments), "%s %s", c.tool, c.arguments)
		}
		w.is.Equal(1, w.jobs.Starts())
	})
}

// TestRefusals: what the registry refuses is told to the model, in its words.
func TestRefusals(t *testing.T) {
	inBubble(t, func(w *world) {
		w.start(registrytest.Script{}, 0)
		bob := func(c *tools.Call) { c.Caller = registry.Caller{Session: "bob"} }
		for _, name := range []string{tools.NameOutput, tools.NameKill} {
			w.is.Contains(w.failed(name, `{"task_id":"bash-1"}`, bob), "bash-1")
			w.is.Contains(w.failed(name, `{"task_id":"bash-9"}`), "bash-9")
			w.is.NotEmpty(w.failed(name, `{"task_id":""}`))
		}
		w.start(registrytest.Script{}, 0)
		w.start(registrytest.Script{}, 0)
		w.start(registrytest.Script{}, 0)
		for _, more := range []string{"", `,"run_in_background":true`, `,"yield_ms":5`} {
			w.is.Contains(w.failed(tools.NameBash, `{"command":"c","description":"d"`+more+`}`), "AFOOT_MAX_TASKS_PER_OWNER")
		}
		for _, work := range []registry.ID{"bash-1", "bash-2", "bash-3", "bash-4"} {
			w.jobs.Work(work).Complete("")
		}
		w.is.NoError(w.service.Purge(context.Background(), alice(), "bash-1"))
		w.is.Contains(w.failed(tools.NameOutput, `{"task_id":"bash-1"}`), "bash-1")

		_, err := w.do(context.Background(), "rm", `{}`)
		w.is.ErrorIs(err, tools.ErrUnknown)
		reader := func(c *tools.Call) { c.Writes = false }
		for _, name := range []string{tools.NameBash, tools.NameOutput, tools.NameKill} {
			_, err := w.do(context.Background(), name, `{"task_id":"bash-2"}`, reader)
			w.is.Equal(registry.CodeForbidden, registry.CodeOf(err))
		}
		unknown := func(c *tools.Call) { c.Caller.Agent = "agent-9" }
		_, err = w.do(context.Background(), tools.NameBash, `{"command":"c","description":"d"}`, unknown)
		w.is.Equal(registry.CodeUnknownAgent, registry.CodeOf(err))
		w.jobs.Work("bash-2").Output.Lose(errBoom)
		_, err = w.do(context.Background(), tools.NameOutput, `{"task_id":"bash-2"}`)
		w.is.ErrorIs(err, errBoom)
	})
}

// TestCancelledBefore: a call that arrives cancelled does nothing and says so.
func TestCancelledBefore(t *testing.T) {
	inBubble(t, func(w *world) {
		work := w.start(registrytest.Script{}, 0)
		work.Output.Append("text")
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		for name, arguments := range map[string]string{
			tools.NameBash:   `{"command":"c","description":"d","run_in_background":true}`,
			tools.NameOutput: `{"task_id":"bash-1"}`,
			tools.NameKill:   `{"task_id":"bash-1"}`,
			tools.NameList:   `{}`,
		} {
			a, err := w.do(ctx, name, arguments)
			w.is.NoError(err)
			w.is.True(a.IsError)
			w.is.Equal("The call was cancelled before it began: nothing was started, read or stopped.", a.Text)
		}
		w.is.Equal(1, w.jobs.Starts())
		w.is.Empty(work.Cancels())
		w.is.Equal("text\n[status: running]", w.well(tools.NameOutput, `{"task_id":"bash-1"}`).Text)
	})
}

// TestGolden pins every text about a task at every limit, with characters of one to
// four bytes on the cut. The limit is the task's own, but for bash that of results.
func TestGolden(t *testing.T) {
	for _, char := range []struct{ name, text string }{
		{"1-byte", "x"}, {"2-byte", "é"}, {"3-byte", "界"}, {"4-byte", "🜁"},
	} {
		var b strings.Builder
		for _, limit := range []int64{0, 4096, 80, 64, 48, 32, 20, 8, 1} {
			show := func(what string, a *tools.Answer) {
				if limit > 0 && int64(len(a.Text)) > limit {
					t.Errorf("%s in %d: %q", what, limit, a.Text)
				}
				quote(&b, what, limit, a.Text)
			}
			body := strings.Repeat(char.text, 100)
			inBubble(t, func(w *world) { goldenTexts(w, limit, body, show) })
			inBubble(t, func(w *world) { goldenResults(w, body, show) }, func(c *tools.Config) { c.ResultBytes = limit })
		}
		golden(t, char.name, b.String())
	}
}

// goldenTexts are the texts about a task that has a limit.
func goldenTexts(w *world, limit int64, body string, show func(string, *tools.Answer)) {
	work := w.start(registrytest.Script{}, limit)
	for _, c := range []struct{ what, tool, arguments string }{
		{"unknown argument", tools.NameOutput, `{"task_id":"bash-1","` + body + `":1}`},
		{"wrong argument", tools.NameKill, `{"task_id":"bash-1","reason":7}`},
	} {
		show(c.what, w.call(c.tool, c.arguments))
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	cancelled, err := w.do(ctx, tools.NameKill, `{"task_id":"bash-1"}`)
	w.is.NoError(err)
	show("cancelled", cancelled)
	work.Output.Append(body)
	show("read", w.well(tools.NameOutput, `{"task_id":"bash-1"}`))
	show("read nothing", w.well(tools.NameOutput, `{"task_id":"bash-1"}`))
	show("kill", w.well(tools.NameKill, `{"task_id":"bash-1"}`))
	work.Output.Append(body + "\n")
	work.Settle(registry.Outcome{Status: registry.StatusKilled, Detail: "signal: SIGTERM"})
	show("kill finished", w.well(tools.NameKill, `{"task_id":"bash-1"}`))
	show("read end", w.well(tools.NameOutput, `{"task_id":"bash-1"}`))
}

// goldenResults are the texts of bash, within the limit of results.
func goldenResults(w *world, body string, show func(string, *tools.Answer)) {
	bash := func(what, output string, status registry.Status, detail, result string) {
		w.script(finishing(output, status, detail, result))
		show(what, w.well(tools.NameBash, `{"command":"c","description":"d","timeout_ms":2500}`))
	}
	bash("bash", body, registry.StatusCompleted, "exit code: 0", `{"exitCode":0}`)
	bash("bash nothing", "", registry.StatusCompleted, "exit code: 0", `{"exitCode":0}`)
	bash("bash exit", body+"\n", registry.StatusCompleted, "exit code: 3", `{"exitCode":3}`)
	bash("bash signal", body, registry.StatusKilled, "signal: SIGKILL", `{"signal":"SIGKILL"}`)
	bash("bash time-out", body, registry.StatusKilled, "timed out after 2500ms", `{"signal":"SIGTERM","timedOut":true}`)
	w.script(registrytest.Script{Start: func(_ context.Context, work *registrytest.Work) error {
		work.Output.Append(body)
		return nil
	}})
	show("bash goes on", w.well(tools.NameBash, `{"command":"c","description":"d","yield_ms":5}`))
	w.script(registrytest.Script{})
	show("started", w.well(tools.NameBash, `{"command":"c","description":"d","run_in_background":true}`))
	show("list", w.well(tools.NameList, `{}`))
	show("bash refused", w.call(tools.NameBash, fmt.Sprintf(`{"command":"c","description":"d","%s":1}`, body)))
}

// TestOutputOutOfTurn: an end whose output is on its way to somebody else is not told
// as one without output.
func TestOutputOutOfTurn(t *testing.T) {
	inBubble(t, func(w *world) {
		work := w.start(registrytest.Script{}, 0)
		work.Output.Append("text")
		work.Complete("exit code: 0")
		first, err := w.do(context.Background(), tools.NameOutput, `{"task_id":"bash-1"}`)
		w.is.NoError(err)
		w.is.Equal("Another read of task bash-1 is on its way to its caller; read again in a moment.",
			w.failed(tools.NameOutput, `{"task_id":"bash-1","wait":true,"timeout_ms":1000}`))
		first.Abandon()
		w.is.Equal("text\n[status: completed, exit code: 0]", w.well(tools.NameOutput, `{"task_id":"bash-1"}`).Text)
	})
}
