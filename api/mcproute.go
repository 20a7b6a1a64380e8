package api

import (
	"errors"
	"maps"
	"net/http"
	"time"

	"afoot/api/mcp"
	"afoot/api/tools"
	"afoot/auth"
	"afoot/registry"
)

// newMCP makes what speaks the Model Context Protocol.
func (a *API) newMCP(cfg mcp.Config) (*mcp.Server, error) {
	cfg.Service, cfg.Tools = a.service, a.tools
	cfg.Version, cfg.Logger = a.version.Version, a.log
	return mcp.New(cfg)
}

// serveMCP answers /mcp. What its answer carries is committed behind the flush, as in
// GET /tasks/{id}/output.
func (a *API) serveMCP(c *call, r *http.Request) error {
	explicit, err := wantsExplicitAck(r)
	if err != nil {
		return err
	}
	var body []byte
	if r.Method == http.MethodPost {
		if body, err = readBody(c, r); err != nil {
			return err
		}
	}
	c.Header().Set("Cache-Control", "no-store")
	if r.Method == http.MethodPost {
		ctx, cancel := whileThere(r.Context())
		defer cancel()
		r = r.WithContext(ctx)
	}
	// A stream says bye when the right ends; all else is cancelled then.
	rightful := r.Context()
	if r.Method == http.MethodPost {
		ctx, release := c.rightful(rightful)
		defer release()
		rightful = ctx
	}
	x, err := a.mcp.Open(r.WithContext(rightful), mcp.Who{
		Caller: c.caller, Subject: c.principal.Subject, Writes: !c.looksOnly(), Until: c.principal.ExpiresAt, Explicit: explicit,
	}, body)
	if err != nil {
		return mcpProblem(err)
	}
	defer x.Abandon()
	begun, err := a.awaitMCP(c, r, x)
	if err != nil {
		return err
	}
	answer, streams, err := x.Answer()
	switch {
	case !streams && c.principal.Ended():
		return mcpProblem(tools.ErrExpired)
	case err != nil:
		return mcpProblem(err)
	case streams:
		return a.streamMCP(c, r, x)
	}
	if !begun {
		if words, ok := answer.Refusal(); ok {
			if allow := answer.Header.Get("Allow"); allow != "" {
				c.Header().Set("Allow", allow)
			}
			return registry.Errorf(codeOf(answer.Status), "%s", words)
		}
		maps.Copy(c.Header(), answer.Header)
		c.Header().Set("Cache-Control", "no-store")
	}
	if err := c.handOver(r, answer.Status, answer.Body); err != nil {
		return err
	}
	if c.arrived {
		c.confirm("", x.Confirm)
	}
	return nil
}

// awaitMCP waits for an answer, and reports whether one had to begin before it was
// there: one that takes its time gets bytes of white space, which mean nothing in JSON,
// so that nobody on its way takes the connection for a dead one.
func (a *API) awaitMCP(c *call, r *http.Request, x *mcp.Exchange) (begun bool, err error) {
	beat := time.NewTicker(a.heartbeat)
	defer beat.Stop()
	for {
		select {
		case <-x.Settled():
			return begun, nil
		case <-beat.C:
		}
		if r.Method != http.MethodPost || x.Opens() || r.Context().Err() != nil {
			continue
		}
		if !begun {
			begun = true
			c.Header().Set("Content-Type", "application/json")
			c.WriteHeader(http.StatusOK)
		}
		if _, err := c.Write([]byte("\n")); err != nil {
			return begun, c.lost(r, err)
		}
		if err := c.FlushError(); err != nil {
			return begun, c.lost(r, err)
		}
	}
}

// streamMCP sends messages as they come, on a stream like the session's others.
func (a *API) streamMCP(c *call, r *http.Request, x *mcp.Exchange) error {
	// The feed bounds its own writes, so it gets the server's writer.
	c.status = http.StatusOK
	feed, err := a.hub.OpenFeed(c.streamWriter(), r, c.principal.Session, c.principal.Subject, c.principal)
	if err != nil {
		c.status = 0 // nothing was written
		return err
	}
	defer feed.Close()
	for {
		for _, message := range x.Messages() {
			if !feed.Send("", "message", message) {
				return nil
			}
		}
		select {
		case <-x.Done():
			for _, message := range x.Messages() {
				feed.Send("", "message", message)
			}
			feed.Wait(x.Done(), nil) // says bye if that is due
			return nil
		default:
		}
		if !feed.Wait(x.Ready(), x.Done()) {
			return nil
		}
	}
}

// mcpProblem words what is an answer of HTTP and not of the protocol.
func mcpProblem(err error) error {
	switch {
	case errors.Is(err, mcp.ErrUnknownSession):
		return registry.Errorf(CodeNotFound, "There is no such MCP session, or it is not this token's; begin one by initialize.")
	case errors.Is(err, tools.ErrExpired):
		return &auth.Error{Kind: auth.KindUnauthenticated, Message: "The token expired while this call was waiting; a command that it ran is stopped, unless it goes on in the background."}
	}
	return err
}
