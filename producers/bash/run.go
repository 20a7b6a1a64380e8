package bash

import (
	"encoding/json"
	"errors"
	"os"
	"sync"
	"time"

	"afoot/producers/output"
	"afoot/producers/proc"
	"afoot/registry"
)

// patience is how long a process may take to follow its command before it counts
// as left running.
const patience = 50 * time.Millisecond

// run is one command, from its fork until its record is removed.
type run struct {
	producer *Producer
	log      *output.Log
	// request is empty when it is kept aside of the log.
	request string

	mu sync.Mutex
	// live is nil once the end was reported.
	live *live
	// ghosts are who outlived the command; nil when nobody did.
	ghosts *ghosts
}

// live is what only a running command has.
type live struct {
	process   *proc.Process
	pipe      *os.File
	settle    func(registry.Outcome, error)
	timeoutMs int64
	timer     *time.Timer // nil when there is no time-out
	// done is closed when the end was reported.
	done chan struct{}

	// Guarded by run.mu.

	cause cause
	// stopped is closed when the tree is gone; nil while nobody asked for that.
	stopped chan struct{}
	// stopping says that stopped is not closed yet.
	stopping bool
	// exited says that the shell is gone: a time-out comes too late.
	exited bool
	// drained says that the pipe is at its end.
	drained bool
	// reaped says that no stop may begin from outside.
	reaped bool
	// decided says that the outcome is fixed and on its way.
	decided bool
}

// attend sees a command to its end and reports it. It is the one goroutine of a
// running command: it moves the output until that ends, or until a bound after
// the shell's exit, whichever comes first.
func (r *run) attend(l *live) {
	defer r.producer.leave()
	pumpErr := r.log.Drain(l.pipe)
	if pumpErr == nil {
		r.mark(func() { l.drained = true })
	}
	l.process.Wait()
	if l.timer != nil {
		l.timer.Stop()
	}
	for !r.closeStops(l) {
		// Asked for in the last moment, or not over yet. What is printed until then
		// belongs to the command, with a bound of its own.
		<-l.stopped
		if pumpErr != nil {
			pumpErr = r.log.Drain(l.pipe)
		}
	}
	exit, err := l.process.Reap()
	left := r.settleTree(l)
	r.retire(l, pumpErr, left)

	end := ending{exit: exit, cause: l.cause, timeoutMs: l.timeoutMs, left: left, loss: r.log.Loss()}
	l.settle(end.outcome(), err)
	r.mark(func() { r.live = nil })
	close(l.done)
}

func (r *run) mark(set func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	set()
}

// exited hears of the shell's exit.
func (r *run) exited(l *live) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l.exited = true
	r.boundLocked(l)
}

// boundLocked gives the output a bounded time to end, once the shell has exited
// and no stop is under way. The bound does not move with new bytes.
func (r *run) boundLocked(l *live) {
	if l.exited && !l.stopping && !l.drained {
		_ = l.pipe.SetReadDeadline(time.Now().Add(r.producer.drain))
	}
}

// closeStops reports whether every stop that was asked for is over, and lets no
// further one begin: from here on it is the attending goroutine's.
func (r *run) closeStops(l *live) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	l.reaped = !l.stopping
	return l.reaped
}

// settleTree counts who is left of a tree whose leader was reaped, or ends them if
// the command was stopped, and fixes the outcome.
func (r *run) settleTree(l *live) []proc.Member {
	tree := l.process.Tree()
	for {
		r.mu.Lock()
		stop := l.cause != none
		r.mu.Unlock()
		var left []proc.Member
		if stop {
			tree.Stop(r.producer.grace)
		} else {
			var err error
			if left, err = tree.Lingering(patience); err != nil {
				r.producer.logger.Error("leftovers can't be counted", "error", err.Error())
			}
		}
		r.mu.Lock()
		l.decided = stop || l.cause == none
		decided := l.decided
		r.mu.Unlock()
		if decided {
			return left
		}
	}
}

// retire gives back what only a running command needs.
func (r *run) retire(l *live, pumpErr error, left []proc.Member) {
	logger := r.producer.logger
	r.log.End() // first: the sink needs a descriptor
	if pumpErr == nil {
		_ = l.pipe.Close()
	} else {
		if !errors.Is(pumpErr, os.ErrDeadlineExceeded) {
			logger.Error("output can't be read", "error", pumpErr.Error())
		}
		if err := r.producer.sink.Take(l.pipe); err != nil {
			logger.Warn("the pipe of a leftover can't be kept", "error", err.Error())
		}
	}
	if len(left) > 0 {
		r.mark(func() { r.ghosts = &ghosts{tree: l.process.Tree(), gone: make(chan struct{})} })
		if r.producer.haunt(r) {
			r.exorcise() // Close has looked already
		}
	}
}

// Request implements [registry.Run].
func (r *run) Request() (json.RawMessage, error) {
	if r.request != "" {
		return json.RawMessage(r.request), nil
	}
	data, err := r.log.ReadAside()
	if err != nil {
		return nil, registry.Wrap(registry.CodeInternal, err, "the stored request can't be read")
	}
	return data, nil
}
