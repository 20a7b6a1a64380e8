package tools

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"afoot/api/render"
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
	tool, looks := s.tool(call.Name)
	if tool == nil {
		return nil, ErrUnknown
	}
	if !looks && !call.Writes {
		return nil, registry.Errorf(registry.CodeForbidden, "The scope tasks:read looks only; the tool %s needs tasks:write.", call.Name)
	}
	// The limit is looked up first, for a task may be gone afterwards, and applied last,
	// to whatever there is to say.
	limit := s.limitAbout(ctx, call)
	answer, err := s.answer(ctx, call, tool)
	if err != nil {
		return nil, err
	}
	answer.Text = render.Fit(answer.Text, limit)
	return answer, nil
}

// tool finds a tool by its name.
func (s *Set) tool(name string) (tool func(context.Context, Call) (*Answer, error), looks bool) {
	switch name {
	case NameBash:
		return s.bash, false
	case NameOutput:
		return s.output, false
	case NameList:
		return s.list, true
	case NameKill:
		return s.kill, false
	default:
		return nil, false
	}
}

// answer calls a tool and words what went wrong.
func (s *Set) answer(ctx context.Context, call Call, tool func(context.Context, Call) (*Answer, error)) (*Answer, error) {
	if closed(ctx.Done()) {
		return failure("The call was cancelled before it began: nothing was started, read or stopped."), nil
	}
	answer, err := tool(ctx, call)
	if err == nil {
		return answer, nil
	}
	if sentence, tell := trouble(err); tell {
		return failure(sentence), nil
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return failure("The call was cancelled: nothing was started, read or stopped."), nil
	}
	return nil, err
}

// failure is the answer of a tool that failed.
func failure(text string) *Answer { return &Answer{Text: text, IsError: true} }
