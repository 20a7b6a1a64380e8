package registrytest

import (
	"time"

	"afoot/registry"
)

// keptKeyCases: idempotency keys outlive the process.
func keptKeyCases() []durableCase {
	return []durableCase{
		{name: "a repeated start answers with the first one's task", run: keysReplay},
		{name: "another fingerprint is a mismatch", run: keysMismatch},
		{name: "a start that was not answered is repeated or replayed, never doubled", run: keysUnanswered},
		{name: "a key is remembered for 24 h, and then not kept", options: Options{RetainAge: 100 * time.Hour}, run: keysExpire},
		{name: "a key of a removed task is gone", run: keysGone},
		{name: "keys stay apart by session and subject", run: keysApart},
	}
}

func keysReplay(w *durableWorld) {
	r := w.keyed("k", 1, Script{})
	w.same(alice(), r, "job-1", false)
	w = w.die(0)
	w.same(alice(), r, "job-1", true)
	w.same(alice(), w.keyed("other", 1, Script{}), "job-2", false)
	w = w.reopen()
	w.same(alice(), r, "job-1", true)
}

func keysMismatch(w *durableWorld) {
	w.same(alice(), w.keyed("k", 1, Script{}), "job-1", false)
	w = w.die(0)
	_, err := w.Start(w.ctx, alice(), w.keyed("k", 2, Script{}))
	w.refused(err, registry.CodeIdempotencyMismatch)
}

func keysUnanswered(w *durableWorld) {
	for lucky := range 2 {
		r := w.keyed("k", 1, Script{})
		w.journal.Hold()
		c := w.starting(alice(), r)
		w.is.False(c.returned())
		w = w.die(lucky)
		w.same(alice(), r, "job-1", lucky == 1)
		if lucky == 0 {
			w.is.NoError(w.Close(w.ctx))
			w = newDurableWorld(w.t, w.factory, w.c, NewJournal(), NewProducer())
		}
	}
}

func keysExpire(w *durableWorld) {
	r := w.keyed("k", 1, Script{})
	w.same(alice(), r, "job-1", false)
	w.pass(23 * time.Hour)
	w = w.die(0)
	w.same(alice(), r, "job-1", true)
	w.pass(time.Hour)
	w.same(alice(), w.keyed("new", 1, Script{}), "job-2", false)
	w.is.Len(w.journal.Stored().Keys, 1)
	w.pass(24 * time.Hour)
	w = w.die(0)
	w.journal.Write(100)
	w.is.Empty(w.journal.Stored().Keys)
	w.same(alice(), r, "job-3", false)
}

func keysGone(w *durableWorld) {
	r := w.keyed("k", 1, Script{})
	w.same(alice(), r, "job-1", false)
	w = w.die(0)
	w.is.NoError(w.Purge(w.ctx, alice(), "job-1"))
	w = w.die(0)
	_, err := w.Start(w.ctx, alice(), r)
	w.refused(err, registry.CodeGone)
}

func keysApart(w *durableWorld) {
	mine, theirs := w.keyed("k", 1, Script{}), w.keyed("k", 1, Script{})
	mine.Subject, theirs.Subject = "me", "them"
	w.same(nobody(), mine, "job-1", false)
	w.same(nobody(), theirs, "job-2", false)
	w.same(alice(), mine, "job-3", false)
	w = w.die(0)
	w.same(alice(), theirs, "job-3", true)
	w.same(nobody(), theirs, "job-2", true)
	w.same(nobody(), mine, "job-1", true)
	w.same(bob(), mine, "job-4", false)
}
