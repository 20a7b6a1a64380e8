package inmem

import (
	"encoding/json"
	"time"
	"unique"

	"afoot/registry"
)

// facts are a [registry.Snapshot], but for what a record knows otherwise. There are
// very many of them, so what is the same in many is kept once.
type facts struct {
	ID    registry.ID
	Label string

	common                unique.Handle[common]
	startedAt, finishedAt moment

	OutputLimitBytes, OutputBytes, DroppedBytes int64

	status               status
	Reported, Foreground bool
}

// common are the facts that most tasks share with others.
type common struct {
	kind   registry.Kind
	detail string
	result string // empty for none
}

func factsOf(s registry.Snapshot) facts {
	return facts{
		ID: s.ID, Label: s.Label, common: unique.Make(common{s.Kind, s.Detail, string(s.Result)}), status: statusOf(s.Status),
		startedAt: momentOf(s.StartedAt), finishedAt: momentOf(s.FinishedAt),
		OutputLimitBytes: s.OutputLimitBytes, OutputBytes: s.OutputBytes, DroppedBytes: s.DroppedBytes,
		Reported: s.Reported, Foreground: s.Foreground,
	}
}

func (f *facts) kind() registry.Kind { return f.shared().kind }

// shared is empty of a record that has no facts.
func (f *facts) shared() common {
	if f.common == (unique.Handle[common]{}) {
		return common{}
	}
	return f.common.Value()
}

// snapshotLocked gives the facts as callers see them.
func (r *record) snapshotLocked() registry.Snapshot {
	f := &r.snap
	shared := f.shared()
	s := registry.Snapshot{
		ID: f.ID, Kind: shared.kind, Label: f.Label, Owner: r.owner(), Detail: shared.detail, Status: f.status.word(),
		StartedAt: f.startedAt.time(), FinishedAt: f.finishedAt.time(),
		OutputLimitBytes: f.OutputLimitBytes, OutputBytes: f.OutputBytes, DroppedBytes: f.DroppedBytes,
		Reported: f.Reported, Foreground: f.Foreground,
	}
	if shared.result != "" {
		s.Result = json.RawMessage(shared.result)
	}
	return s
}

// moment is a time of the wall clock in nanoseconds since 1970; zero is none.
type moment int64

func momentOf(t time.Time) moment {
	if t.IsZero() {
		return 0
	}
	return moment(t.UnixNano())
}

func (m moment) time() time.Time {
	if m == 0 {
		return time.Time{}
	}
	return time.Unix(0, int64(m)).UTC()
}

// status is a [registry.Status] in one byte; zero is none.
type status uint8

const (
	running status = iota + 1
	stopping
	completed
	killed
	failed
)

func statusOf(word registry.Status) status {
	for s := running; s <= failed; s++ {
		if s.word() == word {
			return s
		}
	}
	return 0
}

func (s status) word() registry.Status {
	switch s {
	case running:
		return registry.StatusRunning
	case stopping:
		return registry.StatusStopping
	case completed:
		return registry.StatusCompleted
	case killed:
		return registry.StatusKilled
	case failed:
		return registry.StatusFailed
	}
	return ""
}

func (s status) terminal() bool { return s >= completed }
