package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"afoot/api/webhook"
	"afoot/api/wire"
	"afoot/registry"
)

// addWebhook answers POST /webhooks.
func (a *API) addWebhook(c *call, r *http.Request) error {
	owner, err := c.hookOwner(r)
	if err != nil {
		return err
	}
	body, err := readBody(c, r)
	if err != nil {
		return err
	}
	var req wire.WebhookRequest
	if err := decode(body, &req); err != nil {
		return err
	}
	h, err := a.hooks.Add(r.Context(), owner, req.Url, req.Secret, func() []webhook.Pending { return a.pendingFor(owner) })
	if err != nil {
		return a.hookError(err)
	}
	// An agent that has ended meanwhile takes only what it had with it.
	if c.caller.Agent != "" {
		release, err := a.service.Act(r.Context(), c.caller)
		if err != nil {
			return errors.Join(err, a.hooks.Remove(context.WithoutCancel(r.Context()), owner, h.ID))
		}
		release()
	}
	c.Header().Set("Location", "/webhooks/"+h.ID)
	return reply(c, r, http.StatusCreated, wireWebhook(owner, h))
}

// listWebhooks answers GET /webhooks. It shows what this call found: only then it is
// a call of the agent.
func (a *API) listWebhooks(c *call, r *http.Request) error {
	owner, err := c.hookOwner(r)
	if err != nil {
		return err
	}
	list := wire.WebhookList{Webhooks: []wire.Webhook{}}
	for _, h := range a.hooks.List(owner) {
		list.Webhooks = append(list.Webhooks, wireWebhook(owner, h))
	}
	a.hooks.Called(owner)
	return reply(c, r, http.StatusOK, list)
}

// removeWebhook answers DELETE /webhooks/{id}.
func (a *API) removeWebhook(c *call, r *http.Request) error {
	owner, err := c.hookOwner(r)
	if err != nil {
		return err
	}
	if err := a.hooks.Remove(r.Context(), owner, c.target); err != nil {
		if errors.Is(err, webhook.ErrUnknown) {
			return registry.Errorf(CodeNotFound, "This agent has no webhook %.80q.", c.target)
		}
		return err
	}
	c.WriteHeader(http.StatusNoContent)
	return nil
}

// hookOwner is who has the webhooks that a call is about.
func (c *call) hookOwner(r *http.Request) (webhook.Owner, error) {
	if q := queryOf(r); q.err != nil {
		return webhook.Owner{}, q.err
	}
	if c.caller.Session == "" {
		return webhook.Owner{}, registry.Errorf(registry.CodeForbidden, "This token has no session, so it can have no webhooks.")
	}
	return c.actor(), nil
}

// actor is the agent that a call acts for, as the webhooks know it.
func (c *call) actor() webhook.Owner {
	agent := c.caller.Agent
	if agent == "" {
		agent = registry.DefaultAgent
	}
	return webhook.Owner{Session: c.caller.Session, Agent: agent}
}

// called tells the webhooks of a sign of life of their agent.
func (c *call) called() {
	if c.caller.Session != "" && !c.route.looksFirst {
		c.api.hooks.Called(c.actor())
	}
}

// hookError words a refusal of the poster.
func (a *API) hookError(err error) error {
	wrong, is := errors.AsType[*webhook.InvalidError](err)
	switch {
	case is:
		return invalid("The member %q %s.", wrong.Member, wrong.Reason)
	case errors.Is(err, webhook.ErrTooMany):
		e := registry.Errorf(registry.CodeLimitReached,
			"limit reached: at most %d webhooks per agent (AFOOT_MAX_WEBHOOKS_PER_AGENT); remove one first", a.hooks.MaxPerOwner())
		e.Limit = "AFOOT_MAX_WEBHOOKS_PER_AGENT"
		return e
	case errors.Is(err, webhook.ErrClosed):
		return registry.Errorf(registry.CodeUnavailable, "The daemon is shutting down.")
	}
	return err
}

func wireWebhook(owner webhook.Owner, h webhook.Hook) wire.Webhook {
	w := wire.Webhook{
		Id: h.ID, Url: h.URL, Agent: &owner.Agent, CreatedAt: h.Created.UnixMilli(),
		Pending: h.Pending, Waiting: &h.Waiting,
	}
	if h.LastError != "" {
		w.LastError = &h.LastError
	}
	return w
}

