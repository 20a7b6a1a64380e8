package api

import (
	"net/http"

	"afoot/auth"
	"afoot/registry"
)

// handler answers one kind of request, or gives the error to answer.
type handler func(c *call, r *http.Request) error

// open is for calls that need no token.
func (a *API) open(h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c := callOf(w)
		if err := h(c, r); err != nil {
			c.fail(r, err)
		}
	}
}

// authorized is for calls that need a token with the scopes of want, but act for
// no agent.
func (a *API) authorized(want auth.Scopes, h handler) http.HandlerFunc {
	return a.open(func(c *call, r *http.Request) error {
		if err := c.authorize(r, want); err != nil {
			return err
		}
		return h(c, r)
	})
}

// acting is for calls about tasks and agents: the token proves the session, and
// the acting agent's lease is held until the answer ended.
func (a *API) acting(want auth.Scopes, h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c := callOf(w)
		if err := c.act(r, want, h); err != nil {
			c.fail(r, err)
		}
	}
}

func (c *call) authorize(r *http.Request, want auth.Scopes) error {
	var err error
	if c.principal, err = c.api.authority.Authenticate(r); err != nil {
		return err
	}
	return c.principal.Require(want)
}

func (c *call) act(r *http.Request, want auth.Scopes, h handler) error {
	if err := c.authorize(r, want); err != nil {
		return err
	}
	if err := c.chooseAgent(r); err != nil {
		return err
	}
	if c.caller.Agent == "" {
		return h(c, r) // the default agent is never leased
	}
	release, err := c.api.service.Act(r.Context(), c.caller)
	if err != nil {
		return err
	}
	defer release()
	return h(c, r)
}

// chooseAgent finds the acting agent: the token's, which pins it, or the header's.
func (c *call) chooseAgent(r *http.Request) error {
	named, err := headerText(r, "Afoot-Agent", 128)
	if err != nil {
		return err
	}
	pinned := c.principal.Agent
	switch {
	case pinned != "" && named != "" && named != pinned:
		return registry.Errorf(registry.CodeForbidden, "This token acts for the agent %s only.", pinned)
	case named != "" && c.principal.Session == "":
		return registry.Errorf(registry.CodeForbidden, "This token has no session, so it can act for no agent; leave the header Afoot-Agent out.")
	case named == "":
		named = pinned
	}
	if named == registry.DefaultAgent {
		named = ""
	}
	c.caller = registry.Caller{Session: c.principal.Session, Agent: named}
	return nil
}

// looksOnly reports whether the token allows nothing but looking.
func (c *call) looksOnly() bool { return !c.principal.Scopes.Has(auth.TasksWrite) }
