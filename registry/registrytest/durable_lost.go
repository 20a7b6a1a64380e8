package registrytest

import (
	"errors"

	"afoot/registry"
)

// lostOutputCases: a run that can't be given back.
func lostOutputCases() []durableCase {
	return []durableCase{
		{name: "its record stays, and all its bytes count as dropped", run: lostAll},
		{name: "of a run whose handle could not be had", run: lostHandle},
		{name: "of a kind that nobody attached", run: lostKind},
		{name: "it can be purged", run: lostPurge},
	}
}

// lostWork is an ended task of six bytes, three of them read, that can't be restored.
func (w *durableWorld) lostWork(s Script) *Work {
	work := w.start(alice(), s)
	work.Output.Append("abc")
	w.take(work)
	work.Output.Append("def")
	work.Complete("exit code: 0")
	w.settled()
	work.Output.Lose(errors.New("the file is gone"))
	return work
}

func (w *durableWorld) isLost(work *Work) {
	w.t.Helper()
	s := w.get(work)
	w.is.Equal(registry.StatusCompleted, s.Status)
	w.is.Equal("exit code: 0", s.Detail)
	w.is.EqualValues(6, s.OutputBytes)
	w.is.EqualValues(6, s.DroppedBytes)
	log, err := w.OpenLog(w.ctx, alice(), work.ID, "")
	w.is.NoError(err)
	first, next, ended := log.Bounds()
	w.is.Equal([]any{int64(6), int64(6), true}, []any{first, next, ended})
	w.is.NoError(log.Close())
	d, err := w.Describe(w.ctx, alice(), work.ID)
	w.is.NoError(err)
	w.is.JSONEq(`{}`, string(d.Request))
	_, err = w.Look(w.ctx, alice(), work.ID, 7, registry.LookOptions{})
	w.refused(err, registry.CodeInvalid)
	r := w.take(work)
	w.is.Empty(r.Text)
	w.is.EqualValues(3, r.Skipped)
	w.is.EqualValues(6, r.NextOffset)
	w.is.EqualValues(6, r.Dropped)
	w.is.True(r.EOF)
	w.is.True(w.get(work).Reported)
}

func lostAll(w *durableWorld) {
	work := w.lostWork(Script{})
	w = w.die(0)
	w.isLost(work)
	w = w.die(0)
	w.is.Zero(w.take(work).Skipped)
}

func lostHandle(w *durableWorld) {
	work := w.lostWork(Script{Handle: func(*Work) error { panic("boom") }})
	w.die(0).isLost(work)
}

func lostKind(w *durableWorld) {
	work := w.lostWork(Script{})
	jobs := w.jobs.Successor()
	s := w.factory(w.t, w.c.options, w.journal.Die(0))
	w.is.NoError(s.Load(w.ctx))
	got, err := s.Get(w.ctx, alice(), work.ID)
	w.is.NoError(err)
	w.is.EqualValues(6, got.DroppedBytes)
	w.is.Zero(jobs.Starts())
	w.is.NoError(s.Close(w.ctx))
}

func lostPurge(w *durableWorld) {
	work := w.lostWork(Script{})
	w = w.die(0)
	w.is.NoError(w.Purge(w.ctx, alice(), work.ID))
	w = w.die(0)
	w.codes(registry.CodeGone, work.ID)
}
