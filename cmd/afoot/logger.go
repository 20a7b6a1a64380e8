package main

import (
	"io"
	"log/slog"
)

// keySignal is the key of the signal in log lines.
const keySignal = "signal"

// newLogger writes to standard error as the configuration says.
func newLogger(cfg *Config, out io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: cfg.LogLevel}
	if cfg.LogFormat == LogJSON {
		return slog.New(slog.NewJSONHandler(out, options))
	}
	return slog.New(slog.NewTextHandler(out, options))
}
