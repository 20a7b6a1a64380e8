//go:build unix && !linux

package proc

import (
	"errors"
	"sync/atomic"
	"syscall"
)

// group is the net that knows the leader's process group.
type group struct {
	pgid   int
	listed entries
}

func newGroup(_ *Host, pgid, _ int, _ *atomic.Bool) *group { return &group{pgid: pgid} }

func (g *group) release() {}

func (g *group) empty() bool { return errors.Is(syscall.Kill(-g.pgid, 0), syscall.ESRCH) }

// members gives the group as one.
func (g *group) members() ([]Member, error) {
	if g.empty() {
		return nil, nil
	}
	return []Member{{PID: g.pgid, group: g.pgid}}, nil
}

func (g *group) signal(sig syscall.Signal, _ []Member) { _ = syscall.Kill(-g.pgid, sig) }

// Command is not known here.
func (Member) Command(int) string { return "" }
