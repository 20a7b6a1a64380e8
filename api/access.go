package api

import (
	"net/http"

	"afoot/auth"
	"afoot/registry"
)

// handler answers one kind of request, or gives the error to answer.
type handler func(c *call, r *http.Request) error

// route is a handler with what it needs to know of its caller.
type route struct {
	handler handler
	// pattern is the path with names in the place of what varies; "" is any other path.
	pattern string
	// streams says that the answer may go on for as long as the caller likes.
	streams bool
	// open needs no token; any other route needs these scopes.
	open   bool
	scopes auth.Scopes
	// acting holds the lease of the acting agent until the answer ended.
	acting bool
	// looksFirst says that the handler itself tells the webhooks of the call.
	looksFirst bool
}

// open is for calls that need no token.
func open(h handler) *route { return &route{handler: h, open: true} }

// authorized is for calls that need a token but act for no agent.
func authorized(scopes auth.Scopes, h handler) *route { return &route{handler: h, scopes: scopes} }

// acting is for calls about tasks and agents.
func acting(scopes auth.Scopes, h handler) *route {
	return &route{handler: h, scopes: scopes, acting: true}
}

// streaming marks a route whose answer may go on.
func streaming(t *route) *route {
	t.streams = true
	return t
}

// lookingFirst marks a route that shows how things stood before the call.
func lookingFirst(t *route) *route {
	t.looksFirst = true
	return t
}

// serve proves the caller and answers.
func (t *route) serve(c *call, r *http.Request) error {
	if !t.open {
		if err := c.authorize(r, t.scopes); err != nil {
			return err
		}
	}
	if t.acting {
		release, err := c.act(r)
		if err != nil {
			return err
		}
		defer release()
	}
	return t.handler(c, r)
}

// authorize is kept out of its caller's frame, which a blocked call holds.
//
//go:noinline
func (c *call) authorize(r *http.Request, want auth.Scopes) error {
	var err error
	if c.principal, err = c.api.authority.Authenticate(r); err != nil {
		return err
	}
	return c.principal.Require(want)
}

// act finds the acting agent and holds its lease. The default agent has none.
func (c *call) act(r *http.Request) (release func(), err error) {
	if err := c.chooseAgent(r); err != nil {
		return nil, err
	}
	release = func() {}
	if c.caller.Agent != "" {
		if release, err = c.api.service.Act(r.Context(), c.caller); err != nil {
			return nil, err
		}
	}
	c.called()
	return release, nil
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
