package registrytest

import (
	"slices"
	"sync"
	"testing/synctest"

	"afoot/registry"
)

// notice stands among the change types for the announcement of an end.
const notice registry.ChangeType = "notice"

// event is one thing that a listener was told.
type event struct {
	what registry.ChangeType
	of   registry.Snapshot
}

// recorder is a listener that remembers everything in the order it heard it.
type recorder struct {
	mu     sync.Mutex
	events []event
}

func (r *recorder) change(c registry.Change) { r.add(event{c.Type, c.Snapshot}) }
func (r *recorder) notice(n registry.Notice) { r.add(event{notice, n.Snapshot}) }

func (r *recorder) add(e event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// all gives what was heard so far, without waiting for more.
func (r *recorder) all() []event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

// about gives the events of one task.
func (r *recorder) about(id registry.ID) []event {
	return slices.DeleteFunc(r.all(), func(e event) bool { return e.of.ID != id })
}

// story gives the names of one task's events, without those that only say where
// its notice is.
func (r *recorder) story(id registry.ID) []registry.ChangeType {
	var names []registry.ChangeType
	for _, e := range r.about(id) {
		if e.what.Visible() {
			names = append(names, e.what)
		}
	}
	return names
}

func (r *recorder) count(id registry.ID, what registry.ChangeType) int {
	n := 0
	for _, e := range r.about(id) {
		if e.what == what {
			n++
		}
	}
	return n
}

// tale asserts the whole story of a task, once nothing moves any more.
func (w *world) tale(work *Work, names ...registry.ChangeType) {
	w.t.Helper()
	synctest.Wait()
	w.is.Equal(names, w.log.story(work.ID), "events of %s", work.ID)
}

// notices asserts how often the end of a task has been announced.
func (w *world) notices(work *Work, n int) {
	w.t.Helper()
	synctest.Wait()
	w.is.Equal(n, w.log.count(work.ID, notice), "notices of %s", work.ID)
}

// heard gives the only event of one type about a task.
func (w *world) heard(work *Work, what registry.ChangeType) registry.Snapshot {
	w.t.Helper()
	synctest.Wait()
	for _, e := range w.log.about(work.ID) {
		if e.what == what {
			return e.of
		}
	}
	w.is.Fail("never heard", "%s of %s", what, work.ID)
	return registry.Snapshot{}
}
