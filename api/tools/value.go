package tools

import (
	"encoding/json"
	"time"

	"afoot/registry"
)

// Task is a task as tools show it: without owner and notice.
type Task struct {
	ID               registry.ID     `json:"id"`
	Kind             registry.Kind   `json:"kind"`
	Label            string          `json:"label" jsonschema:"one line for people and models"`
	OutputLimitBytes int64           `json:"outputLimitBytes,omitzero" jsonschema:"longest text about the task, in UTF-8 bytes"`
	Status           registry.Status `json:"status"`
	Detail           string          `json:"detail,omitzero" jsonschema:"one line about the state, such as exit code: 0"`
	Result           json.RawMessage `json:"result,omitempty" jsonschema:"facts about the end, by the kind of task"`
	Foreground       bool            `json:"foreground,omitzero" jsonschema:"the call that started it waits for it"`
	StartedAt        int64           `json:"startedAt" jsonschema:"epoch milliseconds"`
	FinishedAt       int64           `json:"finishedAt,omitzero" jsonschema:"epoch milliseconds; absent until the end"`
	OutputBytes      int64           `json:"outputBytes" jsonschema:"bytes that were printed"`
	DroppedBytes     int64           `json:"droppedBytes" jsonschema:"bytes of them that are no longer kept"`
}

// Output is the value of task_output.
type Output struct {
	Text         string  `json:"text" jsonschema:"what was printed since the last read, its tail if that is long"`
	Task         Task    `json:"task"`
	Offset       int64   `json:"offset" jsonschema:"where text begins in the output, in bytes"`
	NextOffset   int64   `json:"nextOffset" jsonschema:"where the next read begins"`
	EOF          bool    `json:"eof" jsonschema:"nothing will follow"`
	DroppedBytes int64   `json:"droppedBytes" jsonschema:"bytes that are no longer kept"`
	Stderr       *Stream `json:"stderr,omitzero" jsonschema:"standard error of a task that keeps it apart"`
	TimeoutMs    int64   `json:"timeoutMs,omitzero" jsonschema:"the bound that was used in the place of a larger one"`
}

// Stream is a piece of a second stream.
type Stream struct {
	Text         string `json:"text"`
	Offset       int64  `json:"offset"`
	NextOffset   int64  `json:"nextOffset"`
	EOF          bool   `json:"eof"`
	DroppedBytes int64  `json:"droppedBytes"`
}

// List is the value of task_list.
type List struct {
	Tasks []Task `json:"tasks" jsonschema:"in the order of their start"`
}

// Kill is the value of task_kill.
type Kill struct {
	Outcome registry.KillOutcome `json:"outcome"`
	Task    Task                 `json:"task"`
}

// BashKind says where a command is.
type BashKind string

// The kinds of [Bash].
const (
	BashForeground BashKind = "foreground"
	BashBackground BashKind = "background"
)

// Bash is the value of bash: of a command that has ended (foreground), of one that was
// started in the background, or of one that became a background task, which has a
// text too.
type Bash struct {
	Kind         BashKind    `json:"kind" jsonschema:"foreground: the command has ended; background: it goes on as a task"`
	TaskID       registry.ID `json:"taskId,omitzero" jsonschema:"the background task"`
	Task         *Task       `json:"task,omitzero" jsonschema:"the task that ran the command"`
	Text         *string     `json:"text,omitzero" jsonschema:"what was printed, its tail if that is long"`
	Offset       *int64      `json:"offset,omitzero" jsonschema:"where text begins in the output, in bytes"`
	NextOffset   *int64      `json:"nextOffset,omitzero" jsonschema:"where the next read begins"`
	EOF          *bool       `json:"eof,omitzero" jsonschema:"nothing will follow"`
	DroppedBytes *int64      `json:"droppedBytes,omitzero" jsonschema:"bytes that are no longer kept"`
	TimeoutMs    int64       `json:"timeoutMs,omitzero" jsonschema:"the bound that was used in the place of a larger one"`
}

func taskOf(s registry.Snapshot) Task {
	return Task{
		ID:               s.ID,
		Kind:             s.Kind,
		Label:            s.Label,
		OutputLimitBytes: s.OutputLimitBytes,
		Status:           s.Status,
		Detail:           s.Detail,
		Result:           s.Result,
		Foreground:       s.Foreground,
		StartedAt:        s.StartedAt.UnixMilli(),
		FinishedAt:       epoch(s.FinishedAt),
		OutputBytes:      s.OutputBytes,
		DroppedBytes:     s.DroppedBytes,
	}
}

// epoch gives milliseconds, and 0 for the zero time.
func epoch(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// valueOf gives a read as task_output does.
func valueOf(r registry.Read, clamped time.Duration) Output {
	v := Output{
		Text:         r.Text,
		Task:         taskOf(r.Snapshot),
		Offset:       r.Offset,
		NextOffset:   r.NextOffset,
		EOF:          r.EOF,
		DroppedBytes: r.Dropped,
		TimeoutMs:    clamped.Milliseconds(),
	}
	if p := r.Stderr; p != nil {
		v.Stderr = &Stream{Text: p.Text, Offset: p.Offset, NextOffset: p.NextOffset, EOF: p.EOF, DroppedBytes: p.Dropped}
	}
	return v
}
