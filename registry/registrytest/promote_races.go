package registrytest

import (
	"context"
	"time"

	"afoot/registry"
)

// promoteRaceCases: whatever comes in the instant of a promotion, the snapshot in the
// answer is the truth everywhere.
func promoteRaceCases() []testCase {
	many := Options{MaxTasksPerOwner: rounds, MaxTasks: 2 * rounds}
	return []testCase{
		{name: "the end in the instant of a wait's bound", options: many, run: promoteAgainstEnd},
		{name: "the end in the instant of a read", options: many, run: promoteAgainstEndAtOnce},
		{name: "the end just before", run: promoteAfterEnd},
		{name: "the end just after", run: promoteBeforeEnd},
		{name: "leaving in the instant of a wait's bound", options: many, run: promoteAgainstLeaving},
		{name: "several promoters and the end", options: many, run: promoteMany},
		{name: "a kill in the instant of a promotion", options: many, run: promoteAgainstKill},
	}
}

// oneTruth ends an answer to a read with Promote of work that has ended by now, and
// asserts what must be so in either order.
func (w *world) oneTruth(work *Work, d *registry.Delivery, confirm bool) {
	w.t.Helper()
	s := w.get(work)
	w.is.True(s.Status.Terminal())
	w.is.Equal(d.Snapshot.Foreground, s.Foreground)
	if confirm {
		w.is.NoError(d.Confirm())
	} else {
		d.Abandon()
	}
	if d.Snapshot.Status.Terminal() {
		w.is.True(d.Snapshot.Foreground)
		w.is.True(d.Snapshot.Reported)
		w.is.True(d.EOF)
		w.is.Equal("abc", d.Text)
		w.whole(work, registry.ChangeRegistered, registry.ChangeSettled)
	} else {
		w.is.False(d.Snapshot.Foreground)
		w.is.False(d.Snapshot.Reported)
		w.is.False(d.EOF)
		w.whole(work, registry.ChangeRegistered, registry.ChangePromoted, registry.ChangeSettled, notice)
	}
	if !confirm {
		w.is.Equal("abc", w.take(work).Text)
	}
}

func promoteAgainstEnd(w *world) {
	for i := range rounds {
		work := w.foreground(alice(), Script{})
		work.Output.Append("abc")
		go func() {
			time.Sleep(time.Second)
			work.Complete("")
		}()
		c := w.reading(work, registry.ReadOptions{Wait: time.Second, Promote: true})
		w.pass(time.Second)
		w.oneTruth(work, w.delivered(c), i%2 == 0)
	}
}

func promoteAgainstEndAtOnce(w *world) {
	for i := range rounds {
		work := w.foreground(alice(), Script{})
		work.Output.Append("abc")
		go work.Complete("")
		c := w.reading(work, registry.ReadOptions{Promote: true})
		w.oneTruth(work, w.delivered(c), i%2 == 0)
	}
}

func promoteAfterEnd(w *world) {
	work := w.foreground(alice(), Script{})
	work.Output.Append("abc")
	go func() {
		time.Sleep(time.Second - tick)
		work.Complete("")
	}()
	c := w.reading(work, registry.ReadOptions{Wait: time.Second, Promote: true})
	w.pass(time.Second)
	d := w.delivered(c)
	w.is.True(d.Snapshot.Status.Terminal())
	w.oneTruth(work, d, true)
}

func promoteBeforeEnd(w *world) {
	work := w.foreground(alice(), Script{})
	work.Output.Append("abc")
	go func() {
		time.Sleep(time.Second + tick)
		work.Complete("")
	}()
	c := w.reading(work, registry.ReadOptions{Wait: time.Second, Promote: true})
	w.pass(2 * time.Second)
	d := w.delivered(c)
	w.is.False(d.Snapshot.Status.Terminal())
	w.oneTruth(work, d, true)
}

func promoteAgainstLeaving(w *world) {
	for range rounds {
		work := w.foreground(alice(), Script{})
		ctx, cancel := context.WithTimeout(w.ctx, time.Second)
		c := begin(ctx, func(ctx context.Context) (*registry.Delivery, error) {
			return w.Read(ctx, alice(), work.ID, registry.ReadOptions{Wait: time.Second, Promote: true})
		})
		w.pass(time.Second)
		w.is.True(c.returned())
		d, err := c.result()
		cancel()
		if err != nil {
			w.is.ErrorIs(err, context.DeadlineExceeded)
			w.whole(work, registry.ChangeRegistered)
			work.Complete("")
			w.whole(work, registry.ChangeRegistered, registry.ChangeSettled)
			continue
		}
		w.is.False(d.Snapshot.Foreground)
		d.Abandon()
		work.Complete("")
		w.whole(work, registry.ChangeRegistered, registry.ChangePromoted, registry.ChangeSettled, notice)
	}
}

func promoteMany(w *world) {
	for i := range rounds {
		work := w.foreground(alice(), Script{})
		work.Output.Append("abc")
		var calls []*call[*registry.Delivery]
		for range 4 {
			calls = append(calls, begin(w.ctx, func(ctx context.Context) (*registry.Delivery, error) {
				return w.Read(ctx, alice(), work.ID, registry.ReadOptions{Promote: true})
			}))
		}
		go work.Complete("")
		promoted, told := 0, 0
		w.answers(calls, func(_ int, d *registry.Delivery) {
			if !d.Snapshot.Status.Terminal() {
				w.is.False(d.Snapshot.Foreground)
				promoted++
			}
			if i%2 == 0 {
				w.is.NoError(d.Confirm())
				told++
			} else {
				d.Abandon()
			}
		})
		w.settled()
		s := w.get(work)
		w.is.Equal(promoted == 0, s.Foreground)
		w.is.LessOrEqual(w.log.count(work.ID, registry.ChangePromoted), 1)
		w.is.Equal(s.Foreground, w.log.count(work.ID, registry.ChangePromoted) == 0)
		notices := w.log.count(work.ID, notice)
		w.is.LessOrEqual(notices, 1)
		switch {
		case s.Foreground:
			w.is.Zero(notices)
			w.is.True(s.Reported)
		case !s.Reported:
			w.is.Equal(1, notices, "the end was swallowed")
		default:
			w.is.Positive(told)
		}
	}
}

func promoteAgainstKill(w *world) {
	for range rounds {
		work := w.foreground(alice(), Script{Cancel: settlesKilled})
		c := begin(w.ctx, func(ctx context.Context) (*registry.Delivery, error) {
			return w.Read(ctx, alice(), work.ID, registry.ReadOptions{Promote: true})
		})
		k := w.killing(work)
		d := w.delivered(c)
		_, err := k.result()
		w.is.NoError(err)
		w.is.Equal(d.Snapshot.Foreground, w.get(work).Foreground)
		w.is.Equal(d.Snapshot.Foreground, d.Snapshot.Status.Terminal())
		d.Abandon()
		w.notices(work, 0)
		w.is.True(w.get(work).Reported)
	}
}
