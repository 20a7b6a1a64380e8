package main

import (
	"io"
	"log/slog"
)

// Keys of log lines.
const (
	keyError  = "error"
	keyReason = "reason"
	keySignal = "signal"
	keyCount  = "count"
)

// newLogger writes to out as the configuration says. The level may change later.
func newLogger(cfg *Config, out io.Writer, level *slog.LevelVar) *slog.Logger {
	level.Set(cfg.LogLevel)
	options := &slog.HandlerOptions{Level: level}
	if cfg.LogFormat == LogJSON {
		return slog.New(slog.NewJSONHandler(out, options))
	}
	return slog.New(slog.NewTextHandler(out, options))
}
