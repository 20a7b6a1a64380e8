package registrytest

import (
	"context"
	"runtime"
	"time"

	"afoot/registry"
)

// waitRaceCases: rule 10, a waiter that leaves against the settlement. The end
// is either in the waiter's hands or in a notice, never in both or in neither.
func waitRaceCases() []testCase {
	many := Options{MaxTasksPerOwner: rounds}
	return []testCase{
		{name: "a waiter that left before settlement swallows no notice", run: leftBefore},
		{name: "a waiter that leaves after settlement gets its result", options: many, run: leftAfter},
		{name: "a waiter that leaves just before settlement and learns of it just after", options: many, run: leftJustBefore},
		{name: "leaving in the same instant as settlement", options: many, run: leftSameInstant},
		{name: "timing out in the same instant as settlement", options: many, run: timedOutSameInstant},
		{name: "several waiters of whom some leave in the instant of settlement", options: many, run: someLeave},
		{name: "starting a wait in the instant of settlement", options: many, run: waitsSameInstant},
	}
}

// rounds is how often a race is run, to meet its orders.
const rounds = 200

func leftBefore(w *world) {
	work := w.start(alice(), Script{})
	c := w.reading(work, registry.ReadOptions{Wait: time.Minute})
	c.leave()
	w.settled()
	_, err := c.result()
	w.is.ErrorIs(err, context.Canceled)
	work.Output.Append("abc")
	work.Complete("")
	w.tale(work, registry.ChangeRegistered, registry.ChangeSettled, notice)
	w.is.Equal("abc", w.take(work).Text)
}

// leftAfter: settle has returned, so the waiter has been promised the result,
// although it had no chance yet to run: with one processor it runs when the case
// blocks.
func leftAfter(w *world) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for range rounds / 4 {
		work := w.start(alice(), Script{})
		c := w.reading(work, registry.ReadOptions{Wait: time.Minute})
		work.Complete("")
		c.leave()
		d, err := c.result()
		w.is.NoError(err, "the terminal snapshot wins")
		w.is.Equal(registry.StatusCompleted, d.Snapshot.Status)
		w.notices(work, 0)
		d.Abandon()
		w.notices(work, 1)
	}
}

// leftJustBefore: the waiter's context has ended, but with one processor it has not
// run when the settlement finds it still waiting.
func leftJustBefore(w *world) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for i := range rounds / 4 {
		work := w.start(alice(), Script{})
		c := w.reading(work, registry.ReadOptions{Wait: time.Minute})
		c.leave()
		work.Complete("")
		w.settled()
		w.eitherWay(work, c, i%2 == 0)
	}
}

// answers takes the answers of reads one after another, each when its turn has
// come. Reads that were left may end with the context's error.
func (w *world) answers(calls []*call[*registry.Delivery], each func(i int, d *registry.Delivery)) {
	w.t.Helper()
	over := make([]bool, len(calls))
	for left := len(calls); left > 0; {
		w.settled()
		before := left
		for i, c := range calls {
			if over[i] || !c.returned() {
				continue
			}
			over[i] = true
			left--
			if d, err := c.result(); err == nil {
				each(i, d)
			} else {
				w.is.ErrorIs(err, context.Canceled)
			}
		}
		w.is.Less(left, before, "a read is still blocked")
	}
}

// eitherWay ends a read of a settled task whose race is over: confirmed, it
// leaves no notice, abandoned or lost exactly one.
func (w *world) eitherWay(work *Work, c *call[*registry.Delivery], confirm bool) {
	w.t.Helper()
	d, err := c.result()
	switch {
	case err != nil:
		w.is.ErrorIs(err, context.Canceled)
		w.tale(work, registry.ChangeRegistered, registry.ChangeSettled, notice)
	case confirm:
		w.notices(work, 0)
		w.is.NoError(d.Confirm())
		w.tale(work, registry.ChangeRegistered, registry.ChangeSettled, registry.ChangeReported)
	default:
		w.notices(work, 0)
		d.Abandon()
		w.tale(work, registry.ChangeRegistered, registry.ChangeSettled, notice)
	}
}

func leftSameInstant(w *world) {
	for i := range rounds {
		work := w.start(alice(), Script{})
		c := w.reading(work, registry.ReadOptions{Wait: time.Minute})
		go work.Complete("")
		go c.leave()
		w.settled()
		w.eitherWay(work, c, i%2 == 0)
	}
}

// timedOutSameInstant: a wait whose time is over is promised nothing any more, but
// it may still see the end, as any read would; then the notice may be out already.
func timedOutSameInstant(w *world) {
	for i := range rounds {
		work := w.start(alice(), Script{})
		go func() {
			time.Sleep(time.Second)
			work.Complete("")
		}()
		c := w.reading(work, registry.ReadOptions{Wait: time.Second})
		w.pass(time.Second)
		w.is.True(c.returned())
		d, err := c.result()
		w.is.NoError(err)
		told := w.log.count(work.ID, notice)
		w.is.LessOrEqual(told, 1)
		if d.Snapshot.Status.Terminal() {
			w.is.True(d.EOF)
			w.is.True(d.Snapshot.Reported)
		} else {
			w.is.Equal(1, told, "the end was swallowed")
			w.is.False(d.EOF)
			w.is.False(d.Snapshot.Reported)
			w.is.True(d.Snapshot.FinishedAt.IsZero())
		}
		if i%2 == 0 {
			d.Abandon()
			w.notices(work, 1)
			w.is.False(w.get(work).Reported)
		} else {
			w.is.NoError(d.Confirm())
			w.notices(work, told)
			w.is.Equal(d.Snapshot.Status.Terminal(), w.get(work).Reported)
		}
	}
}

func someLeave(w *world) {
	for i := range rounds {
		work := w.start(alice(), Script{})
		var calls []*call[*registry.Delivery]
		for range 4 {
			calls = append(calls, w.reading(work, registry.ReadOptions{Wait: time.Minute}))
		}
		go work.Complete("")
		for _, c := range calls[:3] {
			go c.leave()
		}
		confirmed, stayed := false, false
		w.answers(calls, func(j int, d *registry.Delivery) {
			w.is.True(d.EOF)
			stayed = stayed || j == 3
			if j == 3 && i%2 == 0 {
				w.is.NoError(d.Confirm())
				confirmed = true
			} else {
				d.Abandon()
			}
		})
		w.is.True(stayed, "the stayer lost its wait")
		if confirmed {
			w.tale(work, registry.ChangeRegistered, registry.ChangeSettled, registry.ChangeReported)
		} else {
			w.tale(work, registry.ChangeRegistered, registry.ChangeSettled, notice)
		}
	}
}

// waitsSameInstant: a wait that comes just after the settlement is no promise, so
// the notice may be out before its answer; it must not be lost, nor come twice.
func waitsSameInstant(w *world) {
	for i := range rounds {
		work := w.start(alice(), Script{})
		go work.Complete("")
		c := begin(w.ctx, func(ctx context.Context) (*registry.Delivery, error) {
			return w.Read(ctx, alice(), work.ID, registry.ReadOptions{Wait: time.Minute})
		})
		d := w.delivered(c)
		w.is.True(d.EOF)
		if i%2 == 0 {
			d.Abandon()
			w.notices(work, 1)
		} else {
			w.is.NoError(d.Confirm())
			w.settled()
			w.is.LessOrEqual(w.log.count(work.ID, notice), 1)
			w.is.True(w.get(work).Reported)
		}
	}
}
