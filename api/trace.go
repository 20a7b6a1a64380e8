package api

import (
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// serveTraced is serve with a span around it, below the one that the caller names in
// the header traceparent.
//
// A span lasts as long as its request, waits too: they have a bound. That of a stream
// ends when the stream is open, and nothing of it is held from then on: streams are
// idle for days. Requests that the doors refuse have none.
func (t *route) serveTraced(c *call, r *http.Request) error {
	ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	ctx, c.span = c.api.tracer.Start(ctx, t.spanName(r),
		trace.WithSpanKind(trace.SpanKindServer),
		trace.WithTimestamp(c.started),
		trace.WithAttributes(
			attribute.String("http.request.method", method(r)),
			attribute.String("http.route", t.pattern),
			attribute.String("afoot.request.id", c.id),
		))
	if !t.streams {
		r = r.WithContext(ctx)
	}
	return t.serve(c, r)
}

// spanName has few values: no ids, and no methods that callers invent.
func (t *route) spanName(r *http.Request) string {
	if t.pattern == "" {
		return method(r)
	}
	return method(r) + " " + t.pattern
}

func method(r *http.Request) string {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodDelete, http.MethodOptions, http.MethodPut, http.MethodPatch:
		return r.Method
	default:
		return "_OTHER"
	}
}

// traceID names the trace that the request is in; "" for none.
func (c *call) traceID() string {
	if c.span == nil {
		return ""
	}
	return c.span.SpanContext().TraceID().String()
}

// endSpan ends the span, if there still is one, with what became of the request.
func (c *call) endSpan(aborted bool) {
	span := c.span
	if span == nil {
		return
	}
	c.span = nil
	if !span.IsRecording() {
		span.End()
		return
	}
	if c.status != 0 {
		span.SetAttributes(attribute.Int("http.response.status_code", c.status))
	}
	if id := c.taskID(); id != "" {
		span.SetAttributes(attribute.String("afoot.task.id", id))
	}
	if session := hashed(c.principal.Session); session != "" {
		span.SetAttributes(attribute.String("afoot.session", session))
	}
	if c.code != "" {
		span.SetAttributes(attribute.String("error.type", string(c.code)))
	}
	if aborted {
		span.SetAttributes(attribute.Bool("afoot.aborted", true))
	}
	if c.status >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, "")
	}
	span.End()
}

// opened ends the span of a request whose answer goes on.
func (c *call) opened() {
	if c.span == nil {
		return
	}
	c.span.SetAttributes(attribute.Bool("afoot.stream", true))
	c.endSpan(false)
}

// streamWriter is the server's writer, for streams that bound their own writes. It
// counts what they write, and sees when the stream is open.
func (c *call) streamWriter() http.ResponseWriter { return (*openAnswer)(c) }

// openAnswer is a call without its methods, so that it costs a stream nothing.
type openAnswer call

// WriteHeader begins the stream.
func (s *openAnswer) WriteHeader(status int) {
	s.ResponseWriter.WriteHeader(status)
	(*call)(s).opened()
}

// Write counts what the server took.
func (s *openAnswer) Write(p []byte) (int, error) {
	n, err := s.ResponseWriter.Write(p)
	s.bytes += int64(n)
	return n, err
}

// Unwrap lets [http.ResponseController] reach the server's writer.
func (s *openAnswer) Unwrap() http.ResponseWriter { return s.ResponseWriter }
