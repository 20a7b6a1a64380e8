package proc

import (
	"sync"
	"syscall"
	"time"
)

const (
	// strayGrace is what orphans get that are nobody's, between SIGTERM and SIGKILL, and
	// after that.
	strayGrace = time.Second
	// strayPause is between two looks for orphans when no tree is left: by the second one
	// they are old enough to have shown whose they are.
	strayPause = 2 * youth * 10 * time.Millisecond
)

// tidying ends orphans that are nobody's once no tree is left. Its goroutine is there
// only when the last tree has gone, until no orphan is there or a tree is.
type tidying struct {
	work sync.WaitGroup
	quit chan struct{}
	// on says that the goroutine is there. It belongs to lineage.mu.
	on bool
}

// tidyLocked begins to tidy if no tree is left.
func (l *lineage) tidyLocked() {
	if len(l.stamped) > 0 || l.tidying.on || closed(l.tidying.quit) {
		return
	}
	l.tidying.on = true
	l.tidying.work.Go(func() {
		l.tidy()
		l.mu.Lock()
		defer l.mu.Unlock()
		l.tidying.on = false
	})
}

func (l *lineage) tidy() {
	for {
		if sleep(strayPause, l.tidying.quit) || l.busy() {
			return
		}
		if !l.orphaned() {
			return
		}
		l.nets.host.procs.look()
		before := len(l.strays())
		if before == 0 || l.busy() {
			continue
		}
		if l.endStrays(); len(l.strays()) >= before {
			return // they can't be ended; at the end of the host it is tried once more
		}
	}
}

// busy tells that there is a tree, or one is being born.
func (l *lineage) busy() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.stamped) > 0
}

// orphaned tells that a live orphan is there which may be of a tree.
func (l *lineage) orphaned() bool {
	orphans, err := l.nets.reaper.orphans()
	for _, s := range orphans {
		l.mu.Lock()
		a, ok := l.aside[s.pid]
		l.mu.Unlock()
		if !s.dead && (!ok || a.start != s.start || a.stray) {
			return true
		}
	}
	return err != nil
}

// close ends all strays.
func (l *lineage) close() {
	close(l.tidying.quit)
	l.tidying.work.Wait()
	l.endStrays()
}

// endStrays ends those of whom nobody can tell whose they are: but they are ours. Who
// can't be ended is left after a while.
func (l *lineage) endStrays() {
	g := &group{host: l.nets.host, handle: -1}
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		for begun := time.Now(); time.Since(begun) < strayGrace; sleep(longestPause, nil) {
			strays := l.strays()
			if len(strays) == 0 {
				return
			}
			for _, member := range strays {
				g.signalEach(member, sig)
			}
			l.nets.host.procs.look()
		}
	}
}

func (l *lineage) strays() []Member {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.straysLocked()
}

func (l *lineage) straysLocked() (members []Member) {
	for _, a := range l.aside {
		if a.stray {
			members = append(members, a.Member)
		}
	}
	return members
}
