package inmem

import (
	"context"
	"sync"
	"time"

	"afoot/registry"
)

const agentKind registry.Kind = "agent"

// agent is one live owner. Guarded by Service.mu.
type agent struct {
	bucket
	owner registry.Owner
	label string
	lease time.Duration
	// holds counts calls and streams of this agent under way; while there is one
	// the lease does not run.
	holds int
	timer *time.Timer // nil: no lease
	// expires tells a timer that fired from one that was stopped too late.
	expires time.Time
	// used says that it has, or had, a task.
	used bool
	// disposing refuses new work; gone says that the disposal is over.
	disposing, gone bool
	// kept says that the journal has a row of it; mark is that row's.
	kept     bool
	mark     registry.Mark
	disposed chan struct{}
}

// OpenAgent implements [registry.Agents]. One that can't be written ends at once.
func (s *Service) OpenAgent(ctx context.Context, caller registry.Caller, opts registry.AgentOptions) (registry.Agent, error) {
	if caller.Session == "" {
		return registry.Agent{}, registry.Errorf(registry.CodeForbidden, "a token without a session can't have agents")
	}
	if err := opts.Validate(); err != nil {
		return registry.Agent{}, err
	}
	if err := s.writable(); err != nil {
		return registry.Agent{}, err
	}
	a, err := s.open(caller, opts)
	if err != nil {
		return registry.Agent{}, err
	}
	if err := s.sync(context.WithoutCancel(ctx), a.mark); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.shut {
			s.disposeLocked(a, "it could not be written")
		}
		return registry.Agent{}, err
	}
	return a.public(), nil
}

// open makes an agent. Its mark, like all that is public of it, never changes.
func (s *Service) open(caller registry.Caller, opts registry.AgentOptions) (*agent, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.openLocked(); err != nil {
		return nil, err
	}
	mine := s.sessionLocked(caller.Session)
	opened := 0
	for _, a := range mine.agents {
		if a != mine.standin {
			opened++
		}
	}
	if opened >= s.cfg.MaxAgentsPerSession {
		e := registry.Errorf(registry.CodeLimitReached,
			"limit reached: at most %d agents per session (AFOOT_MAX_AGENTS_PER_SESSION); delete one first", s.cfg.MaxAgentsPerSession)
		e.Limit = "AFOOT_MAX_AGENTS_PER_SESSION"
		return nil, e
	}
	s.opened++
	a := s.newAgentLocked(registry.Owner{Session: caller.Session, Agent: string(registry.NewID(agentKind, s.opened))})
	if opts.Label != nil {
		a.label = *opts.Label
	}
	if opts.Lease != nil {
		a.lease = *opts.Lease
		s.leaseLocked(a)
	}
	s.agents[a.owner.Agent] = a
	s.keepAgentLocked(a, registry.CounterRow{Kind: agentKind, Last: s.opened})
	return a, nil
}

// leaseLocked begins the lease of a new agent.
func (s *Service) leaseLocked(a *agent) {
	a.expires = now().Add(a.lease)
	a.timer = time.AfterFunc(a.lease, func() { s.expire(a) })
}

func (a *agent) public() registry.Agent {
	return registry.Agent{ID: a.owner.Agent, Label: a.label, Lease: a.lease, Incarnation: a.owner.Incarnation}
}

func (s *Service) newAgentLocked(owner registry.Owner) *agent {
	s.seq++
	owner.Incarnation = s.seq
	a := &agent{owner: owner, disposed: make(chan struct{})}
	mine := s.sessionLocked(owner.Session)
	mine.agents = append(mine.agents, a)
	return a
}

// defaultAgentLocked gives the agent that a session acts as without naming one;
// it begins when it is first needed.
func (s *Service) defaultAgentLocked(name string) *agent {
	mine := s.sessionLocked(name)
	if mine.standin == nil {
		mine.standin = s.newAgentLocked(registry.Owner{Session: name, Agent: registry.DefaultAgent})
	}
	return mine.standin
}

// forgetAgentLocked drops a default agent that a refused start had begun. One that had a
// task may have notices that are pending, for its end to remove.
func (s *Service) forgetAgentLocked(a *agent) {
	if a == nil || a.owner.Agent != registry.DefaultAgent || a.disposing || a.used || a.starting > 0 {
		return
	}
	s.removeAgentLocked(a)
}

func (s *Service) removeAgentLocked(a *agent) {
	mine := s.sessionLocked(a.owner.Session)
	mine.agents = without(mine.agents, a)
	delete(s.keep.over, &a.ended)
	if mine.standin == a {
		mine.standin = nil
	}
	if s.agents[a.owner.Agent] == a {
		delete(s.agents, a.owner.Agent)
	}
	s.forgetSessionLocked(a.owner.Session)
}

// ListAgents implements [registry.Agents].
func (s *Service) ListAgents(ctx context.Context, caller registry.Caller) ([]registry.Agent, error) {
	s.mu.Lock()
	if s.loading {
		s.mu.Unlock()
		return nil, errLoading()
	}
	mark := s.rows.removals
	var out []registry.Agent
	if mine := s.sessions[caller.Session]; mine != nil {
		for _, a := range mine.agents {
			if !a.disposing {
				out = append(out, a.public())
				mark = max(mark, a.mark)
			}
		}
	}
	s.mu.Unlock()
	s.written(ctx, mark)
	return out, nil
}

// Act implements [registry.Agents].
func (s *Service) Act(ctx context.Context, caller registry.Caller) (func(), error) {
	release, err := s.act(caller)
	return release, s.refused(ctx, err)
}

func (s *Service) act(caller registry.Caller) (func(), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, err := s.agentLocked(caller)
	if err != nil {
		return nil, err
	}
	if a == nil || a.timer == nil {
		return func() {}, nil
	}
	a.holds++
	a.timer.Stop()
	return sync.OnceFunc(func() { s.release(a) }), nil
}

func (s *Service) release(a *agent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.holds--
	if a.holds == 0 && !a.disposing && !s.shut {
		a.expires = now().Add(a.lease)
		a.timer.Reset(a.lease)
	}
}

// expire disposes an agent whose lease has run out, unless a call came in the
// same instant.
func (s *Service) expire(a *agent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.holds == 0 && !s.shut && !s.move.on && !now().Before(a.expires) {
		s.disposeLocked(a, "lease ended")
	}
}
