package registrytest

import (
	"afoot/registry"
)

// attachCases: rule 3, and producers as attachments.
func attachCases() []testCase {
	return []testCase{
		{name: "start is refused without a controller", bare: true, run: noController},
		{name: "detaching a controller refuses starts and ends no running task", bare: true, run: detachEndsNothing},
		{name: "a controller of one session serves no other", bare: true, run: scopedController},
		{name: "the zero scope serves unowned work alone", bare: true, run: unownedController},
		{name: "controllers of one name stay independent", bare: true, run: equalNames},
		{name: "replacing a producer leaves running work alone", run: replacedProducer},
		{name: "detaching a replaced producer leaves its successor", run: detachReplaced},
		{name: "ids go on counting over a replaced producer", run: replacedCounts},
	}
}

func noController(w *world) {
	w.AttachProducer(job, w.jobs)
	for _, c := range []registry.Caller{alice(), nobody()} {
		w.refused(w.tryStart(c), registry.CodeUnavailable)
	}
	w.is.Zero(w.jobs.Starts(), "the starter ran")
	w.AttachController("late", registry.AllOwners())
	w.is.Equal(registry.ID("job-1"), w.start(alice(), Script{}).ID)
}

func detachEndsNothing(w *world) {
	w.AttachProducer(job, w.jobs)
	detach := w.AttachController("short", registry.AllOwners())
	work := w.start(alice(), Script{})
	detach()
	w.refused(w.tryStart(alice()), registry.CodeUnavailable)
	w.settled()
	w.is.Empty(work.Cancels())
	w.is.Equal(registry.StatusRunning, w.get(work).Status)
	work.Output.Append("still read")
	w.is.Equal("still read", w.take(work).Text)
	outcome, _, err := w.Kill(w.ctx, alice(), work.ID, "done with it")
	w.is.NoError(err)
	w.is.Equal(registry.KillRequested, outcome)
}

func scopedController(w *world) {
	w.AttachProducer(job, w.jobs)
	w.AttachController("alice's", registry.SessionScope("alice"))
	w.is.NoError(w.tryStart(alice()))
	agent := w.open(alice(), 0)
	w.is.NoError(w.tryStart(agent), "every agent of the session is served")
	w.refused(w.tryStart(bob()), registry.CodeUnavailable)
	w.refused(w.tryStart(nobody()), registry.CodeUnavailable)
	w.AttachController("bob's", registry.SessionScope("bob"))
	w.is.NoError(w.tryStart(bob()))
}

func unownedController(w *world) {
	w.AttachProducer(job, w.jobs)
	w.AttachController("nobody's", registry.Scope{})
	w.is.NoError(w.tryStart(nobody()))
	w.refused(w.tryStart(alice()), registry.CodeUnavailable)
}

func equalNames(w *world) {
	w.AttachProducer(job, w.jobs)
	first := w.AttachController("twin", registry.AllOwners())
	second := w.AttachController("twin", registry.AllOwners())
	first()
	first()
	w.is.NoError(w.tryStart(alice()), "detaching twice took the twin along")
	second()
	w.refused(w.tryStart(alice()), registry.CodeUnavailable)
}

func replacedProducer(w *world) {
	old := w.start(alice(), Script{})
	other := NewProducer()
	defer other.Retire()
	w.AttachProducer(job, other)
	w.settled()
	w.is.Empty(old.Cancels())
	w.is.NoError(w.tryStartOn(alice()))
	w.is.Equal(1, other.Starts())
	w.is.Equal(1, w.jobs.Starts())

	_, _, err := w.Kill(w.ctx, alice(), old.ID, "old")
	w.is.NoError(err)
	w.is.Equal([]string{"old"}, old.Cancels(), "a kill goes to the producer that made the work")
	old.Complete("")
	w.is.Equal(registry.StatusCompleted, w.get(old).Status)
}

// tryStartOn starts with empty fields, which every scripted producer knows.
func (w *world) tryStartOn(c registry.Caller) error {
	_, err := w.Start(w.ctx, c, registry.StartRequest{Spec: registry.Spec{Kind: job}})
	return err
}

func detachReplaced(w *world) {
	const other registry.Kind = "other"
	first, second := NewProducer(), NewProducer()
	detachFirst := w.AttachProducer(other, first)
	detachSecond := w.AttachProducer(other, second)
	defer second.Retire()
	request := registry.StartRequest{Spec: registry.Spec{Kind: other}}

	detachFirst()
	_, err := w.Start(w.ctx, alice(), request)
	w.is.NoError(err)
	w.is.Equal(1, second.Starts())

	detachSecond()
	detachSecond()
	_, err = w.Start(w.ctx, alice(), request)
	w.refused(err, registry.CodeInvalid)
	w.is.Zero(first.Starts(), "a detached producer came back")
}

func replacedCounts(w *world) {
	w.start(alice(), Script{})
	other := NewProducer()
	defer other.Retire()
	w.AttachProducer(job, other)
	w.is.NoError(w.tryStartOn(alice()))
	w.is.NotNil(other.Work("job-2"))
}
