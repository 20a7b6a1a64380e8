package registrytest

import (
	"context"
	"time"

	"afoot/registry"
)

// What happens while the answer that promotes is made.

func promoteEndsMeanwhile(w *world) {
	for _, wait := range []time.Duration{0, time.Second} {
		work := w.foreground(alice(), Script{})
		work.Output.Append("abc")
		work.Output.OnPage(func() {
			work.Output.OnPage(nil)
			work.Output.Append("def")
			work.Complete("just now")
		})
		d := w.holdWith(work, registry.ReadOptions{Promote: true, Wait: wait})
		w.is.Equal("abcdef", d.Text)
		w.is.True(d.EOF)
		w.is.Equal("just now", d.Snapshot.Detail)
		w.is.True(d.Snapshot.Foreground)
		w.is.True(d.Snapshot.Reported)
		w.is.NoError(d.Confirm())
		w.silent(work, registry.StatusCompleted)
		w.is.Empty(w.take(work).Text)
	}
}

func promoteSplitMeanwhile(w *world) {
	work := w.foreground(alice(), Script{Split: true})
	work.Stderr.OnPage(func() { // the page of the first stream is cut
		work.Stderr.OnPage(nil)
		work.Output.Append("out")
		work.Stderr.Append("error")
		work.Complete("")
	})
	d := w.holdWith(work, registry.ReadOptions{Promote: true})
	w.pieces(d.Read, "out", "error")
	w.is.True(d.EOF)
	w.is.True(d.Stderr.EOF)
	d.Abandon()
	w.silent(work, registry.StatusCompleted)
	w.pieces(w.take(work), "out", "error")
}

func promoteLeavesMeanwhile(w *world) {
	work := w.foreground(alice(), Script{})
	work.Output.Append("abc")
	ctx, cancel := context.WithCancel(w.ctx)
	work.Output.OnPage(cancel)
	_, err := w.Read(ctx, alice(), work.ID, registry.ReadOptions{Promote: true})
	w.is.ErrorIs(err, context.Canceled)
	w.whole(work, registry.ChangeRegistered)
	w.is.True(w.get(work).Foreground)
	w.is.Equal("abc", w.take(work).Text, "the turn was given back")
}

func promoteRemoved(w *world) {
	work := w.foreground(alice(), Script{})
	work.Output.OnPage(func() {
		work.Complete("")
		w.is.NoError(w.Purge(w.ctx, alice(), work.ID))
	})
	_, err := w.Read(w.ctx, alice(), work.ID, registry.ReadOptions{Promote: true})
	w.refused(err, registry.CodeGone)
	w.whole(work, registry.ChangeRegistered, registry.ChangeSettled, registry.ChangeRemoved)
}

// promoteLate: while an answer is made the task is promoted out of turn, and ends.
func promoteLate(w *world) {
	late := func(then func(work *Work)) (*Work, *registry.Delivery, error) {
		work := w.foreground(alice(), Script{})
		work.Output.OnPage(func() {
			work.Output.OnPage(nil)
			d := w.holdWith(work, registry.ReadOptions{Promote: true, Wait: time.Second})
			w.is.False(d.Snapshot.Foreground)
			then(work)
		})
		d, err := w.Read(w.ctx, alice(), work.ID, registry.ReadOptions{Promote: true})
		if err == nil {
			w.held = append(w.held, d)
		}
		return work, d, err
	}
	work, d, err := late(func(*Work) {})
	w.is.NoError(err)
	w.is.False(d.Snapshot.Foreground)
	w.background(work)
	for _, confirm := range []bool{true, false} {
		work, d, err := late(func(work *Work) { work.Complete("") })
		w.is.NoError(err)
		w.is.True(d.EOF)
		w.is.False(d.Snapshot.Foreground)
		w.is.True(d.Snapshot.Reported, "by this answer")
		last := registry.ChangeDue
		if confirm {
			last = registry.ChangeReported
			w.is.NoError(d.Confirm())
		} else {
			d.Abandon()
		}
		w.whole(work, registry.ChangeRegistered, registry.ChangePromoted, registry.ChangeSettled, notice, registry.ChangeHeld, last)
		w.is.Equal(confirm, w.get(work).Reported)
	}
	work, _, err = late(func(work *Work) {
		work.Complete("")
		w.is.NoError(w.Purge(w.ctx, alice(), work.ID))
	})
	w.refused(err, registry.CodeGone)
	w.whole(work, registry.ChangeRegistered, registry.ChangePromoted, registry.ChangeSettled, notice, registry.ChangeRemoved)
}
