package tools_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"afoot/api/tools"
	"afoot/registry"
	"afoot/registry/registrytest"
)

// TestForegroundShared: what a command came to is all that it printed, whoever read
// some of it meanwhile.
func TestForegroundShared(t *testing.T) {
	for _, late := range []string{"two\n", ""} {
		inBubble(t, func(w *world) {
			w.script(registrytest.Script{})
			g := w.begin(tools.NameBash, `{"command":"c","description":"d"}`)
			work := w.jobs.Work("bash-1")
			work.Output.Append("one\n")
			w.is.Equal("one\n[status: running]", w.well(tools.NameOutput, `{"task_id":"bash-1"}`).Text)
			work.Output.Append(late)
			work.Complete("exit code: 0")
			a := g.wait()
			w.is.NoError(a.Confirm())
			w.is.Equal("one\n"+late, a.Text)
			v := value[tools.Bash](w, a)
			w.is.Equal("one\n"+late, *v.Text)
			w.is.Zero(*v.Offset)
			w.is.EqualValues(4+len(late), *v.NextOffset)
			w.is.True(*v.EOF)
			w.is.Equal("(no new output)\n[status: completed, exit code: 0]", w.well(tools.NameOutput, `{"task_id":"bash-1"}`).Text)
		})
	}
}

// TestForegroundFailedShared: so is what failed work printed.
func TestForegroundFailedShared(t *testing.T) {
	inBubble(t, func(w *world) {
		w.script(registrytest.Script{})
		g := w.begin(tools.NameBash, `{"command":"c","description":"d"}`)
		work := w.jobs.Work("bash-1")
		work.Output.Append("one\n")
		w.well(tools.NameOutput, `{"task_id":"bash-1"}`)
		work.Settle(registry.Outcome{Status: registry.StatusFailed, Detail: "broken"})
		w.is.Equal("one\n[status: failed, broken]", g.wait().Text)
	})
}

// TestForegroundEndsOutOfTurn: the answer of another read is on its way when the time
// is over, and the command has ended.
func TestForegroundEndsOutOfTurn(t *testing.T) {
	inBubble(t, func(w *world) {
		w.script(registrytest.Script{})
		g := w.begin(tools.NameBash, `{"command":"c","description":"d","yield_ms":5000}`)
		work := w.jobs.Work("bash-1")
		work.Output.Append("one\n")
		other, err := w.service.Read(context.Background(), alice(), "bash-1", registry.ReadOptions{})
		w.is.NoError(err)
		work.Output.Append("two\n")
		work.Complete("exit code: 0")
		pass(5 * time.Second)
		a := g.wait()
		w.is.Equal("one\ntwo\n", a.Text)
		w.is.Equal(tools.BashForeground, value[tools.Bash](w, a).Kind)
		w.is.True(*value[tools.Bash](w, a).EOF)
		w.is.NoError(a.Confirm())
		other.Abandon()
		w.is.Empty(w.told())
	})
}

// TestPromotionShared: what the text lacks is marked, because others have it or nobody
// has it yet.
func TestPromotionShared(t *testing.T) {
	const end = "[output truncated; full output: /tasks/bash-1/log]\n[still running as background task bash-1]"
	inBubble(t, func(w *world) {
		w.script(registrytest.Script{})
		g := w.begin(tools.NameBash, `{"command":"c","description":"d","yield_ms":5000}`)
		work := w.jobs.Work("bash-1")
		work.Output.Append("one\n")
		w.well(tools.NameOutput, `{"task_id":"bash-1"}`)
		work.Output.Append("two\n")
		a := g.wait()
		w.is.Equal("two\n"+end, a.Text)
		w.is.NoError(a.Confirm())
		work.Complete("")
		w.is.Len(w.told(), 1)
	})
	inBubble(t, func(w *world) {
		w.script(registrytest.Script{})
		g := w.begin(tools.NameBash, `{"command":"c","description":"d","yield_ms":5000}`)
		work := w.jobs.Work("bash-1")
		work.Output.Append("one\n")
		other, err := w.service.Read(context.Background(), alice(), "bash-1", registry.ReadOptions{})
		w.is.NoError(err)
		a := g.wait()
		w.is.Equal(end, a.Text)
		w.is.NoError(a.Confirm())
		other.Abandon()
		w.is.Equal("one\n[status: running]", w.well(tools.NameOutput, `{"task_id":"bash-1"}`).Text)
		work.Complete("")
		w.is.Len(w.told(), 1)
	})
}

// TestResultBeyondPage: more than one page holds is none the less a tail.
func TestResultBeyondPage(t *testing.T) {
	inBubble(t, func(w *world) {
		w.script(finishing(strings.Repeat("界", registry.MaxPageBytes/3+9)+"\nthe end\n", registry.StatusCompleted, "", `{"exitCode":2}`))
		call := tools.Call{Caller: alice(), Name: tools.NameBash, Arguments: []byte(`{"command":"c","description":"d"}`), Writes: true}
		a, err := w.set.Call(context.Background(), call)
		w.is.NoError(err)
		a.Abandon()
		const end = "\nthe end\n[output truncated; full output: /tasks/bash-1/log]\n[exit code: 2]"
		w.is.Equal(end, a.Text[max(0, len(a.Text)-len(end)):])
		w.is.True(*value[tools.Bash](w, a).EOF)
		again, err := w.set.Result(context.Background(), call, "bash-1")
		w.is.NoError(err)
		w.is.Equal(a.Text, again.Text)
	}, func(c *tools.Config) { c.ResultBytes = 5 * registry.MaxPageBytes })
}
