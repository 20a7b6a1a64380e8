package registrytest

import (
	"context"
	"slices"
	"time"

	"afoot/registry"
)

// killRaceCases: rules 8, 11 and 16, a kill against everything else.
func killRaceCases() []testCase {
	many := Options{MaxTasksPerOwner: rounds}
	return []testCase{
		{name: "a kill in the instant of settlement", options: many, run: killAgainstSettle},
		{name: "a cancel that refuses because the work has just ended", run: killRefusedByEnded},
		{name: "a cancel that came too late is answered as for a finished task", run: killTooLate},
		{name: "a cancel that is still busy when the work ends", run: killBusyCancel},
		{name: "a kill during a held live answer", run: killDuringLive},
		{name: "a kill during a held terminal answer silences its notice", run: killDuringTerminal},
		{name: "kills, waits and reads all at once", options: many, run: killStorm},
	}
}

type killed struct {
	outcome registry.KillOutcome
	of      registry.Snapshot
}

func (w *world) killing(work *Work) *call[killed] {
	return begin(w.ctx, func(ctx context.Context) (killed, error) {
		outcome, s, err := w.Kill(ctx, alice(), work.ID, "race")
		return killed{outcome, s}, err
	})
}

func killAgainstSettle(w *world) {
	for range rounds {
		work := w.start(alice(), Script{})
		go work.Complete("")
		c := w.killing(work)
		w.settled()
		k, err := c.result()
		w.is.NoError(err)
		w.is.True(k.of.Reported)
		s := w.get(work)
		w.is.Equal(registry.StatusCompleted, s.Status)
		w.is.True(s.Reported)
		if k.outcome == registry.KillRequested {
			w.notices(work, 0)
			w.is.NotEmpty(work.Cancels())
		} else {
			w.is.Equal(registry.KillAlreadyFinished, k.outcome)
			w.is.True(k.of.Status.Terminal())
			w.is.LessOrEqual(w.log.count(work.ID, notice), 1)
		}
		w.is.Equal(1, w.log.count(work.ID, registry.ChangeSettled))
	}
}

// killRefusedByEnded: whoever asks to end what has just ended may be refused, or
// told so; the end itself must not get lost between the two.
func killRefusedByEnded(w *world) {
	work := w.start(alice(), Script{Cancel: func(work *Work, _ string) error {
		work.Complete("just in time")
		return errBoom
	}})
	outcome, _, err := w.Kill(w.ctx, alice(), work.ID, "")
	w.settled()
	w.is.Equal("just in time", w.get(work).Detail)
	if err != nil {
		w.is.ErrorIs(err, errBoom)
		w.is.False(w.get(work).Reported)
		w.notices(work, 1)
		return
	}
	w.is.Equal(registry.KillAlreadyFinished, outcome)
	w.is.True(w.get(work).Reported)
}

func killBusyCancel(w *world) {
	busy := w.gate()
	work := w.start(alice(), Script{Cancel: func(*Work, string) error { busy.pass(); return nil }})
	c := w.killing(work)
	w.settled()
	w.is.Equal(registry.StatusRunning, w.get(work).Status, "nothing is marked before the producer has agreed")
	work.Complete("")
	w.settled()
	busy.open()
	k, err := c.result()
	w.is.NoError(err)
	w.settled()
	w.is.True(k.of.Reported)
	w.is.True(w.get(work).Reported)
	w.is.Equal(registry.StatusCompleted, w.get(work).Status)
	if k.outcome == registry.KillRequested {
		w.notices(work, 0)
	} else {
		w.is.LessOrEqual(w.log.count(work.ID, notice), 1)
	}
	story := w.log.story(work.ID)
	ended := slices.Index(story, registry.ChangeSettled)
	w.is.NotContains(story[ended:], registry.ChangeStopping, "what has ended does not stop")
}

func killDuringLive(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("abc")
	d := w.hold(work)
	outcome, _ := w.kill(work, "")
	w.is.Equal(registry.KillRequested, outcome)
	work.Settle(registry.Outcome{Status: registry.StatusKilled})
	w.is.NoError(d.Confirm())
	w.is.Empty(w.take(work).Text)
	w.tale(work, registry.ChangeRegistered, registry.ChangeStopping, registry.ChangeSettled)
}

func killDuringTerminal(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("abc")
	d := w.promised(work, registry.ReadOptions{})
	outcome, s := w.kill(work, "")
	w.is.Equal(registry.KillAlreadyFinished, outcome)
	w.is.True(s.Reported)
	d.Abandon()
	w.pass(time.Hour)
	w.tale(work, registry.ChangeRegistered, registry.ChangeSettled, registry.ChangeReported)
	w.is.Equal("abc", w.take(work).Text, "the abandoned text is unread")
}

func killStorm(w *world) {
	for range rounds / 4 {
		work := w.start(alice(), Script{Cancel: func(work *Work, _ string) error {
			go work.Settle(registry.Outcome{Status: registry.StatusKilled})
			return nil
		}})
		go work.Complete("")
		kills := []*call[killed]{w.killing(work), w.killing(work)}
		var reads []*call[registry.Read]
		for range 3 {
			reads = append(reads, begin(w.ctx, func(ctx context.Context) (registry.Read, error) {
				d, err := w.Read(ctx, alice(), work.ID, registry.ReadOptions{Wait: time.Minute})
				if err != nil {
					return registry.Read{}, err
				}
				return d.Read, d.Confirm()
			}))
		}
		w.settled()
		first := w.get(work)
		w.is.True(first.Status.Terminal())
		for _, k := range kills {
			_, err := k.result()
			w.is.NoError(err)
		}
		for _, c := range reads {
			r, err := c.result()
			w.is.NoError(err)
			w.is.Equal(first.Status, r.Snapshot.Status, "one terminal state everywhere")
			w.is.Equal(first.FinishedAt, r.Snapshot.FinishedAt)
		}
		w.is.LessOrEqual(w.log.count(work.ID, notice), 1)
		w.is.Equal(1, w.log.count(work.ID, registry.ChangeSettled))
		w.is.LessOrEqual(w.log.count(work.ID, registry.ChangeReported), 1)
	}
}

// killTooLate: the work had ended by itself, and its settlement was on its way
// when the cancel came.
func killTooLate(w *world) {
	work := w.start(alice(), Script{Cancel: func(work *Work, _ string) error {
		work.Complete("exit code: 0")
		return registry.ErrEnded
	}})
	outcome, s, err := w.Kill(w.ctx, alice(), work.ID, "late")
	w.is.NoError(err)
	w.is.Equal(registry.KillAlreadyFinished, outcome)
	w.is.Equal(registry.StatusCompleted, s.Status)
	w.is.True(s.Reported)
}
