package main

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/time/rate"
)

// tracingPatience bounds the last delivery of spans: a collector that does not answer
// holds up no shutdown.
const tracingPatience = 2 * time.Second

// tracing takes spans and delivers them. A nil one, which is the usual, does nothing.
type tracing struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
}

// openTracing begins to trace if the standard variables (OTEL_*) ask for it. What it
// can't do is no reason not to start: such variables are often set for a whole machine.
func openTracing(ctx context.Context, cfg *Config, log *slog.Logger) *tracing {
	wanted, why := wantsTraces(cfg)
	if !wanted {
		if why != "" {
			log.Warn("no traces are taken", keyReason, why)
		}
		return nil
	}
	otel.SetLogger(logr.FromSlogHandler(sdkLog{log.Handler()}))
	otel.SetErrorHandler(complaints(log))
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		log.Warn("no traces are taken", keyError, err)
		return nil
	}
	// Later ones win: the name may be another one, by OTEL_SERVICE_NAME. What started the
	// process and on which machine is not told.
	about, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "afoot"), attribute.String("service.version", buildVersion().Version)),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		log.Warn("the description of this service in traces is not whole", keyError, err)
	}
	provider := sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(about))
	log.Info("traces are taken")
	return &tracing{provider: provider, tracer: provider.Tracer("afoot")}
}

// wantsTraces reads whether traces are to be delivered by OTLP, and why not although
// they seem to be wanted. Where to is the exporter's to read.
func wantsTraces(cfg *Config) (wanted bool, why string) {
	get := func(names ...string) string {
		for _, name := range names {
			if value, _ := cfg.lookup(name); value != "" {
				return value
			}
		}
		return ""
	}
	exporters := strings.Split(get("OTEL_TRACES_EXPORTER"), ",")
	named := slices.Contains(exporters, "otlp")
	placed := get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT") != ""
	switch {
	case strings.EqualFold(get("OTEL_SDK_DISABLED"), "true"), !named && !placed:
		return false, ""
	case !named && exporters[0] != "":
		return false, "" // to somewhere else, or nowhere
	}
	switch protocol := get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"); protocol {
	case "", "http/protobuf", "http/json":
		return true, ""
	default:
		return false, fmt.Sprintf("the protocol %q is none of http/protobuf and http/json (OTEL_EXPORTER_OTLP_PROTOCOL)", protocol)
	}
}

// complaints logs why spans are not delivered, at most once a minute.
func complaints(log *slog.Logger) otel.ErrorHandlerFunc {
	now := rate.Sometimes{First: 1, Interval: time.Minute}
	return func(err error) {
		now.Do(func() { log.Warn("traces are not delivered", keyError, err) })
	}
}

// of gives the tracer; nil where nothing is traced.
func (t *tracing) of() trace.Tracer {
	if t == nil {
		return nil
	}
	return t.tracer
}

// close delivers what there is, if that can be done in a moment.
func (t *tracing) close(log *slog.Logger) {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), tracingPatience)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		log.Warn("the last traces were not delivered", keyError, err)
	}
}
