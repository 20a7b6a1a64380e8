package inmem

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"afoot/registry"
)

// moving is a hand-over under way. But for asks it is guarded by Service.mu.
type moving struct {
	// on says that nothing new begins, held that the live runs are in other hands.
	on, held bool
	// begun is closed when a hand-over begins: blocked calls answer with what is. over
	// is closed when it was taken back. Each is made anew.
	begun, over chan struct{}
	// runs are those that were handed over, with what their producers gave.
	runs    []registry.Movable
	handles map[registry.ID]json.RawMessage
	// asks are the cancels under way.
	asks sync.WaitGroup
}

func newMoving() moving { return moving{begun: make(chan struct{}), over: make(chan struct{})} }

// moved is what passes to the next image of the program. All else is in the journal.
type moved struct {
	Runs map[registry.ID]json.RawMessage `json:"runs,omitempty"`
	// Given is what explicit reads gave out and no ack has settled.
	Given map[registry.ID]given `json:"given,omitempty"`
}

// given is what of a handout passes: an ack counts as before, but nothing is held.
type given struct {
	Next     cursors `json:"next"`
	Terminal bool    `json:"terminal,omitempty"`
}

// movingRetry is when a call that came during a hand-over should come again.
const movingRetry = time.Second

func errMoving() error {
	e := registry.Errorf(registry.CodeUnavailable, "the daemon is being replaced; ask again in a moment")
	e.RetryAfter = movingRetry
	return e
}

// begun gives a channel that is closed when the next hand-over begins.
func (s *Service) begun() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.move.begun
}

// HandOver has all live work ready to go on in another image of this process, with what
// [Service.Moved] gives then. From its call on nothing can be started, and calls that wait
// are answered with what is. It blocks until no start is under way any more, every live run
// is handed over and everything is written; that of which one is not [registry.Movable], or
// errs, goes on here: then HandOver has undone all it did.
//
// Until [Service.TakeBack] kills are refused and no lease ends; what is read, confirmed
// and acknowledged is written as ever.
func (s *Service) HandOver(ctx context.Context) (err error) {
	s.mu.Lock()
	if err := s.openLocked(); err != nil {
		s.mu.Unlock()
		return err
	}
	if s.cfg.Journal == nil {
		s.mu.Unlock()
		return errors.New("without a journal nothing can be handed over")
	}
	s.move.on, s.move.handles = true, map[registry.ID]json.RawMessage{}
	close(s.move.begun)
	quiet := s.total.quietChan()
	s.mu.Unlock()
	defer func() {
		if err != nil {
			s.TakeBack()
		}
	}()
	select {
	case <-quiet:
	case <-ctx.Done():
		return fmt.Errorf("a start did not return: %w", ctx.Err())
	}
	for _, r := range s.holdLive() {
		if err := s.handOverRun(ctx, r); err != nil {
			return fmt.Errorf("task %s can't be handed over: %w", r.snap.ID, err)
		}
	}
	return s.flush(ctx)
}

// Moved gives what [Config.Adopt] needs beside the journal, behind [Service.HandOver]. It is
// asked for once the calls that were released then have been answered: what they gave out
// goes along.
func (s *Service) Moved() (json.RawMessage, error) {
	to := moved{Given: map[registry.ID]given{}}
	s.mu.Lock()
	to.Runs = maps.Clone(s.move.handles)
	for id, r := range s.records {
		if h := r.handout; h != nil {
			to.Given[id] = given{Next: h.next, Terminal: h.terminal}
		}
	}
	s.mu.Unlock()
	return json.Marshal(to)
}

func (s *Service) givenBackLocked(r *record, from map[registry.ID]given) {
	if g, ok := from[r.snap.ID]; ok {
		r.handout = &handout{next: g.Next, terminal: g.Terminal}
		s.renewLocked(r, r.handout)
	}
}

// holdLive lets no cancel begin any more, waits for those under way, and gives the live
// records.
func (s *Service) holdLive() (live []*record) {
	s.mu.Lock()
	s.move.held = true
	for _, r := range s.records {
		if r.live() {
			live = append(live, r)
		}
	}
	s.mu.Unlock()
	s.move.asks.Wait()
	return live
}

