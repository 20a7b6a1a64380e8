package inmem

import (
	"context"

	"afoot/registry"
)

// findLocked looks a task up for a caller: the fence of every verb.
func (s *Service) findLocked(caller registry.Caller, id registry.ID) (*record, error) {
	if _, err := s.agentLocked(caller); err != nil {
		return nil, err
	}
	r := s.records[id]
	if r == nil {
		if kind, n, ok := id.Parse(); ok && s.numbers[kind] != nil && s.numbers[kind].published(n) {
			return nil, registry.Errorf(registry.CodeGone, "task %s was removed", id)
		}
		return nil, registry.Errorf(registry.CodeUnknownTask, "there is no task %s", quoted(id))
	}
	if owner := r.owner(); !owner.Unowned() && owner.Session != caller.Session {
		return nil, registry.Errorf(registry.CodeForeignTask, "task %s belongs to another session", id)
	}
	return r, nil
}

// goneOr gives the refusal for a record that was removed while it was read, and
// err for any other.
func (s *Service) goneOr(ctx context.Context, err error, caller registry.Caller, r *record) error {
	if err == nil {
		return nil
	}
	s.mu.Lock()
	if r.removed {
		_, err = s.findLocked(caller, r.snap.ID)
	}
	s.mu.Unlock()
	return s.refused(ctx, err)
}

func (s *Service) wasRemoved(r *record) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return r.removed
}

// quoted keeps the echo of an id that is none short.
func quoted(id registry.ID) string {
	const most = 64
	if len(id) > most {
		return string(id[:most]) + "…"
	}
	return string(id)
}

// agentLocked looks the caller's agent up. Nil without an error means the
// session's default agent, or nobody for a caller without a session.
func (s *Service) agentLocked(caller registry.Caller) (*agent, error) {
	if s.loading {
		return nil, errLoading()
	}
	if caller.Agent == "" || caller.Agent == registry.DefaultAgent {
		return nil, nil
	}
	a := s.agents[caller.Agent]
	switch {
	case a == nil && s.wasAgentLocked(caller.Agent):
		return nil, registry.Errorf(registry.CodeGone, "agent %s was disposed", caller.Agent)
	case a == nil:
		return nil, registry.Errorf(registry.CodeUnknownAgent, "there is no agent %s", quoted(registry.ID(caller.Agent)))
	case a.owner.Session != caller.Session:
		return nil, registry.Errorf(registry.CodeForeignAgent, "agent %s belongs to another session", caller.Agent)
	case a.disposing:
		return nil, registry.Errorf(registry.CodeGone, "agent %s was disposed", caller.Agent)
	}
	return a, nil
}

func (s *Service) wasAgentLocked(id string) bool {
	kind, n, ok := registry.ID(id).Parse()
	return ok && kind == agentKind && n <= s.opened
}
