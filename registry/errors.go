package registry

import (
	"errors"
	"fmt"
	"time"
)

// Code is the stable name of a refusal or failure. Codes are part of the wire:
// they are never renamed.
type Code string

// The codes of the domain. The HTTP layer adds the ones that only a door or a
// media type can cause.
const (
	CodeInvalid             Code = "invalid"
	CodeForbidden           Code = "forbidden"
	CodeForeignTask         Code = "foreign_task"
	CodeForeignAgent        Code = "foreign_agent"
	CodeUnknownTask         Code = "unknown_task"
	CodeUnknownAgent        Code = "unknown_agent"
	CodeGone                Code = "gone"
	CodeConflict            Code = "conflict"
	CodeTooLarge            Code = "too_large"
	CodeIdempotencyMismatch Code = "idempotency_mismatch"
	CodeLimitReached        Code = "limit_reached"
	CodeUnavailable         Code = "unavailable"
	CodeInsufficientStorage Code = "insufficient_storage"
	CodeInternal            Code = "internal"
)

// Error is the one error type of Afoot. Message is one sentence for the caller;
// Cause is for the log and never leaves the daemon.
type Error struct {
	Code    Code
	Message string
	// Limit is the configuration variable of the limit that was hit, if one was.
	Limit string
	// RetryAfter is set where waiting helps; zero otherwise.
	RetryAfter time.Duration
	Cause      error
}

// Error gives the message, followed by the cause for logs.
func (e *Error) Error() string {
	if e.Cause != nil {
		return fmt.Sprintf("%s: %s: %v", e.Code, e.Message, e.Cause)
	}
	return fmt.Sprintf("%s: %s", e.Code, e.Message)
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Errorf makes an [Error] with a formatted message and no cause.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Wrap makes an [Error] whose cause is logged and not shown.
func Wrap(code Code, cause error, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Cause: cause}
}

// CodeOf gives the code of err, [CodeInternal] for a foreign error and the empty
// code for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return CodeInternal
}
