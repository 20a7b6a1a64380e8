package registrytest

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"afoot/registry"
)

// settleCases: rule 12.
func settleCases() []testCase {
	return []testCase{
		{name: "the outcome is recorded as the producer gave it", run: settleRecords},
		{name: "the first outcome wins", run: settleFirstWins},
		{name: "of outcomes at once exactly one wins", run: settleAtOnce},
		{name: "a status that is no end settles as failed", run: settleNoEnd},
		{name: "a broken promise settles as failed with the reason", run: settleBroken},
		{name: "a reason of many lines becomes one line of detail", run: settleBrokenLines},
		{name: "the record is committed when settle returns", run: settleCommits},
		{name: "waiters are released before observers hear", run: settleReleasesFirst},
		{name: "settling after the record was removed changes nothing", run: settleRemoved},
	}
}

func settleRecords(w *world) {
	for _, status := range []registry.Status{
		registry.StatusCompleted, registry.StatusKilled, registry.StatusFailed,
	} {
		work := w.start(alice(), Script{})
		started := w.get(work)
		w.pass(90 * time.Second)
		work.Output.Append("12345")
		work.Settle(registry.Outcome{
			Status: status, Detail: "exit code: 3", Result: json.RawMessage(`{"exitCode":3}`),
		})
		s := w.get(work)
		w.is.True(s.FinishedAt.Equal(time.Now()))
		want := started
		want.Status, want.Detail, want.Result = status, "exit code: 3", json.RawMessage(`{"exitCode":3}`)
		want.FinishedAt, want.OutputBytes = s.FinishedAt, 5
		w.is.Equal(want, s)
		w.is.Equal(want, w.heard(work, registry.ChangeSettled))
		w.is.Equal(want, w.heard(work, notice))
	}
}

func settleFirstWins(w *world) {
	work := w.start(alice(), Script{})
	work.Complete("first")
	w.settled()
	first := w.get(work)
	w.pass(time.Second)
	work.Settle(registry.Outcome{Status: registry.StatusFailed, Detail: "second", Result: json.RawMessage(`{}`)})
	work.Break(errBoom)
	w.tale(work, registry.ChangeRegistered, registry.ChangeSettled, notice)
	w.is.Equal(first, w.get(work))
	w.is.Equal("first", w.take(work).Snapshot.Detail)
}

func settleAtOnce(w *world) {
	for range 50 {
		work := w.start(alice(), Script{})
		var all sync.WaitGroup
		for _, detail := range []string{"a", "b", "c", "d"} {
			all.Go(func() { work.Complete(detail) })
		}
		all.Wait()
		w.tale(work, registry.ChangeRegistered, registry.ChangeSettled, notice)
		detail := w.get(work).Detail
		w.is.Equal(detail, w.heard(work, registry.ChangeSettled).Detail)
		w.is.Equal(detail, w.heard(work, notice).Detail)
	}
}

func settleNoEnd(w *world) {
	for _, status := range []registry.Status{"", registry.StatusRunning, registry.StatusStopping, "done"} {
		work := w.start(alice(), Script{})
		work.Settle(registry.Outcome{Status: status})
		s := w.get(work)
		w.is.Equal(registry.StatusFailed, s.Status, "status %q", status)
		w.is.NotEmpty(s.Detail, "the reason is told")
		w.is.False(s.FinishedAt.IsZero())
		w.notices(work, 1)
	}
}

func settleBroken(w *world) {
	work := w.start(alice(), Script{})
	c := w.reading(work, registry.ReadOptions{Wait: time.Minute})
	work.Output.Append("before it broke")
	work.Break(errors.New("lost the child"))
	d := w.delivered(c)
	w.is.Equal(registry.StatusFailed, d.Snapshot.Status)
	w.is.Contains(d.Snapshot.Detail, "lost the child")
	w.is.Equal("before it broke", d.Text)
	w.is.True(d.EOF)
	d.Abandon()
	w.is.Contains(w.heard(work, notice).Detail, "lost the child")

	// An error counts, whatever the outcome beside it says.
	other := w.start(alice(), Script{})
	other.Output.End()
	other.settle(registry.Outcome{Status: registry.StatusCompleted, Detail: "all well"}, errBoom)
	s := w.get(other)
	w.is.Equal(registry.StatusFailed, s.Status)
	w.is.Contains(s.Detail, errBoom.Error())
}

func settleBrokenLines(w *world) {
	work := w.start(alice(), Script{})
	work.Break(errors.Join(errors.New("first"), errors.New("second")))
	detail := w.get(work).Detail
	w.is.Contains(detail, "first")
	w.is.False(strings.ContainsAny(detail, "\r\n"), "detail %q", detail)
}

func settleCommits(w *world) {
	work := w.start(alice(), Script{})
	work.Complete("")
	// Nothing else has run: no listener, no waiter.
	w.is.Equal(registry.StatusCompleted, w.get(work).Status)
}

// settleReleasesFirst allows for one waiter on whose goroutine the observers are
// told.
func settleReleasesFirst(w *world) {
	work := w.start(alice(), Script{})
	var waits []*call[registry.Read]
	for range 4 {
		waits = append(waits, w.looking(work, 0, time.Minute))
	}
	heard := make(chan int, 1)
	w.OnChange(registry.AllOwners(), func(change registry.Change) {
		if change.Type == registry.ChangeSettled {
			synctest.Wait()
			released := 0
			for _, c := range waits {
				if c.returned() {
					released++
				}
			}
			heard <- released
		}
	})
	go work.Complete("")
	w.is.GreaterOrEqual(<-heard, 3, "waits were still blocked when an observer heard of the end")
	for _, c := range waits {
		_, err := c.result()
		w.is.NoError(err)
	}
}

func settleRemoved(w *world) {
	work := w.start(alice(), Script{})
	work.Complete("")
	w.settled()
	w.is.NoError(w.Purge(w.ctx, alice(), work.ID))
	work.Settle(registry.Outcome{Status: registry.StatusFailed})
	w.tale(work, registry.ChangeRegistered, registry.ChangeSettled, notice, registry.ChangeRemoved)
}
