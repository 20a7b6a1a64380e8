package api

import (
	"errors"
	"net/http"
	"time"

	"afoot/auth"
	"afoot/registry"
	"afoot/sse"
)

// The codes that only HTTP can cause.
const (
	CodeUnauthenticated     registry.Code = "unauthenticated"
	CodeForeignHost         registry.Code = "foreign_host"
	CodeForeignOrigin       registry.Code = "foreign_origin"
	CodeNotFound            registry.Code = "not_found"
	CodeMethodNotAllowed    registry.Code = "method_not_allowed"
	CodeUnsupportedMedia    registry.Code = "unsupported_media"
	CodeRangeNotSatisfiable registry.Code = "range_not_satisfiable"
)

// statusOf is the one table from code to status and title. A code that it lacks
// is an internal error.
func statusOf(code registry.Code) (status int, title string) {
	switch code {
	case registry.CodeInvalid:
		return http.StatusBadRequest, "The request is wrong"
	case CodeUnauthenticated:
		return http.StatusUnauthorized, "No valid token"
	case registry.CodeForbidden:
		return http.StatusForbidden, "Not allowed"
	case registry.CodeForeignTask:
		return http.StatusForbidden, "The task belongs to another session"
	case registry.CodeForeignAgent:
		return http.StatusForbidden, "The agent belongs to another session"
	case CodeForeignOrigin:
		return http.StatusForbidden, "The origin is not allowed"
	case CodeNotFound:
		return http.StatusNotFound, "There is no such path"
	case registry.CodeUnknownTask:
		return http.StatusNotFound, "There is no such task"
	case registry.CodeUnknownAgent:
		return http.StatusNotFound, "There is no such agent"
	case CodeMethodNotAllowed:
		return http.StatusMethodNotAllowed, "The path does not have this method"
	case registry.CodeConflict:
		return http.StatusConflict, "Not in this state"
	case registry.CodeGone:
		return http.StatusGone, "It was removed"
	case registry.CodeTooLarge:
		return http.StatusRequestEntityTooLarge, "Too large"
	case CodeUnsupportedMedia:
		return http.StatusUnsupportedMediaType, "The body's type is not supported"
	case CodeRangeNotSatisfiable:
		return http.StatusRequestedRangeNotSatisfiable, "The range is not kept"
	case CodeForeignHost:
		return http.StatusMisdirectedRequest, "The host is not this server"
	case registry.CodeIdempotencyMismatch:
		return http.StatusUnprocessableEntity, "The idempotency key belongs to another request"
	case registry.CodeLimitReached:
		return http.StatusTooManyRequests, "A limit is reached"
	case registry.CodeUnavailable:
		return http.StatusServiceUnavailable, "Not available now"
	case registry.CodeInsufficientStorage:
		return http.StatusInsufficientStorage, "No room for output"
	default:
		return http.StatusInternalServerError, "The daemon failed"
	}
}

// internalDetail is all that a caller learns of an error nobody foresaw.
const internalDetail = "The daemon could not answer this request; its log has the cause under the request id."

// problem is an error on its way to the caller.
type problem struct {
	code   registry.Code
	status int
	title  string
	detail string
	limit  string
	// retryAfter and challenge become headers; zero values leave them out.
	retryAfter time.Duration
	challenge  string
	cause      error
}

// problemOf finds out what to tell about err.
func problemOf(err error) problem {
	p := problem{code: registry.CodeInternal, detail: internalDetail, cause: err}
	var (
		domain *registry.Error
		access *auth.Error
		size   *http.MaxBytesError
	)
	switch {
	case errors.As(err, &domain):
		p.code, p.detail, p.cause = domain.Code, domain.Message, domain.Cause
		p.limit, p.retryAfter = domain.Limit, domain.RetryAfter
	case errors.As(err, &access):
		p.code, p.detail, p.cause = codeOfKind(access.Kind), access.Message, access.Cause
		p.retryAfter = access.RetryAfter
		if access.Kind == auth.KindUnauthenticated || access.Kind == auth.KindForbidden {
			p.challenge = access.Challenge()
		}
	case errors.As(err, &size):
		p.code, p.detail, p.cause = registry.CodeTooLarge, "The body is larger than 2 MiB.", nil
	case errors.Is(err, sse.ErrTooManyStreams):
		p.code, p.cause = registry.CodeLimitReached, nil
		p.detail = "This session has as many open event streams as it may have; close one, or let each agent's events arrive by one stream."
		p.limit = "AFOOT_MAX_STREAMS_PER_SESSION"
	case errors.Is(err, sse.ErrClosed):
		p.code, p.cause = registry.CodeUnavailable, nil
		p.detail = "The daemon is shutting down."
	}
	p.status, p.title = statusOf(p.code)
	if p.status == http.StatusInternalServerError {
		p.code, p.detail, p.limit = registry.CodeInternal, internalDetail, ""
	}
	return p
}

func codeOfKind(kind auth.Kind) registry.Code {
	switch kind {
	case auth.KindUnauthenticated:
		return CodeUnauthenticated
	case auth.KindForbidden:
		return registry.CodeForbidden
	case auth.KindRateLimited:
		return registry.CodeLimitReached
	case auth.KindInvalid:
		return registry.CodeInvalid
	case auth.KindForeignHost:
		return CodeForeignHost
	case auth.KindForeignOrigin:
		return CodeForeignOrigin
	default:
		return registry.CodeInternal
	}
}

// invalid is the refusal of wrong input.
func invalid(format string, args ...any) error {
	return registry.Errorf(registry.CodeInvalid, format, args...)
}
