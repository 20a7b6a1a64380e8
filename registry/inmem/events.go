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
	// rec is whose end a notice tells, or of which a report is told.
	rec *record
}

// eventQueue keeps the order of events. Whoever filled it empties it, once all that they
// tell is written; one at a time.
type eventQueue struct {
	pending []event
	// taken counts the events before the pending ones. Attended are those that somebody is
	// about, who may still wait for the disk, and ready those of whom all is written.
	taken, attended, ready uint64
	// draining says that somebody tells the listeners.
	draining bool
}

func (q *eventQueue) end() uint64 { return q.taken + uint64(len(q.pending)) }

// due says that there are events which nobody is about.
func (q *eventQueue) due() bool { return q.end() > q.attended }

// take gives what is ready and not yet taken. Whoever gets none is not needed, now or any
// more; whoever gets some tells them and calls next.
func (q *eventQueue) take() []event {
	if q.draining {
		return nil
	}
	return q.next()
}

func (q *eventQueue) next() []event {
	if q.draining = q.ready > q.taken; !q.draining {
		return nil
	}
	n := q.ready - q.taken
	batch := q.pending[:n:n]
	q.pending, q.taken = q.pending[n:], q.ready
	if len(q.pending) == 0 {
		q.pending = nil
	}
	return batch
}

func (s *Service) emitLocked(change registry.ChangeType, r *record) {
	if s.shut {
		return
	}
	e := event{change: change, view: r.viewLocked()}
	if change == registry.ChangeReported {
		e.rec, r.telling = r, true
	}
	s.events.pending = append(s.events.pending, e)
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

// dispatchBatch gives what is pending now to the listeners, unless somebody else is about
// it, and reports whether there is more that nobody is about. Whoever waits for the disk
// here stands in nobody's way: what is behind in line and written sooner is told sooner.
func (s *Service) dispatchBatch() (more bool) {
	q := &s.events
	s.mu.Lock()
	if !q.due() {
		s.mu.Unlock()
		return false
	}
	q.attended = q.end()
	end, mark := q.attended, s.rows.mark
	s.mu.Unlock()
	s.written(context.Background(), mark)
	s.mu.Lock()
	q.ready = max(q.ready, end)
	batch := q.take()
	for batch != nil {
		s.mu.Unlock()
		s.tellAll(batch)
		s.mu.Lock()
		if batch = q.next(); batch != nil && s.cfg.Journal != nil {
			go s.tellRest(batch) // who came for one batch is not kept for those of others
			break
		}
	}
	more = batch == nil && q.due()
	s.mu.Unlock()
	return more
}

// tellRest tells what is ready until nothing is.
func (s *Service) tellRest(batch []event) {
	for batch != nil {
		s.tellAll(batch)
		s.mu.Lock()
		batch = s.events.next()
		s.mu.Unlock()
	}
	s.dispatch()
}

// tellAll tells a batch, and keeps which notices were heard.
func (s *Service) tellAll(batch []event) {
	for i := range batch {
		if !s.tell(&batch[i]) {
			batch[i].rec = nil
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heardLocked(batch)
	clear(batch)
}

// tell reports whether the listeners were told: the end of the service is silent, and so
// is a notice that came too late.
func (s *Service) tell(e *event) bool {
	if e.mark != nil {
		close(e.mark)
		return true
	}
	var snap registry.Snapshot
	s.contain("stream", func() { snap = e.view.snap; snap = e.view.fill() })
	s.mu.Lock()
	listeners, silent := s.plugs.hearingLocked(e, snap.Owner), s.shut
	silent = silent || e.notice && s.tooLateLocked(e.rec)
	s.mu.Unlock()
	if silent {
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

// tooLateLocked says that an end was delivered while its notice waited for the disk, or
// that an answer with it is on its way: then it is announced again if that is lost.
func (s *Service) tooLateLocked(r *record) bool {
	if r.snap.Reported || r.claims == 0 {
		return r.snap.Reported
	}
	r.announced = false
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
