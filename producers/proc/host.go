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
	// Net is how the processes of a tree are found: "auto" (or "": the best that works
	// here), "cgroup", "subreaper" or "group". A named one that does not work is an
	// error.
	Net string
	// RunAs is whom processes run as; nil: this program's own user. Only root may.
	RunAs *User
}

// User is a user and a group by number.
type User struct{ UID, GID uint32 }

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

// Net names the net that is in use.
func (h *Host) Net() string { return "group" }

// NetReason says in words why a better net is not in use; "" for the best.
func (h *Host) NetReason() string { return "" }

// CanLimit says, in words for whoever asked for them, why memory or a number of
// processes can't be limited here; nil if they can.
func (h *Host) CanLimit(memory, pids bool) error {
	if memory || pids {
		return errors.New("limits need a control group for each task, and none can be made here")
	}
	return nil
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
