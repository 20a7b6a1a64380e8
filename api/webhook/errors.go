package webhook

import "errors"

var (
	// ErrTooMany says that the owner has all the webhooks that it may have.
	ErrTooMany = errors.New("webhook: too many webhooks")
	// ErrUnknown says that the owner has no such webhook.
	ErrUnknown = errors.New("webhook: unknown webhook")
	// ErrClosed says that the poster was closed.
	ErrClosed = errors.New("webhook: closed")
)

// InvalidError says what is wrong with a webhook that was to be added. It never shows
// a secret.
type InvalidError struct {
	// Member is url or secret.
	Member string
	// Reason is a sentence without its subject, such as "must be http or https".
	Reason string
}

// Error implements error.
func (e *InvalidError) Error() string { return "webhook: " + e.Member + " " + e.Reason }

// forbiddenError says that something may not be posted to.
type forbiddenError struct{ reason string }

func (e *forbiddenError) Error() string { return e.reason }

// statusError is an answer that is not 2xx.
type statusError struct{ status string }

func (e *statusError) Error() string { return "answered " + e.status }
