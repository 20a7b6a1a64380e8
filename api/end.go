package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"afoot/registry"
)

// Keys of log lines.
const (
	keyRequest  = "request"
	keyTask     = "task"
	keyError    = "error"
	keyCode     = "code"
	keyMethod   = "method"
	keyPath     = "path"
	keyStatus   = "status"
	keyBytes    = "bytes"
	keyDuration = "duration"
	keySession  = "session"
	keyAgent    = "agent"
	keyTrace    = "trace"
	keyAborted  = "aborted"
)

// end is deferred around a request: it contains what the request panicked with,
// and writes the one line about it.
func (c *call) end(r *http.Request, panicked any) {
	abort := panicked == http.ErrAbortHandler //nolint:errorlint // net/http compares it so
	if panicked != nil && !abort {
		abort = !c.failed(r, fmt.Errorf("panic: %v\n%s", panicked, debug.Stack()))
	}
	if c.unread { // the server wants to see its end, but need not wait for that
		_ = c.control.SetReadDeadline(c.started)
	}
	c.account(r, abort)
	c.endSpan(abort)
	if abort {
		panic(http.ErrAbortHandler)
	}
}

// account logs the request, at its end: refusals at info, everything else at debug.
// A session is told by a hash of its name.
func (c *call) account(r *http.Request, aborted bool) {
	level := slog.LevelDebug
	if c.status >= http.StatusBadRequest {
		level = slog.LevelInfo
	}
	log := c.api.log
	if !log.Enabled(context.Background(), level) {
		return
	}
	attrs := make([]slog.Attr, 0, 12)
	attrs = append(attrs,
		slog.String(keyRequest, c.id),
		slog.String(keyMethod, r.Method),
		slog.String(keyPath, r.URL.Path),
		slog.Int(keyStatus, c.status),
		slog.String(keyCode, c.outcome()),
		slog.Int64(keyBytes, c.bytes),
		slog.Duration(keyDuration, time.Since(c.started)),
	)
	add := func(key, value string) {
		if value != "" {
			attrs = append(attrs, slog.String(key, value))
		}
	}
	add(keyTask, c.taskID())
	add(keySession, hashed(c.principal.Session))
	add(keyAgent, c.caller.Agent)
	add(keyTrace, c.traceID())
	if aborted {
		attrs = append(attrs, slog.Bool(keyAborted, true))
	}
	log.LogAttrs(context.Background(), level, "request", attrs...)
}

// outcome is the code of a refusal, else the status.
func (c *call) outcome() string {
	if c.code != "" {
		return string(c.code)
	}
	return strconv.Itoa(c.status)
}

// hashed stands for the name of a session where it must not be told; "" for none.
func hashed(session string) string {
	if session == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(session))
	return hex.EncodeToString(sum[:6])
}

// fail answers an error. If that cannot be done any more, the connection is
// aborted, so that the caller sees that its answer is not whole.
func (c *call) fail(r *http.Request, err error) {
	if errors.Is(err, http.ErrAbortHandler) || !c.failed(r, err) {
		panic(http.ErrAbortHandler)
	}
}

// failed reports whether err could be answered.
func (c *call) failed(r *http.Request, err error) bool {
	if r.Context().Err() != nil && errors.Is(err, r.Context().Err()) {
		return false // the caller is gone: nobody to tell
	}
	p := problemOf(err)
	c.logCause(p, err)
	if c.status != 0 {
		return false
	}
	if p.code == registry.CodeUnavailable && c.api.isLeaving() {
		p.detail, p.retryAfter = "The daemon is being replaced; ask again at once.", 0
		c.Header().Set("Retry-After", "0")
	}
	c.code = p.code
	c.api.metrics.refused(p.code)
	p.write(c, r)
	return true
}

// logCause keeps what the caller is not told.
func (c *call) logCause(p problem, err error) {
	level := slog.LevelInfo
	switch {
	case p.status == http.StatusInternalServerError:
		level = slog.LevelError
	case p.cause == nil:
		return
	case p.status > http.StatusInternalServerError:
		level = slog.LevelWarn
	}
	c.api.log.LogAttrs(context.Background(), level, "request failed",
		slog.String(keyRequest, c.id), slog.String(keyCode, string(p.code)), slog.Any(keyError, err))
}
