package proc

import (
	"errors"
	"log/slog"
	"slices"
	"syscall"
	"time"
)

// Pauses between two looks at a tree that is about to end.
const (
	shortestPause = time.Millisecond
	longestPause  = 50 * time.Millisecond
	// hopelessPause is for processes that outlive SIGKILL (in the kernel's hands, or
	// not ours to signal).
	hopelessPause = 250 * time.Millisecond
	// dyingPatience is what those get beyond all patience who are on their way out.
	dyingPatience = time.Second

	// blindStop is when a stop gives up that can't see whether it has succeeded,
	// blindLook bounds a look that fails.
	blindStop = 5 * time.Second
	blindLook = time.Second
)

// sealingLooks is how many looks have to find nobody, the last one after SIGKILL.
const sealingLooks = 3

// errUnseen says that the kernel tells of somebody whom looks don't find alive.
var errUnseen = errors.New("somebody is there whom no look finds")

// moreLooks is how often a tree is looked at beyond the patience when the kernel
// says that somebody is there and a look finds nobody alive.
const moreLooks = 20

// Tree is everybody who belongs to one started process, as far as its net sees.
type Tree struct {
	net    net
	logger *slog.Logger
	pid    int
	// key is the host's own number of the tree, as an exec does not change it.
	key     uint64
	process *Process
	// hurried is closed when no stop shall give a grace any more.
	hurried <-chan struct{}
}

// Stop ends the leader and everybody in its tree: SIGTERM, after grace SIGKILL,
// again and again until nobody is left alive; only then it returns. It is not
// cut short by the exit of the leader, which must not be reaped before.
func (p *Process) Stop(grace time.Duration) { p.StopUnless(nil, grace, new(Escalation)) }

// StopUnless is Stop that goes on where an earlier one was given up. It gives up as
// soon as hold is closed, and when it could not look for a while after SIGKILL. It reports
// whether nobody is left.
func (p *Process) StopUnless(hold <-chan struct{}, grace time.Duration, e *Escalation) (gone bool) {
	return p.tree.stop(hold, grace, p.exited, e)
}

// Stop ends everybody who is left of a tree whose leader was reaped, as
// [Process.Stop] does, and goes on also while it can't look.
func (t *Tree) Stop(grace time.Duration) {
	e, gone := new(Escalation), false
	for !gone {
		gone = t.StopUnless(nil, grace, e)
	}
}

// StopUnless is to [Tree.Stop] what [Process.StopUnless] is to [Process.Stop]. Only a tree
// of which nobody is left is given back.
func (t *Tree) StopUnless(hold <-chan struct{}, grace time.Duration, e *Escalation) (gone bool) {
	if !t.net.empty() && !t.stop(hold, grace, nil, e) {
		return false
	}
	t.net.release()
	return true
}

// Escalation is how far a stop has come: the last signal that was sent, 0 for none,
// and since when. It belongs to one stop at a time.
type Escalation struct {
	Told  syscall.Signal
	Since time.Time
}

