package api

import (
	"context"

	"afoot/registry"
)

// roster knows which owners live, as long as no agent comes or goes.
type roster struct {
	service registry.Service
	// sessions has the exact owners of those that were asked for, with their agents.
	sessions map[string]map[string]string
}

// of gives the exact owners of a session that live, with their agents.
func (r *roster) of(ctx context.Context, session string) (map[string]string, error) {
	if owners, asked := r.sessions[session]; asked {
		return owners, nil
	}
	agents, err := r.service.ListAgents(ctx, registry.Caller{Session: session})
	if err != nil {
		return nil, err
	}
	owners := make(map[string]string, len(agents))
	for _, agent := range agents {
		owners[ownerName(registry.Owner{Session: session, Agent: agent.ID, Incarnation: agent.Incarnation})] = agent.ID
	}
	if r.sessions == nil {
		r.sessions = make(map[string]map[string]string)
	}
	r.sessions[session] = owners
	return owners, nil
}

// has reports whether that very owner lives: not a successor.
func (r *roster) has(ctx context.Context, session, exact string) (bool, error) {
	owners, err := r.of(ctx, session)
	_, lives := owners[exact]
	return lives, err
}

// names reports whether an agent of that name lives.
func (r *roster) names(ctx context.Context, session, agent string) (bool, error) {
	owners, err := r.of(ctx, session)
	for _, id := range owners {
		if id == agent {
			return true, err
		}
	}
	return false, err
}
