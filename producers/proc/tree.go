package proc

import (
	"log/slog"
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
)

// Tree is everybody who belongs to one started process, as far as its net sees.
type Tree struct {
	net    net
	logger *slog.Logger
	pid    int
	// hurried is closed when no stop shall give a grace any more.
	hurried <-chan struct{}
}

// Stop ends the leader and everybody in its tree: SIGTERM, after grace SIGKILL,
// again and again until nobody is left alive; only then it returns. It is not
// cut short by the exit of the leader, which must not be reaped before.
func (p *Process) Stop(grace time.Duration) { p.tree.stop(grace, p.exited) }

// Stop ends everybody who is left of a tree whose leader was reaped, as
// [Process.Stop] does.
func (t *Tree) Stop(grace time.Duration) {
	if !t.net.empty() {
		t.stop(grace, nil)
	}
}

func (t *Tree) stop(grace time.Duration, leaderExited <-chan struct{}) {
	begun := time.Now()
	pause := shortestPause
	hurried := t.hurried
	for told := syscall.Signal(0); ; pause *= 2 {
		members, err := t.net.members()
		if err != nil {
			t.logger.Error("processes can't be listed; only the group is signalled", "pid", t.pid, "error", err.Error())
			t.net.signal(syscall.SIGKILL, nil)
			return
		}
		if len(members) == 0 {
			return
		}
		left := grace - time.Since(begun)
		switch {
		case left <= 0:
			if told != syscall.SIGKILL {
				pause = shortestPause
			}
			told = syscall.SIGKILL
			t.net.signal(told, members)
			pause = min(pause, hopelessPause)
		case told == 0:
			told = syscall.SIGTERM
			t.net.signal(told, members)
		default:
			pause = min(pause, longestPause, left)
		}
		switch exited, hurry := sleep(pause, leaderExited, hurried); {
		case exited:
			leaderExited = nil
			pause = shortestPause
		case hurry:
			hurried, grace = nil, 0
			pause = shortestPause
		}
	}
}

// sleep waits, and reports which of the channels was closed meanwhile.
func sleep(pause time.Duration, leaderExited, hurried <-chan struct{}) (exited, hurry bool) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return false, false
	case <-leaderExited:
		return true, false
	case <-hurried:
		return false, true
	}
}

// Lingering lists who is left after the end of a leader that was reaped. Who is
// gone within patience is not counted; with nobody there it returns at once.
func (t *Tree) Lingering(patience time.Duration) ([]Member, error) {
	if t.net.empty() {
		return nil, nil
	}
	begun := time.Now()
	found, err := t.net.members()
	for pause := shortestPause; err == nil && len(found) > 0; pause *= 2 {
		left := patience - time.Since(begun)
		if left <= 0 {
			return found, nil
		}
		time.Sleep(min(pause, left))
		var now []Member
		if now, err = t.net.members(); err == nil {
			found = persisting(found, now)
		}
	}
	return found, err
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
