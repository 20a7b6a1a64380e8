package api

import (
	"context"
	"log/slog"
	"strconv"
	"time"

	"afoot/registry"
	"afoot/sse"
)

// done hands an end that is due to the stream of the session that started the task.
func (a *API) done(n registry.Notice) {
	s := n.Snapshot
	data := encode(wireTaskDone(s))
	a.hub.Append(s.Owner.Session, sse.Notice{
		Key:   string(s.ID),
		Owner: ownerName(s.Owner),
		Agent: s.Owner.Agent,
		Event: "task.done",
		Data:  data,
	})
	a.postDone(s, data) // behind the streams: who adds a webhook asks them
}

// Reconcile takes back what the streams and the webhooks have kept of ends that are reported, or
// whose owner is gone: the daemon may have died when the records knew that and
// they did not. It is called once, when the service has loaded its records and
// before the first request.
func (a *API) Reconcile(ctx context.Context) error {
	living := roster{service: a.service}
	for _, n := range a.hub.Kept() {
		caller := registry.Caller{Session: n.Session}
		s, err := a.service.Get(ctx, caller, registry.ID(n.Key))
		if err := ctx.Err(); err != nil {
			return err
		}
		if err == nil {
			if s.Reported {
				a.hub.Withdraw(n.Session, n.Key)
			}
			continue
		}
		if !n.Pending {
			continue // told in its time
		}
		// The record is gone. An eviction leaves the notice, the end of its owner does not.
		lives, err := living.has(ctx, n.Session, n.Owner)
		if err != nil {
			return err
		}
		if !lives {
			a.hub.DropOwner(n.Session, n.Owner)
		}
	}
	return a.reconcileHooks(ctx, &living)
}

// changed keeps the streams true to the records, and tells them that a look is
// worth while.
func (a *API) changed(ch registry.Change) {
	s := ch.Snapshot
	switch ch.Type {
	case registry.ChangeSettled:
		a.metrics.settled(s)
	case registry.ChangeHeld:
		a.hub.Hold(s.Owner.Session, string(s.ID))
	case registry.ChangeDue:
		a.hub.Due(s.Owner.Session, string(s.ID))
	case registry.ChangeReported, registry.ChangeRemoved:
		a.hub.Withdraw(s.Owner.Session, string(s.ID))
	case registry.ChangeOwnerGone:
		a.hub.DropOwner(s.Owner.Session, ownerName(s.Owner))
	case registry.ChangeEvicted:
		// An end whose record was evicted is not swallowed: its notice stays.
		a.evicted(s)
	case registry.ChangeRegistered, registry.ChangePromoted, registry.ChangeStopping:
	}
	a.postChange(ch)
	a.watchers.wake(s.ID)
	switch {
	case !ch.Type.Visible():
	case s.Owner.Unowned():
		a.hub.PokeAll("")
	default:
		a.hub.Poke(s.Owner.Session, s.Owner.Agent)
	}
}

// evicted notes a record that nobody asked to remove.
func (a *API) evicted(s registry.Snapshot) {
	a.metrics.evicted(s)
	a.log.Debug("an ended task was evicted", slog.String(keyTask, string(s.ID)),
		slog.Bool("reported", s.Reported), slog.Duration("age", time.Since(s.FinishedAt)), slog.Int64(keyBytes, s.OutputBytes-s.DroppedBytes))
}

// ownerName is the exact owner as the streams compare it.
func ownerName(o registry.Owner) string {
	return o.Session + "\x00" + o.Agent + "\x00" + strconv.FormatUint(o.Incarnation, 10)
}
