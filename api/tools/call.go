package tools

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"afoot/registry"
)

// Errors of [Set.Call] that its transport words. Every other error is a
// [registry.Error] about the acting agent or of [registry.CodeForbidden], or one that
// nobody foresaw, to be logged.
var (
	// ErrUnknown means that there is no tool of that name.
	ErrUnknown = errors.New("no such tool")
	// ErrExpired means that the caller's right ended while the call was waiting.
	ErrExpired = errors.New("the call outlived the right to it")
)

// Call is one call of a tool.
type Call struct {
	Caller registry.Caller
	Name   string
	// Arguments is a JSON object; empty stands for one without members.
	Arguments json.RawMessage
	// Writes says that the caller may do more than look.
	Writes bool
	// Explicit holds what was read until [registry.Tasks.Ack].
	Explicit bool
	// Until ends the caller's right to wait; the zero time never does.
	Until time.Time
	// LogAddress says where the whole output of a task can be had; nil names the path
	// of the HTTP interface.
	LogAddress func(registry.ID) string
}

// Answer is what a tool answers. Its text is within all limits.
type Answer struct {
	Text string
	// IsError says that the tool failed, and the text why.
	IsError bool
	// Value is the typed result by the tool's output schema, ready for [json.Marshal]:
	// [Output], [List], [Kill] or [Bash]. Nil with IsError.
	Value any
	// ID is the task that the answer is about; empty for none.
	ID registry.ID
	// Clamped is the bound that was used instead of a larger one that was asked for;
	// else 0.
	Clamped time.Duration
	// Delivery is the read that the answer carries; nil for none.
	Delivery *registry.Delivery
}

// Confirm says that the answer was written while its caller was still there. It and
// Abandon are for one goroutine; the first of them counts.
func (a *Answer) Confirm() error {
	if a.Delivery == nil {
		return nil
	}
	return a.Delivery.Confirm()
}

// Abandon says that the answer did not reach its caller: what it carries stays unread.
func (a *Answer) Abandon() {
	if a.Delivery != nil {
		a.Delivery.Abandon()
	}
}

// Call makes one call and blocks as long as the tool does. What the caller can set
// right, or has to know, is an [Answer] with IsError; see [ErrUnknown] for the rest.
// The caller must end each answer by Confirm or Abandon.
//
// A call whose ctx has ended starts nothing. A foreground command is stopped if ctx
// or the caller's right ends before the answer; one that was promoted is not.
func (s *Set) Call(ctx context.Context, call Call) (*Answer, error) {
	_, _ = ctx, call
	return nil, ErrUnknown
}
