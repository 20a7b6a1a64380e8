package main

import (
	"context"
	"log/slog"
)

// sdkLog takes the log lines of the tracing SDK. Of what they carry only the error is
// kept: the rest may be the value of a variable, and so a credential. Nothing that is
// wrong with traces is lost work.
type sdkLog struct{ slog.Handler }

// Handle implements [slog.Handler].
func (h sdkLog) Handle(ctx context.Context, r slog.Record) error {
	kept := slog.NewRecord(r.Time, min(r.Level, slog.LevelWarn), "traces: "+r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "err" {
			kept.AddAttrs(slog.Any(keyError, a.Value))
		}
		return true
	})
	return h.Handler.Handle(ctx, kept)
}

// WithAttrs implements [slog.Handler].
func (h sdkLog) WithAttrs([]slog.Attr) slog.Handler { return h }

// WithGroup implements [slog.Handler].
func (h sdkLog) WithGroup(string) slog.Handler { return h }
