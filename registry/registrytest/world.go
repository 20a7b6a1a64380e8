package registrytest

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"afoot/registry"
)

// job is the kind of all scripted work that a case does not name otherwise.
const job registry.Kind = "job"

// world is one case's surroundings: a service, a producer, somebody who listens
// to everything, and what must be let go when the case is over.
type world struct {
	registry.Service
	t     *testing.T
	is    *require.Assertions
	ctx   context.Context
	jobs  *Producer
	log   *recorder
	store *store
	gates []*gate
	held  []*registry.Delivery
}

// alice and bob are callers of two sessions, nobody has none.
func alice() registry.Caller  { return registry.Caller{Session: "alice"} }
func bob() registry.Caller    { return registry.Caller{Session: "bob"} }
func nobody() registry.Caller { return registry.Caller{} }

func newWorld(t *testing.T, factory Factory, c testCase) *world {
	return newWorldOf(t, c, NewProducer(), func(o Options) registry.Service { return factory(t, o) })
}

func newWorldOf(t *testing.T, c testCase, jobs *Producer, factory func(Options) registry.Service) *world {
	ctx, cancel := context.WithCancel(context.Background())
	w := &world{
		t: t, is: require.New(t), ctx: ctx,
		jobs: jobs, log: &recorder{}, store: &store{},
	}
	if c.roomed {
		c.options.Room = w.store.room
	}
	w.Service = factory(c.options)
	w.OnChange(registry.AllOwners(), w.log.change)
	w.OnDone(registry.AllOwners(), w.log.notice)
	if !c.bare {
		w.AttachController("suite", registry.AllOwners())
		w.AttachProducer(job, w.jobs)
	}
	t.Cleanup(func() {
		// Also after a failed assertion nothing may stay blocked, or the bubble's
		// deadlock would hide the failure.
		cancel()
		for _, g := range w.gates {
			g.open()
		}
		for _, d := range w.held {
			d.Abandon()
		}
		w.jobs.Retire()
		if err := w.Close(context.Background()); err != nil {
			t.Errorf("close at the end of the case: %v", err)
		}
	})
	return w
}

// settled waits until nothing moves any more. Virtual time stands still.
func (w *world) settled() { synctest.Wait() }

// pass lets virtual time go by and everything happen that it brings about.
func (w *world) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (w *world) gate() *gate {
	g := newGate()
	w.gates = append(w.gates, g)
	return g
}

// request asks for scripted work of kind job.
func (w *world) request(s Script) registry.StartRequest {
	return registry.StartRequest{Spec: registry.Spec{Kind: job, Fields: w.jobs.Fields(s)}}
}

// start starts scripted work and gives its handle.
func (w *world) start(c registry.Caller, s Script) *Work {
	w.t.Helper()
	started, err := w.Start(w.ctx, c, w.request(s))
	w.is.NoError(err)
	work := w.jobs.Work(started.Snapshot.ID)
	w.is.NotNil(work, "the task was published under another id than its launch")
	return work
}

// tryStart starts plain work and gives the error alone.
func (w *world) tryStart(c registry.Caller) error {
	_, err := w.Start(w.ctx, c, w.request(Script{}))
	return err
}

// refused asserts a code.
func (w *world) refused(err error, code registry.Code) {
	w.t.Helper()
	w.is.Error(err, "expected %s", code)
	w.is.Equal(code, registry.CodeOf(err), "%v", err)
}

// caller is the default agent of the session that owns the work.
func (work *Work) caller() registry.Caller {
	return registry.Caller{Session: work.Owner.Session}
}

// get looks at a task through its own session.
func (w *world) get(work *Work) registry.Snapshot {
	w.t.Helper()
	s, err := w.Get(w.ctx, work.caller(), work.ID)
	w.is.NoError(err)
	return s
}

// hold reads without a wait and leaves the answer on its way.
func (w *world) hold(work *Work) *registry.Delivery {
	w.t.Helper()
	return w.holdWith(work, registry.ReadOptions{})
}

func (w *world) holdWith(work *Work, o registry.ReadOptions) *registry.Delivery {
	w.t.Helper()
	d, err := w.Read(w.ctx, work.caller(), work.ID, o)
	w.is.NoError(err)
	w.held = append(w.held, d)
	return d
}

// take reads without a wait and confirms.
func (w *world) take(work *Work) registry.Read {
	w.t.Helper()
	d := w.hold(work)
	w.is.NoError(d.Confirm())
	return d.Read
}

// takeExplicit reads without a wait, to be acknowledged later.
func (w *world) takeExplicit(work *Work) registry.Read {
	w.t.Helper()
	d := w.holdWith(work, registry.ReadOptions{Explicit: true})
	w.is.NoError(d.Confirm())
	return d.Read
}

// reading begins a read on a goroutine of its own and lets it block.
func (w *world) reading(work *Work, o registry.ReadOptions) *call[*registry.Delivery] {
	c := begin(w.ctx, func(ctx context.Context) (*registry.Delivery, error) {
		return w.Read(ctx, work.caller(), work.ID, o)
	})
	synctest.Wait()
	return c
}

// delivered takes the answer of a read that must have come by now.
func (w *world) delivered(c *call[*registry.Delivery]) *registry.Delivery {
	w.t.Helper()
	synctest.Wait()
	w.is.True(c.returned(), "the read is still blocked")
	d, err := c.result()
	w.is.NoError(err)
	w.held = append(w.held, d)
	return d
}

// disposing begins the end of an agent on a goroutine of its own.
func (w *world) disposing(c registry.Caller, agent string) *call[struct{}] {
	d := begin(w.ctx, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, w.DisposeAgent(ctx, c, agent)
	})
	synctest.Wait()
	return d
}

// open makes an agent in the caller's session and gives the caller that acts as it.
func (w *world) open(c registry.Caller, lease time.Duration) registry.Caller {
	w.t.Helper()
	var o registry.AgentOptions
	if lease > 0 {
		o.Lease = &lease
	}
	a, err := w.OpenAgent(w.ctx, c, o)
	w.is.NoError(err)
	return registry.Caller{Session: c.Session, Agent: a.ID}
}

// ids gives what a list shows.
func (w *world) ids(c registry.Caller, o registry.ListOptions) []registry.ID {
	w.t.Helper()
	l, err := w.List(w.ctx, c, o)
	w.is.NoError(err)
	ids := []registry.ID{}
	for _, s := range l.Tasks {
		ids = append(ids, s.ID)
	}
	return ids
}
