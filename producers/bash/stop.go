package bash

import (
	"crypto/rand"
	"errors"
	"time"

	"afoot/producers/proc"
	"afoot/registry"
)

// ghosts are processes that outlived their command.
type ghosts struct {
	tree *proc.Tree
	// name tells them from all others, in the handle of their run and across an exec.
	name string

	// Guarded by run.mu.

	// stopping says that they are to be stopped, running that a goroutine is at it.
	stopping, running bool
	// discarded says that the output goes with them.
	discarded bool

	// escalation is that of the stop; resume says that it was under way before an exec.
	resume     bool
	escalation proc.Escalation
	// gone is closed when a stop has ended them all.
	gone chan struct{}
}

func newGhosts(tree *proc.Tree) *ghosts {
	return &ghosts{tree: tree, name: rand.Text(), gone: make(chan struct{})}
}

// Cancel implements [registry.Run]: SIGTERM to the tree, after the grace SIGKILL.
// After the end it does the same to leftovers. It never refuses, but says that it
// came too late.
func (r *run) Cancel(string) error {
	r.mu.Lock()
	l := r.live
	if l == nil || l.decided {
		stopped := l != nil && l.cause != none
		r.mu.Unlock()
		if stopped {
			return nil // the outcome that is on its way is that of a stop
		}
		if l != nil {
			// It knows nothing of this call: it has been reported by the time this one
			// returns.
			<-l.done
		}
		r.exorcise()
		return registry.ErrEnded
	}
	defer r.mu.Unlock()
	if l.held {
		return registry.Errorf(registry.CodeUnavailable, "the daemon is being replaced")
	}
	r.stopLocked(l, cancelled)
	return nil
}

// timeOut ends a command that is out of time, unless it has ended by itself.
func (r *run) timeOut(l *live) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !l.exited {
		r.stopLocked(l, timedOut)
	}
}

// stopLocked begins a stop, once. The first cause counts. After the reaping the
// attending goroutine sees the cause and does the stopping itself.
func (r *run) stopLocked(l *live, why cause) {
	if l.cause != none {
		return
	}
	l.cause = why
	if l.reaped {
		return
	}
	l.stopped, l.stopping = make(chan struct{}), true
	l.setDeadlineLocked(time.Time{}) // one that runs already would end before the stop
	if !l.held {
		r.goStopLocked(l)
	}
}

// goStopLocked stops the tree of a live command, from where an earlier stop was given up.
func (r *run) goStopLocked(l *live) {
	hold := l.hold
	l.work.Go(func() {
		// One that can't see who is left is over all the same: the leader is to be reaped.
		if !l.process.StopUnless(hold, r.producer.stopGrace(), &l.escalation) && held(hold) {
			return
		}
		l.escalation = proc.Escalation{} // what is stopped after the reaping has a grace of its own
		r.mark(func() {
			l.stopping = false
			r.boundLocked(l)
		})
		close(l.stopped)
	})
}

// exorcise begins to stop the leftovers, once, and gives a channel that is closed
// when they are gone; nil if there are none.
func (r *run) exorcise() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.ghosts
	if g == nil {
		return nil
	}
	r.exorciseLocked(g)
	return g.gone
}

func (r *run) exorciseLocked(g *ghosts) {
	if !g.stopping {
		g.stopping = true
		r.producer.again()
		r.goExorciseLocked(g)
	}
}

// goExorciseLocked has a goroutine stop the leftovers, unless one does or the producer
// is handed over.
func (r *run) goExorciseLocked(g *ghosts) {
	if !g.running {
		g.running = r.producer.stop(func(hold <-chan struct{}) { r.exorcism(g, hold) })
	}
}

// exorcism stops leftovers, from where an earlier one was given up, also while nobody can
// see who is left.
func (r *run) exorcism(g *ghosts, hold <-chan struct{}) {
	for !g.tree.StopUnless(hold, r.producer.stopGrace(), &g.escalation) {
		if held(hold) {
			r.mark(func() { g.running = false })
			return
		}
	}
	discarded := false
	r.mark(func() {
		r.ghosts = nil
		discarded = g.discarded
	})
	r.producer.free(r)
	close(g.gone)
	if discarded {
		if err := r.remove(); err != nil {
			r.producer.logger.Warn("output not removed", "error", err.Error())
		}
	}
	r.producer.leave()
}

// StopLeftovers implements [registry.Leftovers].
func (r *run) StopLeftovers(string) <-chan struct{} { return r.exorcise() }

// Left implements [registry.Leftovers]. It looks at the processes, and once none
// lives gives back what was kept for them. While the producer is handed over it believes
// that they live.
func (r *run) Left() bool {
	r.mu.Lock()
	g := r.ghosts
	r.mu.Unlock()
	if g == nil {
		return false
	}
	left := true
	r.producer.look(func() { left = g.tree.Left() })
	if !left {
		r.exorcise()
	}
	return left
}

// Discard implements [registry.Run]. Leftovers are stopped, and the output is removed when
// they are gone.
func (r *run) Discard() error {
	r.mu.Lock()
	if l := r.live; l != nil {
		l.discarded = true
	}
	if g := r.ghosts; g != nil {
		g.discarded = true
		r.exorciseLocked(g)
		r.mu.Unlock()
		return nil
	}
	r.mu.Unlock()
	return r.remove()
}

func (r *run) remove() error {
	err := r.log.Remove()
	if r.stderr != nil {
		err = errors.Join(err, r.stderr.log.Remove())
	}
	return err
}
