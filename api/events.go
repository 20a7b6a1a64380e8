package api

import (
	"net/http"
	"slices"

	"afoot/registry"
	"afoot/sse"
)

// streamEvents answers GET /events.
func (a *API) streamEvents(c *call, r *http.Request) error {
	sub, release, err := a.subscription(c, r)
	if err != nil {
		return err
	}
	defer release()
	if r.Method == http.MethodHead {
		c.Header().Set("Content-Type", "text/event-stream")
		c.Header().Set("Cache-Control", "no-store")
		c.WriteHeader(http.StatusOK)
		return nil
	}
	// The hub bounds its own writes, so it gets the server's writer.
	c.status = http.StatusOK
	if err = a.hub.Serve(c.streamWriter(), r, *sub); err != nil {
		c.status = 0 // nothing was written
	}
	return err
}

// subscription reads what to stream, and holds the lease of the agent that it is for.
func (a *API) subscription(c *call, r *http.Request) (sub *sse.Subscription, release func(), err error) {
	q := queryOf(r, "agent", "observe", "format")
	agent, observe, format := q.text("agent"), q.flag("observe"), q.choice("format", formatOpenAI, formatAnthropic)
	if q.err != nil {
		return nil, nil, q.err
	}
	observe = observe || c.looksOnly()
	release, err = a.listen(c, r, &agent, observe)
	return &sse.Subscription{
		Session:     c.principal.Session,
		Caller:      c.principal.Subject,
		Agent:       agent,
		Observe:     observe,
		LastEventID: r.Header.Get("Last-Event-ID"),
		Gone:        func() bool { return gone(r.Context()) },
		Shape:       withMessage(format),
		Right:       c.principal,
	}, release, err
}

// listen proves the agent whose notices are asked for, and holds its lease until
// release if they are delivered. A pinned token hears of its own agent alone.
func (a *API) listen(c *call, r *http.Request, agent *string, observe bool) (release func(), err error) {
	none := func() {}
	pinned := c.principal.Agent
	switch {
	case *agent == "" && pinned == "":
		return none, nil
	case *agent == "":
		*agent = pinned
	case pinned != "" && *agent != pinned:
		return nil, registry.Errorf(registry.CodeForbidden, "This token acts for the agent %s only.", pinned)
	case c.principal.Session == "":
		return nil, registry.Errorf(registry.CodeForbidden, "This token has no session, so no agent; leave the parameter agent out.")
	}
	if *agent == registry.DefaultAgent {
		return none, nil
	}
	target := registry.Caller{Session: c.principal.Session, Agent: *agent}
	if observe {
		// Watching an agent is no sign of its life.
		agents, err := a.service.ListAgents(r.Context(), registry.Caller{Session: target.Session})
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(agents, func(g registry.Agent) bool { return g.ID == target.Agent }) {
			return none, nil
		}
	}
	return a.service.Act(r.Context(), target)
}
