package inmem

import (
	"context"
	"runtime/debug"

	"afoot/registry"
)

// event is one thing that listeners hear: a change, a notice, or a mark that
// tells a waiting disposal that everything before it was heard.
type event struct {
	change registry.ChangeType
	notice bool
	view   view
	mark   chan struct{}
	// rec is whose end a notice tells.
	rec *record
}

// eventQueue keeps the order of events. Whoever filled it empties it, unless
// somebody does so already: then that one goes on with the new events.
type eventQueue struct {
	pending  []event
	draining bool
}

// dueLocked says that there are events which nobody is about.
func (q *eventQueue) dueLocked() bool { return !q.draining && len(q.pending) > 0 }

func (s *Service) emitLocked(change registry.ChangeType, r *record) {
	if s.shut {
		return
	}
	s.events.pending = append(s.events.pending, event{change: change, view: r.viewLocked()})
}

// announceLocked makes the one notice of a task due, unless it is reported,
// claimed, unowned, gone or announced.
func (s *Service) announceLocked(r *record) {
	if s.shut || r.announced || r.removed || r.claims > 0 || r.snap.Reported || !r.snap.status.terminal() || r.agent == nil || r.agent.disposing {
		return
	}
	r.announced = true
	s.events.pending = append(s.events.pending, event{notice: true, view: r.viewLocked(), rec: r})
}

// dispatch gives pending events to the listeners, in order, once all that they tell
// is written. It must be called without the lock after each emit. It may return
// before the events were heard, when another goroutine is about it.
func (s *Service) dispatch() {
	for more := s.dispatchBatch(); more; more = s.dispatchBatch() {
		if s.cfg.Journal != nil {
			// Each batch waits for the disk. Who came for one is not kept for all.
			go func() {
				for s.dispatchBatch() {
				}
			}()
			return
		}
	}
}

// aside is dispatch, and has what goes up to mark written, without keeping its caller
// for the disk.
func (s *Service) aside(mark registry.Mark) {
	if s.cfg.Journal == nil {
		s.dispatch()
		return
	}
	go func() {
		s.dispatch()
		s.written(context.Background(), mark)
	}()
}

// dispatchBatch gives what is pending now to the listeners, unless another goroutine
// is about it, and reports whether more has come meanwhile.
func (s *Service) dispatchBatch() (more bool) {
	s.mu.Lock()
	if !s.events.dueLocked() {
		s.mu.Unlock()
		return false
	}
	batch := s.events.pending
	s.events.pending, s.events.draining = nil, true
	mark := s.rows.mark
	s.mu.Unlock()
	s.written(context.Background(), mark)
	for i := range batch {
		if !s.tell(&batch[i]) {
			batch[i].rec = nil
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heardLocked(batch)
	s.events.draining = false
	return len(s.events.pending) > 0
}

// tell reports whether the listeners were told: the end of the service is silent.
func (s *Service) tell(e *event) bool {
	if e.mark != nil {
		close(e.mark)
		return true
	}
	var snap registry.Snapshot
	s.contain("stream", func() { snap = e.view.snap; snap = e.view.fill() })
	s.mu.Lock()
	listeners, shut := s.plugs.hearingLocked(e, snap.Owner), s.shut
	s.mu.Unlock()
	if shut {
		return false
	}
	for _, l := range listeners {
		s.contain("listener", func() {
			if e.notice {
				l.done(registry.Notice{Snapshot: snap})
			} else {
				l.changed(registry.Change{Type: e.change, Snapshot: snap})
			}
		})
	}
	return true
}

// contain runs foreign code; its panic is logged and goes no further.
func (s *Service) contain(who string, f func()) {
	defer func() {
		if p := recover(); p != nil {
			s.cfg.Logger.Error("panic contained", "in", who, "panic", p, "stack", string(debug.Stack()))
		}
	}()
	f()
}
