package proc

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
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
	// Adopt is what [Host.HandOver] gave before an exec: the host goes on with all that
	// is named there. Net is of no account then.
	Adopt json.RawMessage
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
	nets    nets
	roll    roll
	// trees numbers them.
	trees atomic.Uint64
	moves moves
	runAs *User
	// since is when the host was made, mark what its processes bear; see [Remains].
	since uint64
	mark  mark
}

// NewHost prepares clean children: signals that this program inherited as ignored
// are handled (and dropped) from now on, since only then do children get the
// default again, and inherited descriptors above 2 are closed on exec. A program that
// is not root becomes non-dumpable, so that its children can't read its memory and
// environment. In all nets but "group" the program becomes the parent of orphans below
// it, and they are reaped; who forks beside this package has to hold a pidfd of each
// child until it was waited for, as os/exec does. It starts goroutines, which
// Close ends.
func NewHost(config Config) (*Host, error) {
	if config.RunAs != nil && os.Geteuid() != 0 {
		return nil, errors.New("only root can run processes as another user")
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", os.DevNull, err)
	}
	host := &Host{logger: config.Logger, null: null, hurried: make(chan struct{}), runAs: config.RunAs, since: Ticks()}
	if host.logger == nil {
		host.logger = slog.New(slog.DiscardHandler)
	}
	if err := host.exits.init(); err != nil {
		return nil, errors.Join(err, null.Close())
	}
	host.procs.init()
	host.clean.init()
	if config.Adopt != nil {
		if err := host.adopt(config.Adopt); err != nil {
			return nil, errors.Join(err, host.Close())
		}
		return host, nil
	}
	if err := host.roll.open(nil); err != nil {
		host.logger.Info("what is started is not listed for who may have to end it", "error", err.Error())
	}
	if err := host.nets.init(host, config.Net); err != nil {
		return nil, errors.Join(err, host.Close())
	}
	if host.Net() != netCgroup {
		host.mark = newMark()
	}
	host.logger.Info("net chosen", "net", host.Net(), "reason", host.NetReason())
	return host, nil
}

// Net names the net that is in use.
func (h *Host) Net() string { return h.nets.name }

// NetReason says in words why a better net is not in use; "" for the best.
func (h *Host) NetReason() string { return h.nets.reason }

// Null is /dev/null, open for reading: a child's empty standard input.
func (h *Host) Null() uintptr { return h.null.Fd() }

// Hurry ends the grace of every stop that is under way or still to come: SIGKILL
// follows SIGTERM at once. It does not block and is idempotent.
func (h *Host) Hurry() { h.hurry.Do(func() { close(h.hurried) }) }

// Close gives back what NewHost took. Processes must have been reaped; none is
// touched but orphans of which nobody can tell whose they are: they get SIGTERM, and
// SIGKILL a second later. In all it takes a little more than two seconds at most.
func (h *Host) Close() error {
	err := h.nets.close()
	h.exits.close()
	h.clean.close()
	h.roll.close()
	return errors.Join(err, h.null.Close())
}
