package registry

import (
	"fmt"
	"strings"
	"time"
)

// DetailShutdown is the detail of a task that the daemon's own end stopped.
const DetailShutdown = "daemon shut down"

// DetailLost is the detail of a task that was live when the daemon died.
const DetailLost = "daemon ended while the task ran"

// Stopped is the snapshot after a producer accepted a cancellation. It reports
// false, and changes nothing, when the task was not running.
func (s Snapshot) Stopped() (Snapshot, bool) {
	if s.Status != StatusRunning {
		return s, false
	}
	s.Status = StatusStopping
	return s, true
}

// MarkedReported is the snapshot after its end was delivered, or promised, by
// another way than a notice. It reports false when that was so already.
func (s Snapshot) MarkedReported() (Snapshot, bool) {
	if s.Reported {
		return s, false
	}
	s.Reported = true
	return s, true
}

// Settled is the snapshot after its terminal outcome, which that of a foreground task
// is reported with. The first outcome wins: it reports false, and changes nothing, when
// the task was terminal already.
func (s Snapshot) Settled(o Outcome, at time.Time) (Snapshot, bool) {
	if s.Status.Terminal() {
		return s, false
	}
	s.Status, s.Detail, s.Result, s.FinishedAt = o.Status, o.Detail, o.Result, at
	s.Reported = s.Reported || s.Foreground
	return s, true
}

// oneLine folds white space, so that a reason can be a detail.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// Kept gives the outcome that counts: o itself, or a failure with the reason
// when the producer broke its promise.
func (o Outcome) Kept(broken error) Outcome {
	if broken != nil {
		return Outcome{Status: StatusFailed, Detail: "producer failed: " + oneLine(broken.Error()), Output: o.Output}
	}
	if !o.Status.Terminal() {
		return Outcome{Status: StatusFailed, Detail: fmt.Sprintf("producer reported the non-terminal status %q", o.Status), Output: o.Output}
	}
	return o
}
