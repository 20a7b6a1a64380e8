package api_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"afoot/api"
	"afoot/auth"
	"afoot/registry/inmem"
	"afoot/registry/registrytest"
	"afoot/sse"
)

const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// traced is a world whose spans can be looked at.
type traced struct {
	*world
	spans *tracetest.SpanRecorder
}

func newTraced(t *testing.T) traced {
	t.Helper()
	spans := tracetest.NewSpanRecorder()
	provider := sdk.NewTracerProvider(sdk.WithSpanProcessor(spans))
	return traced{newWorld(t, func(s *setup) { s.api.Tracer = provider.Tracer("afoot") }), spans}
}

// span waits for the span of that name, and takes care that it is the only one.
func (w traced) span(name string) sdk.ReadOnlySpan {
	w.t.Helper()
	var found []sdk.ReadOnlySpan
	w.eventually(func() bool {
		found = nil
		for _, s := range w.spans.Ended() {
			if s.Name() == name {
				found = append(found, s)
			}
		}
		return len(found) > 0
	}, "span "+name)
	w.is.Len(found, 1)
	return found[0]
}

func attributes(s sdk.ReadOnlySpan) map[string]any {
	all := make(map[string]any)
	for _, kv := range s.Attributes() {
		all[string(kv.Key)] = kv.Value.AsInterface()
	}
	return all
}

func TestTracedRequest(t *testing.T) {
	w := newTraced(t)
	var inside trace.SpanContext
	a := w.call(http.MethodPost, "/tasks", w.body(registrytest.Script{Start: func(ctx ctx, _ *registrytest.Work) error {
		inside = trace.SpanContextFromContext(ctx)
		return nil
	}}), "traceparent", parent).ok(http.StatusCreated)
	s := w.span("POST /tasks")
	w.is.Equal(trace.SpanKindServer, s.SpanKind())
	w.is.Equal("4bf92f3577b34da6a3ce929d0e0e4736", s.SpanContext().TraceID().String())
	w.is.Equal("00f067aa0ba902b7", s.Parent().SpanID().String())
	w.is.True(s.Parent().IsRemote())
	w.is.Equal(s.SpanContext().SpanID(), inside.SpanID(), "what is started knows the span")
	got := attributes(s)
	w.is.Equal(map[string]any{
		"http.request.method": "POST", "http.route": "/tasks", "http.response.status_code": int64(201),
		"afoot.task.id": "bash-1", "afoot.request.id": a.header.Get("X-Request-Id"), "afoot.session": got["afoot.session"],
	}, got)
	w.is.NotContains(got["afoot.session"], "alice")
	w.eventually(func() bool { return strings.Contains(w.log.String(), "trace=4bf92f3577b34da6a3ce929d0e0e4736") }, "logged")
}

func TestTracedRefusals(t *testing.T) {
	w := newTraced(t)
	w.get("/tasks/bash-9/output?offset=0").refused(http.StatusNotFound, "unknown_task")
	s := w.span("GET /tasks/{id}/output")
	w.is.Equal("unknown_task", attributes(s)["error.type"])
	w.is.Equal(codes.Unset, s.Status().Code, "a refusal is no fault of the server")
	w.is.False(s.Parent().IsValid())

	w.call(http.MethodPost, "/tasks", w.body(registrytest.Script{Prepare: func(ctx) error { panic("x") }})).refused(500, "internal")
	w.is.Equal(codes.Error, w.span("POST /tasks").Status().Code)

	w.get("/nothing/here").refused(http.StatusNotFound, "not_found")
	w.span("GET")
	w.get("/tasks", "Host", "evil.example").refused(http.StatusMisdirectedRequest, "foreign_host")
	w.is.Len(w.spans.Started(), 3, "the doors are before")
}

// TestTracedStreams: the span of a stream ends when it is open, not with it.
func TestTracedStreams(t *testing.T) {
	w := newTraced(t)
	work := w.start(registrytest.Script{})
	work.Output.Append("some")
	w.subscribe("")
	s := w.span("GET /events")
	w.is.Equal(true, attributes(s)["afoot.stream"])
	w.is.EqualValues(http.StatusOK, attributes(s)["http.response.status_code"])
	for path, name := range map[string]string{
		"/tasks/bash-1/events":          "GET /tasks/{id}/events",
		"/tasks/bash-1/log?follow=true": "GET /tasks/{id}/log",
	} {
		res, err := w.server.Client().Do(w.request(t.Context(), http.MethodGet, path, ""))
		w.is.NoError(err)
		t.Cleanup(func() { _ = res.Body.Close() })
		w.is.Equal(true, attributes(w.span(name))["afoot.stream"], path)
	}
	w.is.Len(w.spans.Started(), 4)
	work.Complete("exit code: 0")
}

func TestTracedStreamThatIsRefused(t *testing.T) {
	w := newTraced(t)
	w.get("/tasks/bash-9/events").refused(http.StatusNotFound, "unknown_task")
	got := attributes(w.span("GET /tasks/{id}/events"))
	w.is.Equal("unknown_task", got["error.type"])
	w.is.NotContains(got, "afoot.stream")
}

// TestUntraced: without a tracer nobody looks at the header.
func TestUntraced(t *testing.T) {
	w := newWorld(t)
	var inside trace.SpanContext
	w.call(http.MethodPost, "/tasks", w.body(registrytest.Script{Start: func(ctx ctx, _ *registrytest.Work) error {
		inside = trace.SpanContextFromContext(ctx)
		return nil
	}}), "traceparent", parent).ok(http.StatusCreated)
	w.is.False(inside.IsValid())
	w.eventually(func() bool { return strings.Contains(w.log.String(), "path=/tasks") }, "logged")
	w.is.NotContains(w.log.String(), "trace=")
}

// BenchmarkRequest is one call of a read that finds nothing to do, without and with
// traces. Metrics are allocations.
func BenchmarkRequest(b *testing.B) {
	for name, tracer := range map[string]trace.Tracer{"untraced": nil, "traced": sdk.NewTracerProvider().Tracer("afoot")} {
		b.Run(name, func(b *testing.B) {
			handler := idle(b, tracer)
			r := httptest.NewRequest(http.MethodGet, "http://localhost/healthz", nil)
			r.Header.Set("traceparent", parent)
			b.ReportAllocs()
			for b.Loop() {
				handler.ServeHTTP(httptest.NewRecorder(), r)
			}
		})
	}
}

// idle is an API that nobody works with.
func idle(b *testing.B, tracer trace.Tracer) http.Handler {
	secret := filepath.Join(b.TempDir(), "secret")
	_, err := auth.EnsureSecret(secret)
	require.NoError(b, err)
	authority, err := auth.New(auth.Config{SecretFile: secret})
	require.NoError(b, err)
	hub := sse.NewHub(sse.Config{})
	a, err := api.New(api.Config{Service: inmem.New(inmem.Config{}), Authority: authority, Hub: hub, Tracer: tracer})
	require.NoError(b, err)
	b.Cleanup(func() {
		a.Close()
		require.NoError(b, hub.Close(context.Background(), sse.ByeShutdown))
		require.NoError(b, authority.Close())
	})
	return a.Handler()
}
