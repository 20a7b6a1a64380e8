package mcp

import (
	"context"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"afoot/registry"
)

// Who is the proved caller of one request.
type Who struct {
	Caller registry.Caller
	// Subject tells callers without a session apart.
	Subject string
	// Writes says that the caller may do more than look.
	Writes bool
	// Until ends the caller's right; the zero time never does.
	Until time.Time
	// Explicit holds what the request reads until [registry.Tasks.Ack].
	Explicit bool
}

// owner is who an MCP session belongs to.
type owner struct{ session, agent, subject string }

func (w Who) owner() owner {
	o := owner{session: w.Caller.Session, agent: w.Caller.Agent}
	if o.agent == "" {
		o.agent = registry.DefaultAgent
	}
	if o.session == "" {
		o.subject = w.Subject
	}
	return o
}

// exchangeKey is where contexts, and what the SDK carries of a token, have the
// exchange.
type exchangeKey struct{}

const exchangeExtra = "exchange"

// carrying makes the SDK show each request's exchange to the handlers of its messages:
// their contexts are the MCP session's, not the request's.
func carrying(next http.Handler) http.Handler {
	show := func(ctx context.Context, _ string, _ *http.Request) (*auth.TokenInfo, error) {
		return &auth.TokenInfo{Extra: map[string]any{exchangeExtra: ctx.Value(exchangeKey{})}}, nil
	}
	return auth.RequireBearerToken(show, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(next)
}

// carried finds the exchange of a message.
func carried(req sdk.Request) *Exchange {
	extra := req.GetExtra()
	if extra == nil || extra.TokenInfo == nil {
		return nil
	}
	x, _ := extra.TokenInfo.Extra[exchangeExtra].(*Exchange)
	return x
}

// within is the exchange that a handler's context belongs to.
func within(ctx context.Context) *Exchange {
	x, _ := ctx.Value(exchangeKey{}).(*Exchange)
	return x
}
