package inmem

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"afoot/registry"
)

// launch ties a run's Settle to its record, in whichever order they come, and has what
// only a live record needs.
type launch struct {
	rec     *record           // nil until published
	outcome *registry.Outcome // nil until settled; the first one stays
	at      time.Time
	// orphan is a run that came too late to be published; its end discards it.
	orphan registry.Run
	// asking says that the run is asked for its last facts; settlement waits.
	asking bool
	// ended says that the work ends because the daemon's shutdown asked it to.
	ended bool
	// handle is what the journal needs to give the run back, until the next row.
	handle json.RawMessage
	// waiters are consuming reads that settlement promises its result to.
	waiters []*waiter
	// looks are released by settlement without a promise.
	looks []chan struct{}
}

// place is a reserved start: a number, and room in two buckets.
type place struct {
	agent  *agent // nil: unowned
	owner  registry.Owner
	number uint64
}

// Start implements [registry.Tasks].
func (s *Service) Start(ctx context.Context, caller registry.Caller, req registry.StartRequest) (registry.Started, error) {
	if req.IdempotencyKey != "" {
		return s.startOnce(ctx, caller, req)
	}
	return s.start(ctx, caller, req, nil)
}

// start starts once. A key, if there is one, is written together with the task.
func (s *Service) start(ctx context.Context, caller registry.Caller, req registry.StartRequest, key *registry.KeyRow) (started registry.Started, err error) {
	spec := req.Spec
	producer, err := s.check(caller, spec)
	if err != nil {
		return started, s.refused(ctx, err)
	}
	plan, label, err := s.prepare(ctx, producer, spec)
	if err != nil {
		return started, err
	}
	got, err := s.reserve(caller, spec.Kind)
	if err != nil {
		return started, s.refused(ctx, err)
	}
	if err = s.makeRoom(ctx); err == nil {
		err = s.writable()
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		s.giveBack(got, spec.Kind)
		return started, err
	}
	l := &launch{}
	id := registry.NewID(spec.Kind, got.number)
	run, err := s.run(ctx, plan, registry.Launch{
		ID: id, Owner: got.owner,
		Settle: func(o registry.Outcome, broken error) { s.settle(l, o, broken) },
	})
	if err != nil {
		s.giveBack(got, spec.Kind)
		return started, err
	}
	r, v, err := s.publish(l, got, run, newSnapshot(id, got.owner, req, label), key, req.Await)
	if err != nil {
		return started, err
	}
	if err := s.sync(context.WithoutCancel(ctx), v.mark); err != nil {
		s.withdraw(r, key)
		return started, err
	}
	started.Snapshot = v.fill()
	if req.Await {
		started.Release = sync.OnceFunc(func() { s.unawait(r) })
	}
	return started, nil
}

// unawait ends the promise of a start's end to who started it.
func (s *Service) unawait(r *record) {
	s.mu.Lock()
	s.dropClaimLocked(r)
	due := s.events.due()
	s.mu.Unlock()
	if due {
		s.aside(0)
	}
}

// withdraw takes a start back that could not be written: the work is stopped, and
// its record removed once it has ended.
func (s *Service) withdraw(r *record, key *registry.KeyRow) {
	s.teardown([]*record{r}, "its start could not be written", false)
	s.mu.Lock()
	if key != nil {
		s.appendLocked(registry.KeyGone{Session: key.Session, Subject: key.Subject, Key: key.Key})
	}
	mine := !r.removed // else its owner ended too
	if mine {
		s.removeLocked(r, registry.ChangeRemoved)
	}
	s.mu.Unlock()
	s.dispatch()
	if mine {
		s.discard(r)
	}
}

// check refuses what can be refused without the producer and before room is
// taken.
func (s *Service) check(caller registry.Caller, spec registry.Spec) (registry.Producer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.openLocked(); err != nil {
		return nil, err
	}
	if !s.plugs.servedLocked(registry.Owner{Session: caller.Session}) {
		return nil, registry.Errorf(registry.CodeUnavailable, "nobody is attached who could read and stop this task")
	}
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	p := s.plugs.producers[spec.Kind]
	if p == nil {
		return nil, registry.Errorf(registry.CodeInvalid, "unknown kind %s", quoted(registry.ID(spec.Kind)))
	}
	if _, err := s.agentLocked(caller); err != nil {
		return nil, err
	}
	return p, nil
}

// prepare and run contain the producer's panics.
func (s *Service) prepare(ctx context.Context, p registry.Producer, spec registry.Spec) (plan registry.Plan, label string, err error) {
	defer recovered(&err)
	if plan, err = p.Prepare(ctx, spec); err != nil {
		return nil, "", err
	}
	if spec.Label != nil {
		return plan, *spec.Label, nil
	}
	label = plan.Label()
	return plan, label, registry.ValidateLabel(label)
}

func (s *Service) run(ctx context.Context, plan registry.Plan, l registry.Launch) (run registry.Run, err error) {
	defer recovered(&err)
	return plan.Start(ctx, l)
}

func recovered(err *error) {
	if p := recover(); p != nil { //nolint:revive // it is what prepare and run defer
		*err = fmt.Errorf("producer panicked: %v", p)
	}
}