// handOverRun hands a run over. Of one that has ended meanwhile it waits until its end is
// known.
func (s *Service) handOverRun(ctx context.Context, r *record) error {
	s.mu.Lock()
	settled := r.settledLocked()
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		r.forgetLookLocked(settled)
	}()
	run, may := r.run.(registry.Movable)
	select {
	case <-settled:
		return nil
	default:
		if !may {
			return errors.New("its kind of work can't go on under another program")
		}
	}
	var handle json.RawMessage
	err := errors.New("producer panicked")
	s.contain("hand over", func() { handle, err = run.HandOver() })
	if err == nil {
		s.mu.Lock()
		s.move.runs = append(s.move.runs, run)
		s.move.handles[r.snap.ID] = handle
		s.mu.Unlock()
		return nil
	}
	if !errors.Is(err, registry.ErrEnded) {
		return err
	}
	select {
	case <-settled:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("it has ended, and its end is not known: %w", ctx.Err())
	}
}

// flush waits until the listeners have heard everything, and until all is written.
func (s *Service) flush(ctx context.Context) error {
	for range 2 { // the second time what the first batch left behind is in line
		heard := make(chan struct{})
		s.mu.Lock()
		s.events.pending = append(s.events.pending, event{mark: heard})
		s.mu.Unlock()
		s.dispatch()
		select {
		case <-heard:
		case <-ctx.Done():
			return fmt.Errorf("not all was heard: %w", ctx.Err())
		}
	}
	s.mu.Lock()
	mark := s.rows.mark
	s.mu.Unlock()
	return s.sync(ctx, mark)
}

// TakeBack undoes HandOver, because there was no exec. Leases begin anew.
func (s *Service) TakeBack() {
	s.mu.Lock()
	runs := s.move.runs
	s.move.runs, s.move.handles = nil, nil
	on := s.move.on
	s.mu.Unlock()
	if !on {
		return
	}
	for _, run := range runs {
		s.contain("take back", run.TakeBack)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.move.on, s.move.held = false, false
	close(s.move.over)
	s.move.begun, s.move.over = make(chan struct{}), make(chan struct{})
	for _, a := range s.agents {
		if a.timer != nil && a.holds == 0 && !a.disposing && !s.shut {
			a.expires = now().Add(a.lease)
			a.timer.Reset(a.lease)
		}
	}
}

// stay blocks while the live runs are in other hands, and reports whether they were.
func (s *Service) stay() (stayed bool) {
	for {
		s.mu.Lock()
		held, over := s.move.held, s.move.over
		s.mu.Unlock()
		if !held {
			return stayed
		}
		stayed = true
		<-over
	}
}

// adopt goes on with a run that was handed over; nil if that can't be done.
func (s *Service) adopt(row *registry.TaskRow, handle json.RawMessage) (registry.Run, *launch) {
	adopter, may := s.producerOf(row).(registry.Adopter)
	if !may {
		return nil, nil
	}
	l := &launch{} // its owner may call late, whatever came of it
	var run registry.Run
	err := errors.New("producer panicked")
	s.contain("adopt", func() {
		run, err = adopter.Adopt(handle, registry.Launch{
			ID: row.Snapshot.ID, Owner: row.Snapshot.Owner,
			Settle: func(o registry.Outcome, broken error) { s.settle(l, o, broken) },
		})
	})
	if err != nil {
		s.cfg.Logger.Error("a task could not be gone on with", "task", row.Snapshot.ID, "error", err)
		return nil, nil
	}
	return run, l
}

// goOnLocked makes a record live again.
func (s *Service) goOnLocked(r *record) {
	s.roomLocked(r.agent).live++
	s.total.live++
	if r.cursors[stdout] > 0 {
		r.acked = true
	}
	l := r.launch
	l.rec, l.asking = r, l.outcome != nil
	s.insertLocked(r)
	if r.snap.Foreground { // no call outlives an exec: nobody else would be told of the end
		r.snap.Foreground = false
		s.keepLocked(r)
	}
}

// arrive settles what has ended since it was adopted.
func (s *Service) arrive(back []*record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range back {
		if l := r.launch; l != nil && l.asking {
			s.askLastLocked(l)
			s.applyLocked(l)
		}
	}
}
