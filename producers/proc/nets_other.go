//go:build unix && !linux

package proc

import (
	"errors"
	"fmt"
)

// nets is the process group alone here.
type nets struct{ name, reason string }

// place is nothing here.
type place struct{}

func (n *nets) init(_ *Host, name string) error {
	n.name, n.reason = netGroup, "this system knows no better one"
	if name != "" && name != netAuto && name != netGroup {
		return fmt.Errorf("the net %q is not known on this system", name)
	}
	return nil
}

func (*nets) close() error { return nil }

func (n *nets) place(spec *Spec) (*place, error) {
	return nil, canLimit(spec.MemoryMaxBytes > 0, spec.PidsMax > 0)
}

func (*nets) abandon(*place) {}

func (*nets) empty(trees []*Tree) []bool { return each(trees) }

func (*nets) fork(_ *place, fork func() (int, error)) (int, error) { return fork() }

func (*nets) cast(_ *place, g *group) net { return g }

func netsFault(error) bool { return false }

// CanLimit says, in words for whoever asked for them, why memory or a number of
// processes can't be limited here; nil if they can.
func (*Host) CanLimit(memory, pids bool) error { return canLimit(memory, pids) }

func canLimit(memory, pids bool) error {
	if memory || pids {
		return errors.New("this system has no control groups, so a task can't be limited")
	}
	return nil
}
