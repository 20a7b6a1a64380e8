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
	// stopping is guarded by run.mu.
	stopping bool
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
		if !l.process.StopUnless(hold, r.producer.stopGrace(), &l.escalation) {
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
		r.producer.stop(func(hold <-chan struct{}) { r.exorcism(g, hold) })
	}
}

// exorcism stops leftovers, from where an earlier one was given up.
func (r *run) exorcism(g *ghosts, hold <-chan struct{}) {
	if !g.tree.StopUnless(hold, r.producer.stopGrace(), &g.escalation) {
		return
	}
	r.mark(func() { r.ghosts = nil })
	r.producer.free(r)
	close(g.gone)
	r.producer.leave()
}

// StopLeftovers implements [registry.Leftovers].
func (r *run) StopLeftovers(string) <-chan struct{} { return r.exorcise() }

// Left implements [registry.Leftovers]. It looks at the processes, and once none
// lives gives back what was kept for them.
func (r *run) Left() bool {
	r.mu.Lock()
	g := r.ghosts
	r.mu.Unlock()
	if g == nil {
		return false
	}
	if g.tree.Left() {
		return true
	}
	r.exorcise()
	return false
}

// Discard implements [registry.Run]. It blocks until leftovers are gone: for the
// grace at most, unless one can't be killed.
func (r *run) Discard() error {
	if gone := r.exorcise(); gone != nil {
		<-gone
	}
	err := r.log.Remove()
	if r.stderr != nil {
		err = errors.Join(err, r.stderr.log.Remove())
	}
	return err
}
