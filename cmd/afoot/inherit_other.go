//go:build !linux

package main

import (
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

// closeInherited does nothing here: the runtime opens its own descriptors
// close-on-exec, and there is no list of the inherited ones.
func closeInherited() error { return nil }

// catchIgnored is the same as on Linux, for the two signals that Go's runtime
// leaves ignored.
func catchIgnored(*slog.Logger) []os.Signal {
	var caught []os.Signal
	for _, sig := range []os.Signal{syscall.SIGHUP, os.Interrupt} {
		if signal.Ignored(sig) {
			caught = append(caught, sig)
		}
	}
	if len(caught) > 0 {
		swallow := make(chan os.Signal, 1)
		signal.Notify(swallow, caught...)
	}
	return caught
}
