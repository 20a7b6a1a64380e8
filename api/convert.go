package api

import (
	"encoding/json"
	"time"

	"afoot/api/render"
	"afoot/api/wire"
	"afoot/registry"
)

func wireSnapshot(s registry.Snapshot) wire.Snapshot {
	return wire.Snapshot{
		Id:               string(s.ID),
		Kind:             string(s.Kind),
		Label:            s.Label,
		OutputLimitBytes: s.OutputLimitBytes,
		OwnerSession:     s.Owner.Session,
		Agent:            s.Owner.Agent,
		Status:           wire.Status(s.Status),
		Detail:           s.Detail,
		Result:           s.Result,
		StartedAt:        s.StartedAt.UnixMilli(),
		FinishedAt:       wireTime(s.FinishedAt),
		Foreground:       s.Foreground,
		Reported:         s.Reported,
		OutputBytes:      s.OutputBytes,
		DroppedBytes:     s.DroppedBytes,
	}
}

// wireTime gives epoch milliseconds, and 0 for the zero time.
func wireTime(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func wireDescription(d registry.Description) wire.TaskDescription {
	s := wireSnapshot(d.Snapshot)
	request := d.Request
	if len(request) == 0 {
		request = json.RawMessage("{}")
	}
	return wire.TaskDescription{
		Id:               s.Id,
		Kind:             s.Kind,
		Label:            s.Label,
		OutputLimitBytes: s.OutputLimitBytes,
		OwnerSession:     s.OwnerSession,
		Agent:            s.Agent,
		Status:           s.Status,
		Detail:           s.Detail,
		Result:           s.Result,
		StartedAt:        s.StartedAt,
		FinishedAt:       s.FinishedAt,
		Foreground:       s.Foreground,
		Reported:         s.Reported,
		OutputBytes:      s.OutputBytes,
		DroppedBytes:     s.DroppedBytes,
		Request:          request,
		Waiters:          d.Waiters,
	}
}

func wireList(l registry.List) wire.TaskList {
	tasks := make([]wire.Snapshot, len(l.Tasks))
	for i, t := range l.Tasks {
		tasks[i] = wireSnapshot(t)
	}
	return wire.TaskList{Tasks: tasks, Next: l.Next}
}

// wireRead gives the read as JSON has it; clamped is the bound of the wait if it
// was clamped, else 0.
func wireRead(r registry.Read, clamped time.Duration) wire.TaskRead {
	return wire.TaskRead{
		Text:         r.Text,
		Snapshot:     wireSnapshot(r.Snapshot),
		Offset:       r.Offset,
		NextOffset:   r.NextOffset,
		Eof:          r.EOF,
		DroppedBytes: r.Dropped,
		Stderr:       wirePiece(r.Stderr),
		TimeoutMs:    clamped.Milliseconds(),
	}
}

// wirePiece gives the second stream of a read, nil if there is none.
func wirePiece(p *registry.Piece) *wire.StreamRead {
	if p == nil {
		return nil
	}
	return &wire.StreamRead{
		Text:         p.Text,
		Offset:       p.Offset,
		NextOffset:   p.NextOffset,
		Eof:          p.EOF,
		DroppedBytes: p.Dropped,
	}
}

func wireInput(r registry.InputResult) wire.InputResult {
	return wire.InputResult{Written: r.Written, Closed: r.Closed}
}

func wireKill(outcome registry.KillOutcome, s registry.Snapshot) wire.KillResult {
	return wire.KillResult{Outcome: wire.KillOutcome(outcome), Snapshot: wireSnapshot(s)}
}

func wireAgent(a registry.Agent) wire.Agent {
	return wire.Agent{Id: a.ID, Label: a.Label, LeaseMs: a.Lease.Milliseconds()}
}

func wireAgents(agents []registry.Agent) wire.AgentList {
	list := wire.AgentList{Agents: make([]wire.Agent, len(agents))}
	for i, a := range agents {
		list.Agents[i] = wireAgent(a)
	}
	return list
}

// wireTaskDone gives the data of a task.done event.
func wireTaskDone(s registry.Snapshot) wire.TaskDone {
	return wire.TaskDone{Text: render.Notice(s), Task: wireSnapshot(s)}
}

func wireVersion(v VersionInfo) wire.Version {
	return wire.Version{Version: v.Version, Commit: v.Commit, Date: v.Date, Go: v.Go, Net: v.Net}
}

// agentOptions reads what a caller wants of a new agent. Bounds are the
// registry's affair, but for what a duration cannot hold.
func agentOptions(req wire.AgentRequest) registry.AgentOptions {
	opts := registry.AgentOptions{Label: req.Label}
	if req.LeaseMs != nil {
		lease := time.Duration(min(max(*req.LeaseMs, -1), int64(2*registry.MaxLease/time.Millisecond))) * time.Millisecond
		opts.Lease = &lease
	}
	return opts
}