// stop is one escalation. The grace begins when SIGTERM was sent.
//
// A look at all processes is no snapshot: who forks and exits meanwhile may slip
// through it, again and again. So an empty look is believed only when it was
// repeated and then sealed by a SIGKILL to the group, which nobody outruns.
func (t *Tree) stop(hold <-chan struct{}, grace time.Duration, leaderExited <-chan struct{}, e *Escalation) (gone bool) {
	hurried := t.hurried
	var blind time.Time // since when no look succeeds
	pause := shortestPause
	tell := func(signal syscall.Signal, members []Member) {
		if e.Told != signal {
			e.Told, e.Since, pause = signal, time.Now(), shortestPause
		}
		t.net.signal(signal, members)
	}
	for unseen := 0; ; pause *= 2 {
		if closed(hold) {
			return false
		}
		members, err := t.net.members()
		if err == nil && len(members) == 0 {
			unseen++
			switch {
			case unseen == sealingLooks, t.net.empty():
				return true
			case unseen == sealingLooks-1: // an earlier one may have lacked descriptors too
				tell(syscall.SIGKILL, nil)
			}
			sleep(shortestPause, nil)
			continue
		}
		unseen = 0
		switch {
		case err == nil:
			blind = time.Time{}
		case blind.IsZero():
			// Out of descriptors, perhaps: the group can be signalled all the same.
			t.logger.Warn("processes can't be listed", "pid", t.pid, "error", err.Error())
			blind = time.Now()
		case e.Told == syscall.SIGKILL && min(time.Since(blind), time.Since(e.Since)) > blindStop:
			t.logger.Error("stopped without a look at who is left", "pid", t.pid)
			return false
		}
		left := grace - time.Since(e.Since)
		switch {
		case e.Told == 0:
			tell(syscall.SIGTERM, members)
		case e.Told == syscall.SIGKILL || left <= 0:
			tell(syscall.SIGKILL, members)
			pause = min(pause, hopelessPause)
		default:
			pause = min(pause, longestPause, left)
		}
		switch exited, hurry := wait(pause, leaderExited, hurried, hold); {
		case exited:
			leaderExited = nil
			pause = shortestPause
		case hurry:
			hurried, grace = nil, 0
			pause = shortestPause
		}
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// sleep waits, and reports whether that was cut short.
func sleep(pause time.Duration, cut <-chan struct{}) bool {
	_, short := wait(pause, nil, cut, nil)
	return short
}

// wait waits until one of the channels is closed, and reports which; nothing is
// reported of hold.
func wait(pause time.Duration, leaderExited, hurried, hold <-chan struct{}) (exited, hurry bool) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return false, false
	case <-hold:
		return false, false
	case <-leaderExited:
		return true, false
	case <-hurried:
		return false, true
	}
}

// Members lists who is alive of the tree, for people: it proves nothing.
func (t *Tree) Members() ([]Member, error) { return t.net.members() }

// Left reports whether somebody is left of a tree whose leader was reaped. It is
// cheap when nobody is. It gives nothing back: that is [Tree.StopUnless]'s.
func (t *Tree) Left() bool {
	if t.net.empty() {
		return false
	}
	if sure, ok := t.net.(interface{ inhabited() bool }); ok && sure.inhabited() {
		return true
	}
	members, err := t.net.members()
	return err != nil || len(members) > 0
}

// Lingering lists who is left after the end of a leader that was reaped. Who is
// gone within patience is not counted; with nobody there it returns at once, and the tree
// is given back. With an error somebody may be left who can't be told.
func (t *Tree) Lingering(patience time.Duration) ([]Member, error) {
	found, err := t.lingering(patience)
	if len(found) == 0 && err == nil {
		t.net.release()
	}
	return found, err
}

// lingering looks until patience is over, or the kernel says that nobody is left.
// A look that finds nobody proves nothing: who forks and exits slips through it.
func (t *Tree) lingering(patience time.Duration) (found []Member, err error) {
	begun := time.Now()
	for pause, again := shortestPause, 0; !t.net.empty(); pause *= 2 {
		var now []Member
		if now, err = t.look(); err != nil {
			return nil, err
		}
		if len(now) > 0 {
			found = persisting(found, now)
		}
		left := patience - time.Since(begun)
		if left <= 0 {
			staying := slices.DeleteFunc(slices.Clone(found), func(m Member) bool { return m.exiting })
			switch {
			case len(now) > 0 && len(staying) > 0:
				return staying, nil
			case len(now) > 0 && -left < dyingPatience: // all of them are on their way out
			case len(now) > 0:
				return found, nil
			case again == moreLooks:
				return nil, errUnseen
			default:
				again++
			}
			found, left = nil, shortestPause
		}
		sleep(min(pause, left), nil)
	}
	return nil, nil
}

// look lists the members, and tries again for a while when that fails: what it
// lacks, descriptors mostly, comes back.
func (t *Tree) look() ([]Member, error) {
	begun := time.Now()
	for {
		members, err := t.net.members()
		if err == nil || time.Since(begun) > blindLook {
			return members, err
		}
		sleep(longestPause, nil)
	}
}

// persisting gives those of now who were there before; all, if none was.
func persisting(before, now []Member) []Member {
	var both []Member
	for _, member := range now {
		for _, old := range before {
			if old.PID == member.PID && old.start == member.start {
				both = append(both, member)
			}
		}
	}
	if both == nil {
		return now
	}
	return both
}
