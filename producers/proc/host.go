package proc

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
)

// Config is what a [Host] needs.
type Config struct {
	// Logger hears of processes that can't be found or signalled; nil discards.
	Logger *slog.Logger
}

// Host starts process trees on this machine and sees what runs on it. It is safe
// for concurrent use; make one per program.
type Host struct {
	logger *slog.Logger
	null   *os.File
	// hurried is closed by Hurry.
	hurried chan struct{}
	hurry   sync.Once
	clean   hygiene
	procs   census
	exits   watch
}

// NewHost prepares clean children: signals that this program inherited as ignored
// are handled (and dropped) from now on, since only then do children get the
// default again, and inherited descriptors above 2 are closed on exec. It starts one
// goroutine, which Close ends.
func NewHost(config Config) (*Host, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", os.DevNull, err)
	}
	host := &Host{logger: config.Logger, null: null, hurried: make(chan struct{})}
	if host.logger == nil {
		host.logger = slog.New(slog.DiscardHandler)
	}
	if err := host.exits.init(); err != nil {
		return nil, errors.Join(err, null.Close())
	}
	host.procs.init()
	host.clean.init()
	return host, nil
}

// Null is /dev/null, open for reading: a child's empty standard input.
func (h *Host) Null() uintptr { return h.null.Fd() }

// Hurry ends the grace of every stop that is under way or still to come: SIGKILL
// follows SIGTERM at once. It does not block and is idempotent.
func (h *Host) Hurry() { h.hurry.Do(func() { close(h.hurried) }) }

// Close gives back what NewHost took. Processes are not touched, but must have been
// reaped.
func (h *Host) Close() error {
	h.exits.close()
	h.clean.close()
	return h.null.Close()
}
