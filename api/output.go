package api

import (
	"net/http"

	"afoot/registry"
)

// reading is how one read is to be done.
type reading struct {
	wait  wait
	limit int64
	// offset is where a look begins; it is used if look is set.
	look   bool
	offset int64
	// stream is one stream of a split task; empty is all of a task.
	stream   string
	plain    bool
	explicit bool
	text     bool
	status   int
}

// readOutput answers GET and HEAD of /tasks/{id}/output.
func (a *API) readOutput(c *call, r *http.Request) error {
	how, err := a.readingOf(r)
	if err != nil {
		return err
	}
	if !how.look && c.looksOnly() {
		return registry.Errorf(registry.CodeForbidden, "The scope tasks:read looks only: name an offset to read from, such as offset=0.")
	}
	switch {
	case r.Method == http.MethodHead && !how.plain:
		return a.peek(c, r, c.task(), how)
	case how.plain:
		return a.lookPlain(c, r, how)
	case how.look:
		return a.look(c, r, c.task(), how)
	default:
		return a.read(c, r, c.task(), how)
	}
}

func (a *API) readingOf(r *http.Request) (how *reading, err error) {
	how = &reading{status: http.StatusOK}
	q := queryOf(r, "wait", "timeout_ms", "offset", "limit_bytes", "stream", "view")
	how.wait = a.waitOf(q)
	how.offset, how.look = q.number("offset", 0)
	if n, given := q.number("limit_bytes", 1); given {
		how.limit = min(n, registry.MaxPageBytes)
	}
	how.stream = q.stream()
	how.plain = q.choice("view", "plain") != ""
	if how.plain && !how.look && q.err == nil {
		q.err = invalid("The query parameter view=plain is for looks: name an offset too, such as offset=0.")
	}
	if q.err != nil {
		return how, q.err
	}
	how.text = wantsText(r.Header.Values("Accept"))
	how.explicit, err = wantsExplicitAck(r)
	return how, err
}

// read is the consuming read: wait, read, write, and only then commit.
func (a *API) read(c *call, r *http.Request, id registry.ID, how *reading) error {
	ctx, release := how.wait.during(c, r)
	defer release()
	delivery, err := a.service.Read(ctx, c.caller, id, registry.ReadOptions{
		Stream:     how.stream,
		Wait:       how.wait.bound,
		LimitBytes: how.limit,
		Explicit:   how.explicit,
	})
	if err == nil {
		defer delivery.Abandon()
	}
	switch {
	case c.principal.Ended():
		return errExpired()
	case err != nil:
		return err
	}
	return c.deliver(r, delivery, how)
}

// look reads from an offset and moves nothing.
func (a *API) look(c *call, r *http.Request, id registry.ID, how *reading) error {
	ctx, release := how.wait.during(c, r)
	defer release()
	read, err := a.service.Look(ctx, c.caller, id, how.offset, registry.LookOptions{
		Stream:     how.stream,
		Wait:       how.wait.bound,
		LimitBytes: how.limit,
	})
	switch {
	case c.principal.Ended():
		return errExpired()
	case err != nil:
		return err
	}
	// A look that begins below the first kept byte skipped what was dropped.
	read.Skipped = max(read.Offset-how.offset, 0)
	return c.send(r, read, how)
}

// peek answers HEAD: the headers that a read would have now, without waiting and
// without any effect.
func (a *API) peek(c *call, r *http.Request, id registry.ID, how *reading) error {
	how.wait.asked, how.wait.bound = false, 0
	if how.look {
		return a.look(c, r, id, how)
	}
	read, err := a.service.Look(r.Context(), c.caller, id, registry.AtCursor, registry.LookOptions{Stream: how.stream, LimitBytes: how.limit})
	if err != nil {
		return err
	}
	return c.send(r, read, how)
}
