//go:build unix && !linux

package proc

import "context"

// Kin is one process that is known to be of a host.
type Kin struct {
	PID    int
	Start  uint64
	Leader bool
}

// EndRemains finds nobody on this system, which does not tell when a process was
// started.
func EndRemains(context.Context, Remains, []Kin, uint64) (ended int, err error) { return 0, nil }

// Ticks is not known here.
func Ticks() uint64 { return 0 }

type mark string

func newMark() mark { return "" }

func (mark) in(env []string) []string { return env }

// Remains names nothing on this system.
func (h *Host) Remains() Remains { return Remains{Since: h.since, Mark: string(h.mark)} }

// Stale is a control group that a dead host left; there is none on this system.
type Stale struct {
	Dir       string
	Processes int
}

// StaleGroups finds none.
func StaleGroups() ([]Stale, error) { return nil, nil }

// End ends nobody.
func (Stale) End(context.Context) (ended int, err error) { return 0, nil }

// CountRemains finds nobody.
func CountRemains(Remains) (count int, err error) { return 0, nil }
