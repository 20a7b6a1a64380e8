package registrytest

import (
	"errors"
	"slices"
	"time"

	"afoot/registry"
)

var errBoom = errors.New("scripted failure")

// killCases: rules 8 and 11.
func killCases() []testCase {
	return []testCase{
		{name: "a kill asks the producer and forwards its reason", run: killForwards},
		{name: "a kill marks at once and is announced as stopping alone", run: killMarks},
		{name: "a killed task notifies nobody", run: killSilent},
		{name: "a kill again while stopping asks again", run: killAgain},
		{name: "a kill of a finished task consumes nothing", run: killFinished},
		{name: "a kill of a finished task marks it reported", run: killFinishedReports},
		{name: "a refusing cancel leaves everything untouched", run: killRefused},
		{name: "a cancel that refuses while stopping changes nothing", run: killRefusedAgain},
		{name: "a kill consumes no output", run: killConsumesNothing},
		{name: "the outcome of killed work is the producer's", run: killOutcome},
		{name: "a cancel may settle before it returns", run: killSettlesInCancel},
		{name: "a kill does not wait for the work", run: killDoesNotWait},
		{name: "every agent of a session may kill its tasks", run: killBySibling},
	}
}

func (w *world) kill(work *Work, reason string) (registry.KillOutcome, registry.Snapshot) {
	w.t.Helper()
	outcome, s, err := w.Kill(w.ctx, work.caller(), work.ID, reason)
	w.is.NoError(err)
	w.is.Equal(work.ID, s.ID)
	return outcome, s
}

func killForwards(w *world) {
	work := w.start(alice(), Script{})
	outcome, _ := w.kill(work, "no longer needed")
	w.is.Equal(registry.KillRequested, outcome)
	w.is.Equal([]string{"no longer needed"}, work.Cancels())

	silent := w.start(alice(), Script{})
	w.kill(silent, "")
	w.is.Equal([]string{""}, silent.Cancels())
}

func killMarks(w *world) {
	work := w.start(alice(), Script{})
	_, s := w.kill(work, "")
	w.is.Equal(registry.StatusStopping, s.Status)
	w.is.True(s.Reported)
	w.is.True(s.FinishedAt.IsZero())
	w.is.Equal(s, w.get(work))
	w.tale(work, registry.ChangeRegistered, registry.ChangeStopping)
	w.is.Equal(s, w.heard(work, registry.ChangeStopping))
}

func killSilent(w *world) {
	work := w.start(alice(), Script{})
	w.kill(work, "")
	work.Settle(registry.Outcome{Status: registry.StatusKilled, Detail: "signal: SIGTERM"})
	w.hold(work).Abandon()
	w.take(work)
	w.tale(work, registry.ChangeRegistered, registry.ChangeStopping, registry.ChangeSettled)
	w.is.True(w.get(work).Reported)
}

func killAgain(w *world) {
	work := w.start(alice(), Script{})
	w.kill(work, "first")
	outcome, s := w.kill(work, "second")
	w.is.Equal(registry.KillRequested, outcome)
	w.is.Equal(registry.StatusStopping, s.Status)
	w.is.Equal([]string{"first", "second"}, work.Cancels())
	w.tale(work, registry.ChangeRegistered, registry.ChangeStopping)
}

func killFinished(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("pending")
	work.Complete("exit code: 0")
	outcome, s := w.kill(work, "late")
	w.is.Equal(registry.KillAlreadyFinished, outcome)
	w.is.Equal(registry.StatusCompleted, s.Status)
	w.is.Equal("exit code: 0", s.Detail)
	w.is.Empty(work.Cancels())
	w.is.Equal("pending", w.take(work).Text)
}

func killFinishedReports(w *world) {
	work := w.start(alice(), Script{})
	work.Complete("")
	w.settled()
	_, s := w.kill(work, "")
	w.is.True(s.Reported)
	w.is.True(w.get(work).Reported)
	w.kill(work, "")
	w.tale(work, registry.ChangeRegistered, registry.ChangeSettled, notice, registry.ChangeReported)
}

func killRefused(w *world) {
	work := w.start(alice(), Script{Cancel: func(*Work, string) error { return errBoom }})
	before := w.get(work)
	_, _, err := w.Kill(w.ctx, alice(), work.ID, "please")
	w.is.ErrorIs(err, errBoom)
	w.is.Equal([]string{"please"}, work.Cancels())
	w.is.Equal(before, w.get(work))
	w.tale(work, registry.ChangeRegistered)
	work.Complete("")
	w.tale(work, registry.ChangeRegistered, registry.ChangeSettled, notice)
}

func killRefusedAgain(w *world) {
	refuse := false
	work := w.start(alice(), Script{Cancel: func(*Work, string) error {
		if refuse {
			return errBoom
		}
		return nil
	}})
	w.kill(work, "")
	before := w.get(work)
	refuse = true
	_, _, err := w.Kill(w.ctx, alice(), work.ID, "again")
	w.is.ErrorIs(err, errBoom)
	w.is.Equal(before, w.get(work))
	w.tale(work, registry.ChangeRegistered, registry.ChangeStopping)
}

func killConsumesNothing(w *world) {
	work := w.start(alice(), Script{})
	work.Output.Append("up\n")
	w.kill(work, "")
	work.Output.Append("bye\n")
	work.Settle(registry.Outcome{Status: registry.StatusKilled})
	r := w.take(work)
	w.is.Equal("up\nbye\n", r.Text)
	w.is.True(r.EOF)
}

func killOutcome(w *world) {
	for _, status := range []registry.Status{
		registry.StatusCompleted, registry.StatusKilled, registry.StatusFailed,
	} {
		work := w.start(alice(), Script{})
		w.kill(work, "")
		work.Settle(registry.Outcome{Status: status, Detail: "what really happened"})
		s := w.get(work)
		w.is.Equal(status, s.Status)
		w.is.Equal("what really happened", s.Detail)
	}
}

// killSettlesInCancel: the end comes before the kill could mark anything, and
// still nobody is told of it by a notice: the killer knows.
func killSettlesInCancel(w *world) {
	work := w.start(alice(), Script{Cancel: settlesKilled})
	outcome, s := w.kill(work, "")
	w.is.Equal(registry.KillRequested, outcome)
	w.is.True(s.Reported)
	s = w.get(work)
	w.is.Equal(registry.StatusKilled, s.Status)
	w.is.True(s.Reported)
	w.notices(work, 0)
	story := w.log.story(work.ID)
	ended := slices.Index(story, registry.ChangeSettled)
	w.is.GreaterOrEqual(ended, 0)
	w.is.NotContains(story[ended:], registry.ChangeStopping)
}

func killDoesNotWait(w *world) {
	work := w.start(alice(), Script{})
	before := time.Now()
	w.kill(work, "")
	w.is.Zero(time.Since(before))
	w.pass(time.Hour)
	w.is.Equal(registry.StatusStopping, w.get(work).Status)
}

func killBySibling(w *world) {
	work := w.start(w.open(alice(), 0), Script{})
	outcome, _, err := w.Kill(w.ctx, w.open(alice(), 0), work.ID, "by a sibling")
	w.is.NoError(err)
	w.is.Equal(registry.KillRequested, outcome)
}
