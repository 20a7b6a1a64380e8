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

	shared                unique.Handle[shared]
	startedAt, finishedAt moment

	OutputLimitBytes, OutputBytes, DroppedBytes int64

	status               status
	Reported, Foreground bool
}

// shared are the facts that most tasks have in common with others.
type shared struct {
	kind   registry.Kind
	detail string
	result string // empty for none
}

func factsOf(s registry.Snapshot) facts {
	return facts{
		ID: s.ID, Label: s.Label, shared: unique.Make(shared{s.Kind, s.Detail, string(s.Result)}), status: statusOf(s.Status),
		startedAt: momentOf(s.StartedAt), finishedAt: momentOf(s.FinishedAt),
		OutputLimitBytes: s.OutputLimitBytes, OutputBytes: s.OutputBytes, DroppedBytes: s.DroppedBytes,
		Reported: s.Reported, Foreground: s.Foreground,
	}
}

func (f *facts) kind() registry.Kind { return f.inCommon().kind }

// inCommon is empty of a record that has no facts.
func (f *facts) inCommon() shared {
	if f.shared == (unique.Handle[shared]{}) {
		return shared{}
	}
	return f.shared.Value()
}

// snapshotLocked gives the facts as callers see them.
func (r *record) snapshotLocked() registry.Snapshot {
	f := &r.snap
	common := f.inCommon()
	s := registry.Snapshot{
		ID: f.ID, Kind: common.kind, Label: f.Label, Owner: r.owner(), Detail: common.detail, Status: f.status.word(),
		StartedAt: f.startedAt.time(), FinishedAt: f.finishedAt.time(),
		OutputLimitBytes: f.OutputLimitBytes, OutputBytes: f.OutputBytes, DroppedBytes: f.DroppedBytes,
		Reported: f.Reported, Foreground: f.Foreground,
	}
	if common.result != "" {
		s.Result = json.RawMessage(common.result)
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

// life knows how long a Service has been there, whatever the clock says.
type life struct{ begun time.Time }

// age is how long ago a moment was by the clock, but never longer than it can be: what
// is kept must not be lost to a clock that jumps ahead.
func (l life) age(m moment) time.Duration { return l.ageAt(momentOf(now()), time.Since(l.begun), m) }

func (l life) ageAt(clock moment, alive time.Duration, m moment) time.Duration {
	before := time.Duration(momentOf(l.begun) - m)
	return min(time.Duration(clock-m), alive+max(0, before))
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
