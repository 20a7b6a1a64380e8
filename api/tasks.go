package api

import (
	"net/http"

	"afoot/api/wire"
	"afoot/registry"
)

// Sizes of a page of tasks.
const (
	defaultListed = 100
	maxListed     = 1000
)

// listTasks answers GET /tasks.
func (a *API) listTasks(c *call, r *http.Request) error {
	q := queryOf(r, "status", "kind", "limit", "after")
	opts := registry.ListOptions{
		Status: registry.Status(q.text("status")),
		Kind:   registry.Kind(q.text("kind")),
		Limit:  defaultListed,
		After:  q.text("after"),
	}
	if n, given := q.number("limit", 1); given {
		opts.Limit = int(min(n, maxListed))
	}
	if q.err != nil {
		return q.err
	}
	if opts.Status != "" && !opts.Status.Valid() {
		return invalid("The query parameter status must be running, stopping, completed, killed or failed, not %.40q.", string(opts.Status))
	}
	list, err := a.service.List(r.Context(), c.caller, opts)
	if err != nil {
		return err
	}
	return reply(c, r, http.StatusOK, wireList(list))
}

// getTask answers GET /tasks/{id}.
func (a *API) getTask(c *call, r *http.Request) error {
	if q := queryOf(r); q.err != nil {
		return q.err
	}
	d, err := a.service.Describe(r.Context(), c.caller, c.task())
	if err != nil {
		return err
	}
	return reply(c, r, http.StatusOK, wireDescription(d))
}

// killTask answers DELETE /tasks/{id}.
func (a *API) killTask(c *call, r *http.Request) error {
	q := queryOf(r, "reason", "purge")
	reason, _ := q.get("reason")
	purge := q.flag("purge")
	if q.err != nil {
		return q.err
	}
	if !registry.ValidReason(reason) {
		return invalid("The query parameter reason must be one line of at most %d bytes without control characters.", registry.MaxReasonBytes)
	}
	if purge {
		if err := a.service.Purge(r.Context(), c.caller, c.task()); err != nil {
			return err
		}
		c.WriteHeader(http.StatusNoContent)
		return nil
	}
	outcome, snapshot, err := a.service.Kill(r.Context(), c.caller, c.task(), reason)
	if err != nil {
		return err
	}
	status := http.StatusAccepted
	if outcome == registry.KillAlreadyFinished {
		status = http.StatusOK
	}
	return reply(c, r, status, wireKill(outcome, snapshot))
}

// ackOutput answers POST /tasks/{id}/ack.
func (a *API) ackOutput(c *call, r *http.Request) error {
	if q := queryOf(r); q.err != nil {
		return q.err
	}
	body, err := readBody(c, r)
	if err != nil {
		return err
	}
	req := wire.AckRequest{NextOffset: -1}
	if err := decode(body, &req); err != nil {
		return err
	}
	if req.NextOffset < 0 {
		return invalid("The member \"nextOffset\" must be there and not be negative.")
	}
	if err := a.service.Ack(r.Context(), c.caller, c.task(), req.NextOffset); err != nil {
		return err
	}
	c.WriteHeader(http.StatusNoContent)
	return nil
}
