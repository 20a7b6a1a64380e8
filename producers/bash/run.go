package bash

import (
	"encoding/json"
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
	// stream is the only output, or standard output.
	stream
	// stderr is nil when both streams are one.
	stderr *stream
	// request is none when it is kept aside of the log.
	request description

	mu sync.Mutex
	// live is nil once the end was reported.
	live *live
	// ghosts are who outlived the command; nil when nobody did.
	ghosts *ghosts
}

// live is what only a running command has.
type live struct {
	process *proc.Process
	// out is the only outlet or that of standard output.
	out       outlet
	stderr    *outlet // nil when both streams are one
	stdin     *input  // nil when it is null
	settle    func(registry.Outcome, error)
	timeoutMs int64
	// memoryMaxBytes is 0 without a limit.
	memoryMaxBytes int64
	// stops says that leftovers are stopped.
	stops bool
	// done is closed when the end was reported.
	done chan struct{}
	// work counts the goroutines that attend to the command.
	work sync.WaitGroup

	// What attending has come to. It belongs to the attending goroutine, and between
	// two of them, to who hands over.

	// collected says that the leader was reaped, with what it left then.
	collected  bool
	exit       proc.Exit
	exitErr    error
	overMemory bool
	// escalation is that of the stop that is under way.
	escalation proc.Escalation

	// Guarded by run.mu.

	timer    *time.Timer // nil when there is no time-out
	deadline time.Time
	// bound is when the output is not waited for any longer; zero while it is.
	bound time.Time
	// hold is closed when the run is handed over. Taken back it has another one.
	hold  chan struct{}
	held  bool
	cause cause
	// stopped is closed when the tree is gone; nil while nobody asked for that.
	stopped chan struct{}
	// stopping says that stopped is not closed yet.
	stopping bool
	// exited says that the shell is gone: a time-out comes too late.
	exited bool
	// reaped says that no stop may begin from outside.
	reaped bool
	// decided says that the outcome is fixed and on its way.
	decided bool
	// discarded says that what the command leaves is nobody's: its record was removed.
	discarded bool
}

// attend sees a command to its end and reports it. It is the one goroutine of a
// running command: it moves the output until that ends, or until a bound after
// the shell's exit, whichever comes first. It gives up as soon as hold is closed;
// another one goes on from there.
func (r *run) attend(l *live, hold <-chan struct{}) {
	defer l.work.Done()
	if !l.collected && !r.collect(l, hold) {
		return
	}
	left, ok := r.settleTree(l, hold)
	if !ok {
		return
	}
	r.retire(l, left)
	end := ending{
		exit: l.exit, cause: l.cause, timeoutMs: l.timeoutMs, left: left.members, unsure: left.unsure, losses: r.losses(),
		overMemory: l.overMemory, memoryMaxBytes: l.memoryMaxBytes,
	}
	l.settle(r.producer.outcome(end), l.exitErr)
	r.mark(func() { r.live = nil })
	close(l.done)
	r.producer.end(r)
	r.producer.leave()
}

// collect moves the output and takes the exit. False means that it gave up.
func (r *run) collect(l *live, hold <-chan struct{}) bool {
	r.drain(l)
	if held(hold) || !l.process.WaitUnless(hold) || held(hold) {
		return false
	}
	r.mark(l.stopTimerLocked)
	for !r.closeStops(l) {
		// Asked for in the last moment, or not over yet. What is printed until then
		// belongs to the command, with a bound of its own.
		r.drain(l)
		select {
		case <-l.stopped:
		case <-hold:
		}
		if held(hold) {
			return false
		}
	}
	l.overMemory = l.memoryMaxBytes > 0 && l.process.OverMemory()
	l.exit, l.exitErr = l.process.Reap()
	l.collected = true
	return true
}

func held(hold <-chan struct{}) bool {
	select {
	case <-hold:
		return true
	default:
		return false
	}
}

func (l *live) stopTimerLocked() {
	if l.timer != nil {
		l.timer.Stop()
	}
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
	if !l.exited { // else it was heard before an exec
		l.exited = true
		r.boundLocked(l)
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

// remainder is who is left of a tree at its command's end.
type remainder struct {
	members []proc.Member
	// unsure says that somebody may be left whom nobody can name.
	unsure bool
}

// settleTree counts who is left of a tree whose leader was reaped, or ends them if
// the command was stopped or leftovers are not wanted, and fixes the outcome. Not ok
// means that it gave up.
func (r *run) settleTree(l *live, hold <-chan struct{}) (left remainder, ok bool) {
	for {
		r.mu.Lock()
		stop := l.cause != none
		r.mu.Unlock()
		left = remainder{}
		if !stop {
			var err error
			if left.members, err = l.process.Tree().Lingering(patience); err != nil {
				r.producer.logger.Error("leftovers can't be counted", "pid", l.process.Pid(), "error", err.Error())
				left.unsure = true
			}
			stop = l.stops && (err != nil || len(left.members) > 0)
		}
		if stop {
			gone, ok := r.stopTree(l, hold)
			if !ok {
				return remainder{}, false
			}
			left = remainder{unsure: !gone}
		}
		r.mu.Lock()
		l.decided = stop || l.cause == none
		decided := l.decided
		r.mu.Unlock()
		if decided {
			return left, true
		}
	}
}

// stopTree ends who is left of a tree whose leader was reaped. What is printed
// until then belongs to the command, with a bound of its own. Not ok means that it gave
// up; not gone, that it can't see whether somebody is left.
func (r *run) stopTree(l *live, hold <-chan struct{}) (gone, ok bool) {
	r.mark(func() {
		l.stopping = true
		l.setDeadlineLocked(time.Time{})
	})
	var stop sync.WaitGroup
	stop.Go(func() {
		gone = l.process.Tree().StopUnless(hold, r.producer.stopGrace(), &l.escalation)
		if gone || !held(hold) {
			r.mark(func() {
				l.stopping = false
				r.boundLocked(l)
			})
		}
	})
	r.drain(l)
	stop.Wait()
	return gone, !held(hold)
}

// retire gives back what only a running command needs. Who is left stays the run's, and is
// stopped on where that could not be seen to its end.
func (r *run) retire(l *live, left remainder) {
	if l.stdin != nil {
		_ = l.stdin.pipe.Close()
	}
	l.out.retire(r.producer)
	if l.stderr != nil {
		l.stderr.retire(r.producer)
	}
	if len(left.members) == 0 && !left.unsure {
		return
	}
	stop := l.stops || l.cause != none
	r.mark(func() {
		r.ghosts = newGhosts(l.process.Tree())
		r.ghosts.escalation = l.escalation
		stop = stop || l.discarded
	})
	if r.producer.haunt(r) || stop { // Close has looked already
		r.exorcise()
	}
}

// logs gives what holds the run's output, as far as it was made.
func (r *run) logs() []*output.Log {
	var logs []*output.Log
	if r.log != nil {
		logs = append(logs, r.log)
	}
	if r.stderr != nil {
		logs = append(logs, r.stderr.log)
	}
	return logs
}

// losses says why output could not be kept.
func (r *run) losses() losses {
	lost := losses{main: r.log.Loss()}
	if r.stderr != nil {
		lost.stderr = r.stderr.log.Loss()
	}
	return lost
}

// Request implements [registry.Run].
func (r *run) Request() (json.RawMessage, error) {
	if !r.request.none() {
		return r.request.json(), nil
	}
	data, err := r.log.ReadAside()
	if err != nil {
		return nil, registry.Wrap(registry.CodeInternal, err, "the stored request can't be read")
	}
	return data, nil
}
