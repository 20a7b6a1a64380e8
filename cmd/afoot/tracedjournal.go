package main

import (
	"context"

	"go.opentelemetry.io/otel/trace"

	"afoot/registry"
)

// rows is the journal with a span around each commit that somebody in a trace waits for.
func (t *tracing) rows(j registry.Journal) registry.Journal {
	if t == nil || j == nil {
		return j
	}
	return tracedJournal{Journal: j, tracer: t.tracer}
}

type tracedJournal struct {
	registry.Journal
	tracer trace.Tracer
}

// Sync implements [registry.Journal]. The commit is one for many: its span is that of
// who waits for it.
func (j tracedJournal) Sync(ctx context.Context, mark registry.Mark) error {
	if mark == 0 || !trace.SpanContextFromContext(ctx).IsValid() {
		return j.Journal.Sync(ctx, mark)
	}
	ctx, span := j.tracer.Start(ctx, "journal commit")
	defer span.End()
	err := j.Journal.Sync(ctx, mark)
	if err != nil {
		failed(span, err)
	}
	return err
}
