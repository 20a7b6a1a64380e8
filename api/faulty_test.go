package api_test

import (
	"context"
	"errors"
	"sync/atomic"

	"afoot/registry"
)

// faulty is a service that can be made to break in every call.
type faulty struct {
	registry.Service
	broken atomic.Bool
	// openLog, when set, gives the logs.
	openLog func(context.Context) (registry.RawLog, error)
	// afterRead, when set, comes between a consuming read and its answer.
	afterRead func()
}

func (f *faulty) fault() error {
	if f.broken.Load() {
		return errors.New("broken")
	}
	return nil
}

func (f *faulty) Start(ctx context.Context, c registry.Caller, req registry.StartRequest) (registry.Started, error) {
	if err := f.fault(); err != nil {
		return registry.Started{}, err
	}
	return f.Service.Start(ctx, c, req)
}

func (f *faulty) Get(ctx context.Context, c registry.Caller, id registry.ID) (registry.Snapshot, error) {
	if err := f.fault(); err != nil {
		return registry.Snapshot{}, err
	}
	return f.Service.Get(ctx, c, id)
}

func (f *faulty) Describe(ctx context.Context, c registry.Caller, id registry.ID) (registry.Description, error) {
	if err := f.fault(); err != nil {
		return registry.Description{}, err
	}
	return f.Service.Describe(ctx, c, id)
}

func (f *faulty) List(ctx context.Context, c registry.Caller, opts registry.ListOptions) (registry.List, error) {
	if err := f.fault(); err != nil {
		return registry.List{}, err
	}
	return f.Service.List(ctx, c, opts)
}

func (f *faulty) Read(ctx context.Context, c registry.Caller, id registry.ID, opts registry.ReadOptions) (*registry.Delivery, error) {
	if err := f.fault(); err != nil {
		return nil, err
	}
	if f.afterRead != nil {
		defer f.afterRead()
	}
	return f.Service.Read(ctx, c, id, opts)
}

func (f *faulty) Ack(ctx context.Context, c registry.Caller, id registry.ID, next int64) error {
	if err := f.fault(); err != nil {
		return err
	}
	return f.Service.Ack(ctx, c, id, next)
}

func (f *faulty) OpenLog(ctx context.Context, c registry.Caller, id registry.ID, stream string) (registry.RawLog, error) {
	if err := f.fault(); err != nil {
		return nil, err
	}
	if f.openLog != nil {
		return f.openLog(ctx)
	}
	return f.Service.OpenLog(ctx, c, id, stream)
}

func (f *faulty) Input(ctx context.Context, c registry.Caller, id registry.ID, data []byte, last bool) (registry.InputResult, error) {
	if err := f.fault(); err != nil {
		return registry.InputResult{}, err
	}
	return f.Service.Input(ctx, c, id, data, last)
}

func (f *faulty) Signal(ctx context.Context, c registry.Caller, id registry.ID, name string) error {
	if err := f.fault(); err != nil {
		return err
	}
	return f.Service.Signal(ctx, c, id, name)
}

func (f *faulty) Kill(ctx context.Context, c registry.Caller, id registry.ID, reason string) (registry.KillOutcome, registry.Snapshot, error) {
	if err := f.fault(); err != nil {
		return "", registry.Snapshot{}, err
	}
	return f.Service.Kill(ctx, c, id, reason)
}

func (f *faulty) OpenAgent(ctx context.Context, c registry.Caller, opts registry.AgentOptions) (registry.Agent, error) {
	if err := f.fault(); err != nil {
		return registry.Agent{}, err
	}
	return f.Service.OpenAgent(ctx, c, opts)
}

func (f *faulty) ListAgents(ctx context.Context, c registry.Caller) ([]registry.Agent, error) {
	if err := f.fault(); err != nil {
		return nil, err
	}
	return f.Service.ListAgents(ctx, c)
}

func (f *faulty) Act(ctx context.Context, c registry.Caller) (func(), error) {
	if err := f.fault(); err != nil {
		return nil, err
	}
	return f.Service.Act(ctx, c)
}

func (f *faulty) DisposeAgent(ctx context.Context, c registry.Caller, agent string) error {
	if err := f.fault(); err != nil {
		return err
	}
	return f.Service.DisposeAgent(ctx, c, agent)
}
