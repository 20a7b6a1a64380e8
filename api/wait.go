package api

import (
	"time"

	"afoot/auth"
	"afoot/registry"
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

// within cuts a wait to the life of the caller's token. It stays positive, so that
// it stays a wait.
func (w wait) within(p auth.Principal) time.Duration {
	if !w.asked {
		return 0
	}
	return max(min(w.bound, time.Until(p.ExpiresAt)), 1)
}

// outlived reports whether a wait ended, without an end of its task, because the
// token did.
func (w wait) outlived(p auth.Principal, s registry.Snapshot) bool {
	return w.asked && !s.Status.Terminal() && !time.Now().Before(p.ExpiresAt)
}

// errExpired answers a wait whose token ended.
func errExpired() error {
	return &auth.Error{Kind: auth.KindUnauthenticated, Message: "The token expired while this call was waiting; get a fresh one and ask again."}
}