func (s *Service) reserve(caller registry.Caller, kind registry.Kind) (place, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.openLocked(); err != nil {
		return place{}, err
	}
	a, err := s.agentLocked(caller)
	if err != nil {
		return place{}, err
	}
	if a == nil && caller.Session != "" {
		a = s.defaultAgentLocked(caller.Session)
	}
	room, whose := &s.unowned, "unowned tasks"
	if a != nil {
		room, whose = &a.bucket, "tasks of agent "+a.owner.Agent
	}
	if room.full(s.cfg.MaxTasksPerOwner) {
		s.forgetAgentLocked(a)
		return place{}, limitError("AFOOT_MAX_TASKS_PER_OWNER", s.cfg.MaxTasksPerOwner, whose)
	}
	if s.total.full(s.cfg.MaxTasks) {
		s.forgetAgentLocked(a)
		return place{}, limitError("AFOOT_MAX_TASKS", s.cfg.MaxTasks, "tasks of the daemon")
	}
	room.starting++
	s.total.starting++
	n := s.numbers[kind]
	if n == nil {
		n = newNumbers()
		s.numbers[kind] = n
	}
	got := place{agent: a, number: n.reserve()}
	if a != nil {
		got.owner = a.owner
	}
	return got, nil
}

func limitError(variable string, most int, whose string) error {
	e := registry.Errorf(registry.CodeLimitReached,
		"limit reached: at most %d %s may be running or stopping (%s); wait for one to end or stop one", most, whose, variable)
	e.Limit = variable
	return e
}

// openLocked refuses what may not begin before the service is loaded, or after its
// end began.
func (s *Service) openLocked() error {
	switch {
	case s.shut:
		return errShut()
	case s.loading:
		return errLoading()
	case s.move.on:
		return errMoving()
	}
	return nil
}

func errShut() error {
	return registry.Errorf(registry.CodeUnavailable, "the daemon is shutting down")
}

func errLoading() error {
	return registry.Errorf(registry.CodeUnavailable, "the daemon is starting")
}

func (s *Service) roomLocked(a *agent) *bucket {
	if a == nil {
		return &s.unowned
	}
	return &a.bucket
}

// giveBack undoes a reservation: no trace stays, the number is free again.
func (s *Service) giveBack(got place, kind registry.Kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.numbers[kind].giveBack(got.number)
	s.roomLocked(got.agent).started()
	s.total.started()
	s.forgetAgentLocked(got.agent)
}

func newSnapshot(id registry.ID, owner registry.Owner, req registry.StartRequest, label string) registry.Snapshot {
	spec := req.Spec
	snap := registry.Snapshot{ID: id, Kind: spec.Kind, Owner: owner, Status: registry.StatusRunning, Foreground: req.Foreground}
	snap.Label = strings.Clone(label) // it outlives the request it was cut from
	if spec.OutputLimitBytes != nil {
		snap.OutputLimitBytes = *spec.OutputLimitBytes
	}
	return snap
}

// publish commits a run under its id; it cannot fail, but for an owner or a
// service that did not wait for so slow a starter: then the run is stopped.
func (s *Service) publish(l *launch, got place, run registry.Run, snap registry.Snapshot, key *registry.KeyRow, await bool) (*record, view, error) {
	r := &record{snap: factsOf(snap), run: run, agent: got.agent, launch: l}
	r.source = s.sourceOf(run)
	s.lockAsked(l, r)
	if late := s.lateLocked(got.agent); late != nil {
		l.orphan = run
		ended := l.outcome != nil
		s.mu.Unlock()
		if ended {
			s.discard(r)
		}
		s.giveBack(got, snap.Kind)
		s.contain("cancel", func() { _ = run.Cancel(late.Error()) })
		return nil, view{}, late
	}
	if got.agent != nil {
		got.agent.used = true
	}
	room := s.roomLocked(got.agent)
	room.live++
	s.total.live++
	r.snap.startedAt = momentOf(now())
	r.snap.Foreground = r.snap.Foreground && !s.shut // else its call ends too
	rises := s.numbers[snap.Kind].publish(got.number)
	s.seq++
	r.seq = s.seq
	s.insertLocked(r)
	s.keepNewLocked(r, rises, key)
	if await {
		r.claims++
	}
	v := r.viewLocked()
	l.rec = r
	s.emitLocked(registry.ChangeRegistered, r)
	s.applyLocked(l)
	room.started()
	s.total.started()
	ending := s.shut || got.agent != nil && got.agent.disposing
	s.mu.Unlock()
	s.dispatch()
	if ending { // whoever ends the owner may have looked already
		_, _, _ = s.cancel(r, "its owner was ending while it started", s.isShut(), true)
	}
	return r, v, nil
}

// sourceOf gives what is read of a run.
func (s *Service) sourceOf(run registry.Run) *source {
	out, may := run.(registry.Stream)
	if !may {
		return &source{}
	}
	var second registry.Stream
	if split, may := run.(registry.Split); may {
		s.contain("stderr", func() { second = split.Stderr() })
	}
	if second == nil {
		return nil
	}
	return &source{streams: [2]registry.Stream{out, second}}
}

func (s *Service) isShut() bool {
	select {
	case <-s.closing:
		return true
	default:
		return false
	}
}

func (s *Service) lateLocked(a *agent) error {
	if a != nil && a.gone {
		return registry.Errorf(registry.CodeGone, "agent %s was disposed", a.owner.Agent)
	}
	select {
	case <-s.closed:
		return errShut()
	default:
		return nil
	}
}
