package api

import (
	"context"
	"net/http"
	"time"

	"afoot/auth"
)

// wait is how a call wants to wait.
type wait struct {
	asked bool
	// bound is how long at most; clamped is the same if it was cut to the maximum,
	// else 0.
	bound, clamped time.Duration
}

// waitOf reads wait and timeout_ms. The time-out is checked even if nothing waits.
func (a *API) waitOf(q *query) wait {
	w := wait{asked: q.flag("wait"), bound: a.waitDefault}
	if ms, given := q.number("timeout_ms", 1); given {
		most := a.waitMax.Milliseconds()
		w.bound = time.Duration(min(ms, most)) * time.Millisecond
		if ms > most {
			w.clamped = w.bound
		}
	}
	if !w.asked {
		return wait{}
	}
	return w
}

// rightful gives a context that ends with the caller's right as well, for what may
// block. Whoever writes what came of it asks before whether the right has ended.
func (c *call) rightful(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := c.principal.Watch(cancel)
	return ctx, func() { stop(); cancel() }
}

// during is rightful for a call that is about to wait, and counts it; the context of one
// that does not wait is the request's.
func (w wait) during(c *call, r *http.Request) (context.Context, context.CancelFunc) {
	if !w.asked {
		return r.Context(), func() {}
	}
	c.api.metrics.waits.Add(1)
	ctx, release := c.rightful(r.Context())
	return ctx, func() { release(); c.api.metrics.waits.Add(-1) }
}

// errExpired answers a wait whose token, or its key, ended.
func errExpired() error {
	return &auth.Error{Kind: auth.KindUnauthenticated, Message: "The token expired while this call was waiting; get a fresh one and ask again."}
}
