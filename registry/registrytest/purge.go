package registrytest

import (
	"context"

	"afoot/registry"
)

// purgeCases: removing the record of a finished task.
func purgeCases() []testCase {
	return []testCase{
		{name: "a purge removes record and stored output", run: purgeRemoves},
		{name: "a live task is not purged", run: purgeLive},
		{name: "a purge leaves other tasks alone", run: purgeOthers},
		{name: "of two purges at once one removes", run: purgeTwice},
		{name: "a kill and a read in the instant of a purge", run: purgeAgainstKill},
		{name: "an unreported end that is purged is not announced any more", run: purgeUnreported},
		{name: "a purge while an answer is on its way", run: purgeHeld},
		{name: "a purge of a final output", run: purgeFinal},
	}
}

func purgeRemoves(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("abc")
	work.Complete("")
	w.settled()
	w.is.Zero(work.Discards())
	w.is.NoError(w.Purge(w.ctx, alice(), work.ID))
	w.settled()
	w.is.Equal(1, work.Discards())
	w.is.Empty(w.ids(alice(), registry.ListOptions{}))
	w.refused(w.Purge(w.ctx, alice(), work.ID), registry.CodeGone)
	w.tale(work, registry.ChangeRegistered, registry.ChangeSettled, notice, registry.ChangeRemoved)
	w.is.Equal(1, work.Discards())
}

func purgeLive(w *world) {
	work := w.start(alice(), Script{})
	w.refused(w.Purge(w.ctx, alice(), work.ID), registry.CodeConflict)
	w.kill(work, "")
	w.refused(w.Purge(w.ctx, alice(), work.ID), registry.CodeConflict)
	w.is.Zero(work.Discards())
	w.tale(work, registry.ChangeRegistered, registry.ChangeStopping)
	work.Settle(registry.Outcome{Status: registry.StatusKilled})
	w.is.NoError(w.Purge(w.ctx, alice(), work.ID))
}

func purgeOthers(w *world) {
	first, second, third := w.start(alice(), Script{}), w.start(alice(), Script{}), w.start(alice(), Script{})
	second.Complete("")
	w.is.NoError(w.Purge(w.ctx, alice(), second.ID))
	w.is.Equal([]registry.ID{first.ID, third.ID}, w.ids(alice(), registry.ListOptions{}))
	w.is.Zero(first.Discards())
	third.Output.Append("abc")
	w.is.Equal("abc", w.take(third).Text)
}

func purgeTwice(w *world) {
	for range 20 {
		work := w.start(alice(), Script{})
		work.Complete("")
		purge := func(ctx context.Context) (struct{}, error) {
			return struct{}{}, w.Purge(ctx, alice(), work.ID)
		}
		one, two := begin(w.ctx, purge), begin(w.ctx, purge)
		w.settled()
		_, err1 := one.result()
		_, err2 := two.result()
		if err1 != nil {
			err1, err2 = err2, err1
		}
		w.is.NoError(err1)
		w.refused(err2, registry.CodeGone)
		w.is.Equal(1, work.Discards())
		w.is.Equal(1, w.log.count(work.ID, registry.ChangeRemoved))
	}
}

// purgeAgainstKill: the removal is the last that is told of a task.
func purgeAgainstKill(w *world) {
	for range rounds {
		work := w.start(alice(), Script{})
		work.Complete("")
		w.settled()
		kills := []*call[killed]{w.killing(work), w.killing(work), w.killing(work)}
		read := begin(w.ctx, func(ctx context.Context) (struct{}, error) {
			d, err := w.Read(ctx, alice(), work.ID, registry.ReadOptions{})
			if err == nil {
				err = d.Confirm()
			}
			return struct{}{}, err
		})
		w.is.NoError(w.Purge(w.ctx, alice(), work.ID))
		w.settled()
		for _, kill := range kills {
			if _, err := kill.result(); err != nil {
				w.refused(err, registry.CodeGone)
			}
		}
		_, _ = read.result()
		story := w.log.story(work.ID)
		w.is.Equal(registry.ChangeRemoved, story[len(story)-1], "%v", story)
	}
}

func purgeUnreported(w *world) {
	work := w.start(alice(), Script{})
	d := w.promised(work, registry.ReadOptions{})
	w.is.NoError(w.Purge(w.ctx, alice(), work.ID))
	d.Abandon()
	w.tale(work, registry.ChangeRegistered, registry.ChangeSettled, registry.ChangeRemoved)
}

// purgeHeld: the answer keeps its text, and readers in line learn that the task
// is gone instead of waiting for a turn that never comes.
func purgeHeld(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("abc")
	work.Complete("")
	w.settled()
	d := w.hold(work)
	var line []*call[*registry.Delivery]
	for range 3 {
		line = append(line, w.reading(work, registry.ReadOptions{}))
	}
	w.is.NoError(w.Purge(w.ctx, alice(), work.ID))
	w.is.Equal("abc", d.Text)
	d.Abandon()
	for _, c := range line {
		w.settled()
		w.is.True(c.returned(), "a turn was lost with the record")
		if late, err := c.result(); err != nil {
			w.refused(err, registry.CodeGone)
		} else {
			late.Abandon()
		}
	}
	w.tale(work, registry.ChangeRegistered, registry.ChangeSettled, notice, registry.ChangeRemoved)
}

func purgeFinal(w *world) {
	work := w.start(alice(), Script{Final: true})
	work.finish("answer")
	w.take(work)
	w.is.NoError(w.Purge(w.ctx, alice(), work.ID))
	w.settled()
	w.is.Equal(1, work.Discards())
	_, err := w.Get(w.ctx, alice(), work.ID)
	w.refused(err, registry.CodeGone)
}
