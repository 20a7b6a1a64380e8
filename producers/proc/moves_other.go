//go:build unix && !linux

package proc

import (
	"encoding/json"
	"errors"
)

// moves are nothing here: the thread that waits for a process does not outlive an exec,
// nor does the status that it may just have taken.
type moves struct{}

var errNoMoves = errors.New("processes can't be handed over on this system")

// HandOver does nothing here.
func (p *Process) HandOver() (key uint64) { return p.tree.key }

// TakeBack does nothing here.
func (*Process) TakeBack() {}

// HandOver does nothing here.
func (t *Tree) HandOver() (key uint64) { return t.key }

// TakeBack does nothing here.
func (*Tree) TakeBack() {}

// Adopt fails on this system.
func (*Host) Adopt(uint64, func()) (*Process, error) { return nil, errNoMoves }

// AdoptTree fails on this system.
func (*Host) AdoptTree(uint64) (*Tree, error) { return nil, errNoMoves }

// HandOver fails on this system.
func (*Host) HandOver() (json.RawMessage, error) { return nil, errNoMoves }

// TakeBack does nothing here.
func (*Host) TakeBack() {}

func (*Host) adopt(json.RawMessage) error { return errNoMoves }
