package output

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// DefaultTotalBytes bounds the kept bytes of all logs when [Config.TotalBytes] is
// zero.
const DefaultTotalBytes = 10 << 30

// ErrNoRoom means that the logs of the store together keep as much as they may.
var ErrNoRoom = errors.New("the captured output of all tasks has reached its bound, AFOOT_OUTPUT_TOTAL_BYTES")

// budget counts the kept bytes of all logs.
type budget struct {
	bound int64
	kept  atomic.Int64
	// asked is the step of the count beyond the bound at which full was last
	// called; 0 within the bound.
	asked atomic.Int64
	full  func()
	calls sync.WaitGroup
}

// Total counts the kept bytes of all logs that were not removed.
func (s *Store) Total() int64 { return s.budget.kept.Load() }

// Room says whether a log may be started: [ErrNoRoom] if too much is kept.
func (s *Store) Room() error {
	if kept := s.Total(); kept >= s.budget.bound {
		return fmt.Errorf("%w: %d bytes are kept of %d", ErrNoRoom, kept, s.budget.bound)
	}
	return nil
}

// count adds to the kept bytes. Beyond the bound, full is called at each further
// step up: what it could not remove the first time may be removable now.
func (s *Store) count(n int64) {
	b := &s.budget
	kept := b.kept.Add(n)
	if b.full == nil {
		return
	}
	if kept < b.bound {
		if n < 0 {
			b.asked.Store(0)
		}
		return
	}
	step := (kept-b.bound)/(b.bound/64+1) + 1
	if last := b.asked.Load(); n > 0 && step > last && b.asked.CompareAndSwap(last, step) {
		b.calls.Go(b.full)
	}
}
