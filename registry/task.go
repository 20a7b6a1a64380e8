package registry

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// Kind is a namespace of ids and the name of a producer, such as "bash".
type Kind string

// ID names one task: "<kind>-N", N from one counter per kind, never reused.
// It is guessable on purpose and never becomes a file name.
type ID string

// NewID builds the n-th id of a kind.
func NewID(kind Kind, n uint64) ID {
	return ID(string(kind) + "-" + strconv.FormatUint(n, 10))
}

// Parse splits an id into kind and number. It reports false for everything that
// [NewID] cannot have made: signs, leading zeros, zero, a missing kind.
func (id ID) Parse() (Kind, uint64, bool) {
	i := strings.LastIndexByte(string(id), '-')
	if i <= 0 {
		return "", 0, false
	}
	digits := string(id[i+1:])
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || n == 0 || strconv.FormatUint(n, 10) != digits {
		return "", 0, false
	}
	return Kind(id[:i]), n, true
}

// Status is where a task stands in its life.
type Status string

// The statuses. The last three are terminal.
const (
	StatusRunning   Status = "running"
	StatusStopping  Status = "stopping"
	StatusCompleted Status = "completed"
	StatusKilled    Status = "killed"
	StatusFailed    Status = "failed"
)

// Terminal reports whether the status is an end.
func (s Status) Terminal() bool {
	return s == StatusCompleted || s == StatusKilled || s == StatusFailed
}

// Valid reports whether the status is one of the five.
func (s Status) Valid() bool {
	return s == StatusRunning || s == StatusStopping || s.Terminal()
}

// DefaultAgent is the id of the agent a session acts as when it names none.
const DefaultAgent = "default"

// Owner is the exact identity that a task belongs to: one live agent instance.
// The zero Owner is "nobody": such tasks are open to every caller.
//
// Access compares sessions only; limits, clean-up and notices compare the whole
// value, so a later agent under the same name is somebody else.
type Owner struct {
	Session string
	Agent   string
	// Incarnation tells successive agents of one name apart.
	Incarnation uint64
}

// Unowned reports whether the owner is nobody.
func (o Owner) Unowned() bool { return o == Owner{} }

// Caller is who makes a call, proved elsewhere. The zero Caller is a non-agent
// caller: it sees unowned tasks only, and what it starts is unowned.
type Caller struct {
	Session string
	// Agent is the acting agent's id; empty means the session's [DefaultAgent].
	Agent string
}

// Snapshot is a fresh read-only copy of a task's facts.
type Snapshot struct {
	ID    ID
	Kind  Kind
	Label string
	// OutputLimitBytes bounds each whole model-facing text about the task, in
	// UTF-8 bytes; zero when the task has no such limit.
	OutputLimitBytes int64
	// Owner is the zero Owner for unowned tasks.
	Owner  Owner
	Status Status
	// Detail is one line of producer facts; the registry never reads it.
	Detail string
	// Result is the producer's structured facts as JSON; nil when there are none.
	Result    json.RawMessage
	StartedAt time.Time
	// FinishedAt is the zero time until the task is terminal.
	FinishedAt time.Time
	// Reported says that the terminal state was delivered, or is promised, by
	// another way than a notice.
	Reported bool
	// Foreground says that the call which started the task waits for it: its end is
	// that call's answer and never a notice. See [ReadOptions.Promote].
	Foreground bool
	// OutputBytes counts raw bytes captured so far, dropped ones included, and those of
	// both streams of a split task.
	OutputBytes int64
	// DroppedBytes counts raw bytes gone from the head of the output.
	DroppedBytes int64
}

// Outcome is the terminal result that a producer reports.
type Outcome struct {
	// Status must be terminal; anything else settles the task as failed.
	Status Status
	Detail string
	Result json.RawMessage
	// Output is the final output of a task whose [Run] is no [Stream].
	Output string
}
