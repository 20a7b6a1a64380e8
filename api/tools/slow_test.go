package tools_test

import (
	"context"
	"testing"

	"afoot/api/tools"
	"afoot/registry"
)

// slow is a registry in which some calls take as long as they are let.
type slow struct {
	registry.Service

	get, kill bool
}

func (s slow) Get(ctx context.Context, caller registry.Caller, id registry.ID) (registry.Snapshot, error) {
	if s.get {
		<-ctx.Done()
		return registry.Snapshot{}, ctx.Err()
	}
	return s.Service.Get(ctx, caller, id)
}

func (s slow) Kill(ctx context.Context, caller registry.Caller, id registry.ID, reason string) (registry.KillOutcome, registry.Snapshot, error) {
	if s.kill {
		<-ctx.Done()
		return "", registry.Snapshot{}, ctx.Err()
	}
	return s.Service.Kill(ctx, caller, id, reason)
}

// TestLimitIsNotWaitedForForEver: a call is answered although the limit of its texts
// can't be looked up.
func TestLimitIsNotWaitedForForEver(t *testing.T) {
	inBubble(t, func(w *world) {
		w.failed(tools.NameKill, `{"task_id":"bash-1"}`)
	}, func(cfg *tools.Config) { cfg.Service = slow{Service: cfg.Service, get: true} })
}

// TestStopThatTakesTooLong: a command that could not be stopped in time for its caller,
// who has left, is a background task, so that its end is told.
func TestStopThatTakesTooLong(t *testing.T) {
	inBubble(t, func(w *world) {
		g := w.begin(tools.NameBash, `{"command":"c","description":"d"}`)
		g.cancel()
		w.is.True(g.wait().IsError)
		w.is.False(w.get("bash-1").Foreground)
		w.jobs.Work("bash-1").Settle(registry.Outcome{Status: registry.StatusCompleted})
		w.is.Len(w.told(), 1)
	}, func(cfg *tools.Config) { cfg.Service = slow{Service: cfg.Service, kill: true} })
}
