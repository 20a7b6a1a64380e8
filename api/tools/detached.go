package tools

import (
	"context"
	"encoding/json"

	"afoot/api/render"
	"afoot/registry"
)

// Detach starts the command of a foreground call of bash as a background task, for a
// transport whose caller asks for the result later: by [Set.Result]. The time-outs are
// those of a foreground call. Nil is for any other call, and for one that is refused:
// [Set.Call] answers those.
func (s *Set) Detach(ctx context.Context, call Call) (*Answer, error) {
	if call.Name != NameBash || !s.cfg.Background || !call.Writes {
		return nil, nil //nolint:nilnil // as said above
	}
	args, err := s.bashArguments(call.Arguments)
	if err != nil || args.RunInBackground || args.YieldMs > 0 {
		return nil, nil //nolint:nilerr,nilnil // as said above
	}
	answer, err := s.answer(ctx, call, func(ctx context.Context, call Call) (*Answer, error) {
		b, err := s.begin(ctx, call, args, false)
		if err != nil {
			return nil, err
		}
		return b.answer(), nil
	})
	if err == nil {
		answer.Text = render.Fit(answer.Text, s.limit(0))
	}
	return answer, err
}

// Result gives what a foreground call would have answered whose command has ended: the
// same each time. Confirming it reports the end, unless the caller only looks. The error
// of one that still runs is [registry.CodeConflict].
func (s *Set) Result(ctx context.Context, call Call, id registry.ID) (*Answer, error) {
	task, err := s.cfg.Service.Describe(ctx, call.Caller, id)
	if err != nil {
		return nil, err
	}
	snapshot := task.Snapshot
	if !snapshot.Status.Terminal() {
		return nil, registry.Errorf(registry.CodeConflict, "The task %s has not ended.", id)
	}
	read, err := s.printed(ctx, call, snapshot)
	if err != nil {
		return nil, err
	}
	var delivery *registry.Delivery
	if !snapshot.Reported && call.Writes {
		if delivery, err = s.cfg.Service.Read(ctx, call.Caller, id, registry.ReadOptions{Tail: 1, Explicit: call.Explicit}); err != nil {
			return nil, err
		}
	}
	var request struct {
		TimeoutMs int64 `json:"timeoutMs"`
	}
	_ = json.Unmarshal(task.Request, &request) // one that names no time has none
	f := foreground{set: s, call: call, id: id, timeoutMs: request.TimeoutMs}
	answer := f.ended(registry.NewDelivery(read, nil, nil))
	answer.Delivery = delivery
	return answer, nil
}
