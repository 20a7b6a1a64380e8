package mcp

import (
	"context"
	"log/slog"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"afoot/registry"
)

// ends is what the server keeps of tasks that have not ended, or were stopped.
type ends struct {
	mu sync.Mutex
	// wanted are those whose end somebody has asked to hear of.
	wanted map[registry.ID]struct{}
	// stopped says of those that are known whether they were asked to end.
	stopped map[registry.ID]bool
}

func (e *ends) want(id registry.ID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.wanted[id] = struct{}{}
}

func (e *ends) drop(id registry.ID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.wanted, id)
}

func (e *ends) wasStopped(id registry.ID) (stopped, known bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	stopped, known = e.stopped[id]
	return stopped, known
}

// note keeps what a change says, and reports whether somebody has to hear of it.
func (e *ends) note(ch registry.Change) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	id := ch.Snapshot.ID
	_, wanted := e.wanted[id]
	switch ch.Type {
	case registry.ChangeStopping:
		e.stopped[id] = true
	case registry.ChangeSettled:
		delete(e.wanted, id)
		return wanted
	case registry.ChangeReported:
		if _, known := e.stopped[id]; !known && ch.Snapshot.Status == registry.StatusKilled {
			e.stopped[id] = false // a stop would have reported it before its end
		}
	case registry.ChangeRemoved, registry.ChangeEvicted:
		delete(e.wanted, id)
		delete(e.stopped, id)
	case registry.ChangeRegistered, registry.ChangePromoted, registry.ChangeHeld, registry.ChangeDue, registry.ChangeOwnerGone:
	}
	return false
}

// changed hears of every change.
func (s *Server) changed(ch registry.Change) {
	if ch.Type == registry.ChangeOwnerGone {
		gone := ch.Snapshot.Owner
		s.sessions.removeAll(func(o owner) bool { return o.session == gone.Session && o.agent == gone.Agent })
		return
	}
	if s.ends.note(ch) {
		uri := logURI(ch.Snapshot.ID)
		s.background(func() { s.tell(uri) })
	}
}

// tell sends an update to all who subscribed to a log, and waits for their streams.
func (s *Server) tell(uri string) {
	if err := s.server.ResourceUpdated(context.Background(), &sdk.ResourceUpdatedNotificationParams{URI: uri}); err != nil {
		s.cfg.Logger.Debug("an update was not sent", slog.String("uri", uri), slog.Any("error", err))
	}
}

// tellEnded sends an update if the task has ended: who subscribed in that moment may
// have come too late for the other one.
func (s *Server) tellEnded(caller registry.Caller, uri string) {
	snapshot, err := s.cfg.Service.Get(context.Background(), caller, logOf(uri))
	if err == nil && snapshot.Status.Terminal() {
		s.tell(uri)
	}
}

// again tells a client that has opened its stream what it may have missed while it had
// none.
func (s *Server) again(x *Exchange) {
	<-x.settled
	if _, streams, _ := x.outcome(); !streams {
		return
	}
	for _, uri := range s.sessions.heard(x.bound) {
		s.tellEnded(x.caller(), uri)
	}
}

// subscribe lets in who may see the task.
func (s *Server) subscribe(ctx context.Context, req *sdk.SubscribeRequest) error {
	x, uri := within(ctx), req.Params.URI
	id := logOf(uri)
	if x == nil || id == "" {
		return sdk.ResourceNotFoundError(uri)
	}
	if _, err := s.cfg.Service.Get(ctx, x.caller(), id); err != nil {
		return sdk.ResourceNotFoundError(uri)
	}
	if x.bound != nil {
		if err := s.sessions.listen(x.bound, uri); err != nil {
			return invalidParams(err.Error())
		}
	}
	s.ends.want(id)
	if _, err := s.cfg.Service.Get(ctx, x.caller(), id); err != nil {
		s.ends.drop(id) // it was removed meanwhile, and nothing more comes of it
		return sdk.ResourceNotFoundError(uri)
	}
	return nil
}

func (s *Server) unsubscribe(ctx context.Context, req *sdk.UnsubscribeRequest) error {
	if x := within(ctx); x != nil && x.bound != nil {
		s.sessions.unlisten(x.bound, req.Params.URI)
	}
	return nil
}

// acknowledged hears when the subscriptions of a stream are in force.
func (s *Server) acknowledged(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		result, err := next(ctx, method, req)
		params, ok := req.GetParams().(*sdk.SubscriptionsAcknowledgedParams)
		if x := within(ctx); ok && err == nil && x != nil {
			s.background(func() {
				for _, uri := range params.Notifications.ResourceSubscriptions {
					s.tellEnded(x.caller(), uri)
				}
			})
		}
		return result, err
	}
}
