package main

import (
	"io"
	"log/slog"
)

// keySignal is the key of the signal in log lines.
const keySignal = "signal"

// newLogger writes to standard error as the configuration says.
// The level may change later.
func newLogger(cfg *Config, out io.Writer, level *slog.LevelVar) *slog.Logger {
	level.Set(cfg.LogLevel)
	options := &slog.HandlerOptions{Level: level}
	if cfg.LogFormat == LogJSON {
		return slog.New(slog.NewJSONHandler(out, options))
	}
	return slog.New(slog.NewTextHandler(out, options))
}
