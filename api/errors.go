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

// row says how one code is answered.
type row struct {
	code   registry.Code
	status int
	title  string
}

// table is the one place that knows which status a code has.
func table() [20]row {
	return [...]row{
		{registry.CodeInvalid, http.StatusBadRequest, "The request is wrong"},
		{CodeUnauthenticated, http.StatusUnauthorized, "No valid token"},
		{registry.CodeForbidden, http.StatusForbidden, "Not allowed"},
		{registry.CodeForeignTask, http.StatusForbidden, "The task belongs to another session"},
		{registry.CodeForeignAgent, http.StatusForbidden, "The agent belongs to another session"},
		{CodeForeignOrigin, http.StatusForbidden, "The origin is not allowed"},
		{CodeNotFound, http.StatusNotFound, "There is no such thing"},
		{registry.CodeUnknownTask, http.StatusNotFound, "There is no such task"},
		{registry.CodeUnknownAgent, http.StatusNotFound, "There is no such agent"},
		{CodeMethodNotAllowed, http.StatusMethodNotAllowed, "The path does not have this method"},
		{registry.CodeConflict, http.StatusConflict, "Not in this state"},
		{registry.CodeGone, http.StatusGone, "It was removed"},
		{registry.CodeTooLarge, http.StatusRequestEntityTooLarge, "Too large"},
		{CodeUnsupportedMedia, http.StatusUnsupportedMediaType, "The body's type is not supported"},
		{CodeRangeNotSatisfiable, http.StatusRequestedRangeNotSatisfiable, "The range is not kept"},
		{CodeForeignHost, http.StatusMisdirectedRequest, "The host is not this server"},
		{registry.CodeIdempotencyMismatch, http.StatusUnprocessableEntity, "The idempotency key belongs to another request"},
		{registry.CodeLimitReached, http.StatusTooManyRequests, "A limit is reached"},
		{registry.CodeUnavailable, http.StatusServiceUnavailable, "Not available now"},
		{registry.CodeInsufficientStorage, http.StatusInsufficientStorage, "No room for output"},
	}
}

// statusOf looks a code up; one that the table lacks is an internal error.
func statusOf(code registry.Code) (status int, title string) {
	for _, r := range table() {
		if r.code == code {
			return r.status, r.title
		}
	}
	return http.StatusInternalServerError, "The daemon failed"
}

// codeOf gives the code that stands first for a status.
func codeOf(status int) registry.Code {
	for _, r := range table() {
		if r.status == status {
			return r.code
		}
	}
	return registry.CodeInternal
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
