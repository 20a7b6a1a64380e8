package api

import (
	"net/http"

	"afoot/api/wire"
	"afoot/registry"
)

// openAgent answers POST /agents.
func (a *API) openAgent(c *call, r *http.Request) error {
	if q := queryOf(r); q.err != nil {
		return q.err
	}
	body, err := readOptionalBody(c, r)
	if err != nil {
		return err
	}
	var req wire.AgentRequest
	if err := decode(body, &req); err != nil {
		return err
	}
	agent, err := a.service.OpenAgent(r.Context(), c.caller, agentOptions(req))
	if err != nil {
		return err
	}
	c.Header().Set("Location", "/agents/"+agent.ID)
	return reply(c, r, http.StatusCreated, wireAgent(agent))
}

// listAgents answers GET /agents.
func (a *API) listAgents(c *call, r *http.Request) error {
	if q := queryOf(r); q.err != nil {
		return q.err
	}
	agents, err := a.service.ListAgents(r.Context(), c.caller)
	if err != nil {
		return err
	}
	return reply(c, r, http.StatusOK, wireAgents(agents))
}

// disposeAgent answers DELETE /agents/{id}, once the agent's work has ended.
func (a *API) disposeAgent(c *call, r *http.Request) error {
	if q := queryOf(r); q.err != nil {
		return q.err
	}
	switch pinned := c.principal.Agent; {
	case c.caller.Session == "":
		return registry.Errorf(registry.CodeForbidden, "This token has no session, so no agent to end.")
	case pinned != "" && c.target != pinned:
		return registry.Errorf(registry.CodeForbidden, "This token acts for the agent %s only.", pinned)
	}
	dispose := func() error { return a.service.DisposeAgent(r.Context(), c.caller, c.target) }
	if c.target == registry.DefaultAgent {
		dispose = func() error { return a.disposeDefault(r.Context(), c.caller) }
	}
	if err := dispose(); err != nil {
		return err
	}
	c.WriteHeader(http.StatusNoContent)
	return nil
}
