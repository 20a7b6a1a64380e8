//go:build unix && !linux

package proc

import (
	"errors"
	"sync/atomic"
	"syscall"
)

// group is the net that knows the leader's process group.
type group struct {
	host   *Host
	pgid   int
	listed entries
	// warned says that the log was told that nobody in it can be signalled.
	warned atomic.Bool
}

func newGroup(host *Host, pgid, _ int, _ *atomic.Bool) *group {
	return &group{host: host, pgid: pgid}
}

func (g *group) release() {}

func (g *group) empty() bool { return errors.Is(syscall.Kill(-g.pgid, 0), syscall.ESRCH) }

// members gives the group as one.
func (g *group) members() ([]Member, error) {
	if g.empty() {
		return nil, nil
	}
	return []Member{{PID: g.pgid, group: g.pgid}}, nil
}

func (g *group) signal(sig syscall.Signal, _ []Member) {
	if err := syscall.Kill(-g.pgid, sig); errors.Is(err, syscall.EPERM) && !g.warned.Swap(true) {
		g.host.logger.Warn("process can't be signalled", "pid", g.pgid, "error", err.Error())
	}
}

// Name is not known here.
func (Member) Name() string { return "" }

// Command is not known here.
func (Member) Command(int) string { return "" }
