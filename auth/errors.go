package auth

import (
	"fmt"
	"strings"
	"time"
)

// Kind is why a call was refused. The HTTP layer maps kinds to codes and
// statuses.
type Kind string

// The kinds of refusal.
const (
	// KindUnauthenticated is a missing, bad or expired credential.
	KindUnauthenticated Kind = "unauthenticated"
	// KindForbidden is a good credential that doesn't reach far enough.
	KindForbidden Kind = "forbidden"
	// KindRateLimited is too much at once; RetryAfter says when it helps to ask again.
	KindRateLimited Kind = "rate_limited"
	// KindInvalid is a request that could never be granted, whoever asks.
	KindInvalid Kind = "invalid"
	// KindForeignHost is a Host that isn't this server's.
	KindForeignHost Kind = "foreign_host"
	// KindForeignOrigin is an Origin that isn't this server's and not listed.
	KindForeignOrigin Kind = "foreign_origin"
)

// Error is a refusal. Message is one sentence for the caller, in ASCII, without
// any part of a token, code or secret. Cause is for the log; it never holds
// secrets either.
type Error struct {
	Kind    Kind
	Message string
	// RetryAfter is set with KindRateLimited; zero otherwise.
	RetryAfter time.Duration
	Cause      error

	// absent marks a request without any credential: RFC 6750 then wants a
	// challenge without an error code.
	absent bool
	// scope is what a KindForbidden error found missing, if that is a scope.
	scope Scopes
}

// Error gives the message, followed by the cause for logs.
func (e *Error) Error() string {
	if e.Cause != nil {
		return fmt.Sprintf("%s: %s: %v", e.Kind, e.Message, e.Cause)
	}
	return fmt.Sprintf("%s: %s", e.Kind, e.Message)
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Challenge is the value of WWW-Authenticate for this refusal (RFC 6750).
func (e *Error) Challenge() string {
	const scheme = `Bearer realm="afoot"`
	switch {
	case e.absent:
		return scheme
	case e.Kind == KindForbidden && e.scope != 0:
		return fmt.Sprintf(`%s, error="insufficient_scope", error_description="%s", scope="%s"`, scheme, quotable(e.Message), e.scope)
	case e.Kind == KindUnauthenticated:
		return fmt.Sprintf(`%s, error="invalid_token", error_description="%s"`, scheme, quotable(e.Message))
	default:
		return scheme
	}
}

func refuse(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// unauthenticated is the refusal of a credential.
func unauthenticated(format string, args ...any) *Error {
	return refuse(KindUnauthenticated, format, args...)
}

// quotable keeps what RFC 6750 allows in error_description.
func quotable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || r == '"' || r == '\\' {
			return '\''
		}
		return r
	}, s)
}
