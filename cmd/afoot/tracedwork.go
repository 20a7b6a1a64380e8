package main

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"afoot/producers/bash"
	"afoot/registry"
)

// bash is the producer with a span around each start and one around each end.
func (t *tracing) bash(p *bash.Producer) registry.Producer {
	if t == nil {
		return p
	}
	return tracedBash{Producer: p, tracer: t.tracer}
}

// tracedBash is all that the producer is: it also restores and adopts runs, the ends of
// which are then in no trace.
type tracedBash struct {
	*bash.Producer
	tracer trace.Tracer
}

// Prepare implements [registry.Producer].
func (p tracedBash) Prepare(ctx context.Context, spec registry.Spec) (registry.Plan, error) {
	plan, err := p.Producer.Prepare(ctx, spec)
	if err != nil {
		return nil, err
	}
	return tracedPlan{Plan: plan, kind: string(spec.Kind), tracer: p.tracer}, nil
}

var _ registry.Restorer = tracedBash{}

type tracedPlan struct {
	registry.Plan
	kind   string
	tracer trace.Tracer
}

// Start implements [registry.Plan]. The span of the end is a child of that of the start,
// however much later, so that all of a task is in one trace; only their ids are kept
// meanwhile. It lasts from the report of the end until those who wait are released.
func (p tracedPlan) Start(ctx context.Context, launch registry.Launch) (registry.Run, error) {
	task := attribute.String("afoot.task.id", string(launch.ID))
	ctx, span := p.tracer.Start(ctx, "start "+p.kind, trace.WithAttributes(task))
	defer span.End()
	begun, settle := span.SpanContext(), launch.Settle
	launch.Settle = func(o registry.Outcome, broken error) {
		_, span := p.tracer.Start(trace.ContextWithSpanContext(context.Background(), begun), "settle "+p.kind,
			trace.WithAttributes(task, attribute.String("afoot.task.status", string(o.Status))))
		defer span.End()
		if broken != nil {
			span.SetStatus(codes.Error, "")
		}
		settle(o, broken)
	}
	run, err := p.Plan.Start(ctx, launch)
	if err != nil {
		failed(span, err)
	}
	return run, err
}

// failed marks a span. What an error says is for its caller, and for the log.
func failed(span trace.Span, err error) {
	span.SetAttributes(attribute.String("error.type", string(registry.CodeOf(err))))
	span.SetStatus(codes.Error, "")
}

// env hands the trace on to what is started: a program that takes spans itself puts
// them below that of its start. Nil where nothing is traced.
func (t *tracing) env() func(context.Context) []string {
	if t == nil {
		return nil
	}
	return func(ctx context.Context) []string {
		carrier := propagation.MapCarrier{}
		propagation.TraceContext{}.Inject(ctx, carrier)
		var env []string
		if parent := carrier["traceparent"]; parent != "" {
			env = append(env, "TRACEPARENT="+parent)
		}
		if state := carrier["tracestate"]; state != "" {
			env = append(env, "TRACESTATE="+state)
		}
		return env
	}
}
