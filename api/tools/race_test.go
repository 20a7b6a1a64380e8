package tools_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"afoot/api/tools"
	"afoot/registry"
	"afoot/registry/registrytest"
)

// TestPromotionAgainstTheEnd: whichever comes first, answer, record and notice agree,
// and every byte is shown once.
func TestPromotionAgainstTheEnd(t *testing.T) {
	inBubble(t, func(w *world) {
		w.script(registrytest.Script{Start: func(_ context.Context, work *registrytest.Work) error {
			time.AfterFunc(5*time.Millisecond, func() {
				work.Output.Append("all")
				work.Settle(registry.Outcome{Status: registry.StatusCompleted, Detail: "exit code: 0", Result: []byte(`{"exitCode":0}`)})
			})
			return nil
		}})
		promoted := 0
		for range 200 {
			before := len(w.told())
			a := w.well(tools.NameBash, `{"command":"c","description":"d","yield_ms":5}`)
			v := value[tools.Bash](w, a)
			notices := len(w.told()) - before
			s := w.get(a.ID)
			w.is.Equal(registry.StatusCompleted, s.Status)
			if v.Kind == tools.BashForeground {
				w.is.Equal("all", a.Text)
				w.is.True(s.Foreground)
				w.is.True(s.Reported)
				w.is.Zero(notices)
				continue
			}
			promoted++
			w.is.False(s.Foreground)
			w.is.Equal(1, notices)
			rest := w.well(tools.NameOutput, `{"task_id":"`+string(a.ID)+`"}`)
			w.is.Equal("all", *v.Text+value[tools.Output](w, rest).Text)
		}
		t.Logf("promoted %d of 200", promoted)
	})
}

// TestCancellationAgainstPromotion: a call is either cancelled, and its command stopped,
// or answered, and then nothing is.
func TestCancellationAgainstPromotion(t *testing.T) {
	inBubble(t, func(w *world) {
		w.script(registrytest.Script{Cancel: func(work *registrytest.Work, _ string) error {
			work.Settle(registry.Outcome{Status: registry.StatusKilled})
			return nil
		}})
		promoted := 0
		for range 200 {
			before := len(w.told())
			ctx, cancel := context.WithCancel(context.Background())
			time.AfterFunc(5*time.Millisecond, cancel)
			a, err := w.do(ctx, tools.NameBash, `{"command":"c","description":"d","yield_ms":5}`)
			w.is.NoError(err)
			w.is.NoError(a.Confirm())
			synctest.Wait()
			work, s := w.jobs.Work(a.ID), w.get(a.ID)
			if a.IsError {
				w.is.Len(work.Cancels(), 1)
				w.is.True(s.Foreground)
				w.is.Equal(registry.StatusKilled, s.Status)
				w.is.Len(w.told(), before)
				continue
			}
			promoted++
			w.is.Empty(work.Cancels())
			w.is.False(s.Foreground)
			w.is.Equal(registry.StatusRunning, s.Status)
			work.Complete("exit code: 0")
			w.is.Len(w.told(), before+1)
		}
		t.Logf("promoted %d of 200", promoted)
	})
}
