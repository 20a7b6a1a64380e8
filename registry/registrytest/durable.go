package registrytest

import (
	"context"
	"testing"
	"testing/synctest"

	"afoot/registry"
)

// Durable is a service that keeps what must outlive its process in a journal.
type Durable interface {
	registry.Service
	// Load brings back what was kept. It comes once, behind the producers and the
	// listeners and before every other call, which is [registry.CodeUnavailable] till
	// then.
	Load(ctx context.Context) error
}

// DurableFactory makes a service on a journal, with nothing attached and not loaded.
type DurableFactory func(t *testing.T, o Options, j registry.Journal) Durable

// durableCase is one promise about what is kept.
type durableCase struct {
	name    string
	options Options
	run     func(w *durableWorld)
}

// RunDurable holds services against the contract of what outlives them. A case lets
// their process die, or ends it, and looks at its successor on the same journal. The
// whole contract of [Run] holds for them too.
func RunDurable(t *testing.T, factory DurableFactory) {
	for _, g := range []struct {
		name  string
		cases []durableCase
	}{
		{"death", deathCases()},
		{"kept", keptCases()},
		{"kept notices", keptNoticeCases()},
		{"kept agents", keptAgentCases()},
		{"kept keys", keptKeyCases()},
		{"kept foreground", keptForegroundCases()},
		{"shutdown", shutdownCases()},
		{"lost output", lostOutputCases()},
		{"write order", writeOrderCases()},
		{"journal trouble", troubleCases()},
		{"hand-over", moveCases()},
	} {
		t.Run(g.name, func(t *testing.T) {
			for _, c := range g.cases {
				t.Run(c.name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						c.run(newDurableWorld(t, factory, c, NewJournal(), NewProducer()))
					})
				})
			}
		})
	}
	t.Run("any death, anything", func(t *testing.T) { durableModel(t, factory) })
}

// durableWorld is one process of a case.
type durableWorld struct {
	*world
	journal *Journal
	factory DurableFactory
	c       durableCase
}

func newDurableWorld(t *testing.T, factory DurableFactory, c durableCase, j *Journal, jobs *Producer) *durableWorld {
	w := newWorldOf(t, testCase{options: c.options}, jobs, func(o Options) registry.Service { return factory(t, o, j) })
	d := &durableWorld{world: w, journal: j, factory: factory, c: c}
	t.Cleanup(func() { // before the world's own
		j.Fail(nil)
		j.OnSync(nil)
		j.Release()
	})
	load(w)
	return d
}

func load(w *world) {
	w.t.Helper()
	durable, is := w.Service.(Durable)
	w.is.True(is)
	w.is.NoError(durable.Load(w.ctx))
	w.settled()
}

// die lets the process die. Of what was not written, the first lucky calls were
// written all the same. The successor is loaded.
func (w *durableWorld) die(lucky int) *durableWorld {
	w.t.Helper()
	w.settled()
	next := w.journal.Die(lucky)
	return newDurableWorld(w.t, w.factory, w.c, next, w.jobs.Successor())
}

// reopen closes the service and lets a successor begin.
func (w *durableWorld) reopen() *durableWorld {
	w.t.Helper()
	w.is.NoError(w.Close(w.ctx))
	w.is.Zero(w.journal.InLine(), "the service ended before all was written")
	return w.die(0)
}

// of gives the handle of a task of an earlier process.
func (w *durableWorld) of(work *Work) *Work {
	w.t.Helper()
	if now := w.jobs.Work(work.ID); now != nil {
		return now
	}
	return work
}