// hookOf is who is told of a task's end by posts.
func hookOf(o registry.Owner) webhook.Owner {
	return webhook.Owner{Session: o.Session, Agent: o.Agent}
}

// postDone has a notice posted, of which data is what the streams carry.
func (a *API) postDone(s registry.Snapshot, data []byte) {
	if owner := hookOf(s.Owner); a.hooks.Has(owner) {
		a.hooks.Notice(owner, a.message(string(s.ID), ownerName(s.Owner), data, s.FinishedAt))
	}
}

// message makes what is posted.
func (a *API) message(key, exact string, data []byte, at time.Time) webhook.Notice {
	return webhook.Notice{
		Key: key, Exact: exact,
		// The same after a restart, and never that of another daemon.
		ID: "msg_" + a.hub.Epoch() + "_" + key,
		Body: encode(struct {
			Type      string          `json:"type"`
			Timestamp time.Time       `json:"timestamp"`
			Data      json.RawMessage `json:"data"`
		}{"task.done", at.UTC().Truncate(time.Millisecond), data}),
	}
}

// pendingFor gives the notices for an agent that no stream has carried.
func (a *API) pendingFor(owner webhook.Owner) (all []webhook.Pending) {
	for _, n := range a.hub.Pending(owner.Session, owner.Agent) {
		var done struct {
			Task struct {
				FinishedAt int64 `json:"finishedAt"`
			} `json:"task"`
		}
		if err := json.Unmarshal(n.Data, &done); err != nil {
			continue // this daemon wrote it
		}
		all = append(all, webhook.Pending{Notice: a.message(n.Key, n.Owner, n.Data, time.UnixMilli(done.Task.FinishedAt)), Held: n.Held})
	}
	return all
}

// postChange keeps what is posted true to the records.
func (a *API) postChange(ch registry.Change) {
	owner, key := hookOf(ch.Snapshot.Owner), string(ch.Snapshot.ID)
	switch ch.Type {
	case registry.ChangeHeld:
		a.hooks.Hold(owner, key)
	case registry.ChangeDue:
		a.hooks.Due(owner, key)
	case registry.ChangeReported, registry.ChangeRemoved:
		a.hooks.Withdraw(owner, key)
	case registry.ChangeOwnerGone:
		if owner.Agent == registry.DefaultAgent {
			// It has successors, and their webhooks may be there already; see disposeDefault.
			a.hooks.DropNotices(owner, ownerName(ch.Snapshot.Owner))
		} else {
			a.hooks.DropOwner(owner)
		}
	case registry.ChangeRegistered, registry.ChangePromoted, registry.ChangeStopping, registry.ChangeSettled, registry.ChangeEvicted:
	}
}

// disposeDefault disposes a session's default agent and the webhooks that it had at
// the call.
func (a *API) disposeDefault(ctx context.Context, caller registry.Caller) error {
	newest := a.hooks.Newest()
	err := a.service.DisposeAgent(ctx, caller, registry.DefaultAgent)
	if err != nil && ctx.Err() == nil {
		return err
	}
	// It has ended, or its end goes on without its caller.
	a.hooks.DropUpTo(webhook.Owner{Session: caller.Session, Agent: registry.DefaultAgent}, newest)
	if err != nil {
		return err
	}
	return a.hooks.Sync(ctx)
}

// reconcileHooks is [API.Reconcile] for what is posted.
func (a *API) reconcileHooks(ctx context.Context, living *roster) error {
	notices, owners := a.hooks.Kept()
	for _, owner := range owners {
		lives, err := living.names(ctx, owner.Session, owner.Agent)
		if err != nil {
			return err
		}
		if !lives && owner.Agent != registry.DefaultAgent {
			a.hooks.DropOwner(owner)
		}
	}
	for _, n := range notices {
		s, err := a.service.Get(ctx, registry.Caller{Session: n.Owner.Session}, registry.ID(n.Key))
		if err := ctx.Err(); err != nil {
			return err
		}
		if err == nil {
			if s.Reported {
				a.hooks.Withdraw(n.Owner, n.Key)
			}
			continue
		}
		lives, err := living.has(ctx, n.Owner.Session, n.Exact)
		if err != nil {
			return err
		}
		if !lives {
			a.hooks.DropNotices(n.Owner, n.Exact)
		}
	}
	return nil
}
