package proc

import (
	"errors"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	// spareGroups is how many groups are made ahead, keptGroups how many used ones wait
	// to be used again.
	spareGroups = 8
	keptGroups  = 64
	// mostDoomed is how many used groups may wait for their removal. Whoever gives back
	// more removes some, so that a burst can't outrun the removals.
	mostDoomed = 128
	// mostRetries is how many groups that could not be removed are tried again when
	// another one is given back.
	mostRetries = 2
)

// stock makes groups ahead and removes used ones, in one goroutine that is there only
// while there is something to do.
//
// A group serves the next tree when its last one did nothing to it but live there (see
// [touches]). What was done to it can't all be seen, nor undone: where cgroup.kill was
// written the kernel kills who is born into it from elsewhere, for ever.
type stock struct {
	work sync.WaitGroup
	mu   sync.Mutex
	seq  uint64
	// spare were never used, or are as good as that.
	spare []uint64
	// doomed are to be removed, stuck were not empty then.
	doomed, stuck []uint64
	working       bool
	// paused keeps the goroutine away.
	paused bool
}

// take gives a group that is as good as new, open.
func (c *cgroups) take(memoryMax, pidsMax int64) (*place, error) {
	for {
		seq, made, err := c.pick()
		if err != nil {
			return nil, os.NewSyscallError("mkdir", err)
		}
		dir, err := c.openAt(groupName(seq), unix.O_DIRECTORY|unix.O_RDONLY)
		if errors.Is(err, unix.ENOENT) && !made {
			c.touched.forget(seq)
			continue // somebody removed it
		}
		if err == nil && !made && !c.touched.untouched(seq) {
			_ = unix.Close(dir)
			c.discard(seq)
			continue // somebody did something to it meanwhile
		}
		if err == nil && (memoryMax > 0 || pidsMax > 0) {
			if err = limit(dir, memoryMax, pidsMax); err != nil {
				_ = unix.Close(dir)
			}
		}
		if err != nil {
			c.giveBack(seq, false)
			return nil, err
		}
		return &place{seq: seq, dir: dir}, nil
	}
}

// pick gives a spare group, or makes one.
func (c *cgroups) pick() (seq uint64, made bool, err error) {
	s := &c.stock
	s.mu.Lock()
	defer c.tend()
	if n := len(s.spare); n > 0 {
		seq, s.spare = s.spare[n-1], s.spare[:n-1]
		s.mu.Unlock()
		return seq, false, nil
	}
	s.seq++
	seq = s.seq
	s.mu.Unlock()
	return seq, true, c.make(seq)
}

func (c *cgroups) make(seq uint64) error {
	if err := unix.Mkdirat(int(c.lock.Fd()), groupName(seq), 0o755); err != nil {
		return err
	}
	c.touched.watch(filepath.Join(c.dir(), groupName(seq)), seq)
	return nil
}

// giveBack takes a group that is not needed any more, to be used again or removed.
// SeenEmpty says that nobody lives in it since somebody was last born into it.
func (c *cgroups) giveBack(seq uint64, seenEmpty bool) {
	s := &c.stock
	good := c.touched.untouched(seq) && (seenEmpty || c.empty(seq))
	s.mu.Lock()
	good = good && len(s.spare) < keptGroups && !s.paused
	if good {
		s.spare = append(s.spare, seq)
	}
	s.mu.Unlock()
	if !good {
		c.discard(seq)
	}
}

// discard has a group removed. It waits for removals only if too many are due.
func (c *cgroups) discard(seq uint64) {
	s := &c.stock
	s.mu.Lock()
	s.doomed = append(s.doomed, seq)
	retries := min(mostRetries, len(s.stuck))
	s.doomed = append(s.doomed, s.stuck[:retries]...)
	s.stuck = s.stuck[retries:]
	crowded := len(s.doomed) > mostDoomed && !s.paused
	s.mu.Unlock()
	if crowded {
		c.removeOne()
		c.removeOne()
	}
	c.tend()
}

// tend has the goroutine run if there is something to do.
func (c *cgroups) tend() {
	s := &c.stock
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.working || s.paused || len(s.spare) >= spareGroups && len(s.doomed) == 0 {
		return
	}
	s.working = true
	s.work.Go(c.run)
}

func (c *cgroups) run() {
	for again := true; again; {
		again = c.makeOne() || c.removeOne()
	}
	c.stock.mu.Lock()
	c.stock.working = false
	c.stock.mu.Unlock()
}

// makeOne makes a spare group, unless there are enough. One that can't be made is
// tried again when one is needed.
func (c *cgroups) makeOne() bool {
	s := &c.stock
	s.mu.Lock()
	if s.paused || len(s.spare) >= spareGroups {
		s.mu.Unlock()
		return false
	}
	s.seq++
	seq := s.seq
	s.mu.Unlock()
	if c.make(seq) != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spare = append(s.spare, seq)
	return true
}

// removeOne removes a used group; false if there is none to try.
func (c *cgroups) removeOne() bool {
	s := &c.stock
	s.mu.Lock()
	n := len(s.doomed)
	if s.paused || n == 0 {
		s.mu.Unlock()
		return false
	}
	seq := s.doomed[n-1]
	s.doomed = s.doomed[:n-1]
	s.mu.Unlock()
	c.remove(seq)
	return true
}

func (c *cgroups) remove(seq uint64) {
	c.touched.forget(seq)
	if removeGroup(filepath.Join(c.dir(), groupName(seq))) == nil {
		return
	}
	c.stock.mu.Lock()
	defer c.stock.mu.Unlock()
	c.stock.stuck = append(c.stock.stuck, seq)
}

// pause keeps the goroutine away, and returns when it has gone.
func (c *cgroups) pause() {
	c.stock.mu.Lock()
	c.stock.paused = true
	c.stock.mu.Unlock()
	c.stock.work.Wait()
}

// resume undoes pause.
func (c *cgroups) resume() {
	c.stock.mu.Lock()
	c.stock.paused = false
	c.stock.mu.Unlock()
	c.tend()
}

// removeAll removes all groups that are empty, once paused.
func (c *cgroups) removeAll() {
	s := &c.stock
	s.mu.Lock()
	all := append(append(s.spare, s.doomed...), s.stuck...)
	s.spare, s.doomed, s.stuck = nil, nil, nil
	s.mu.Unlock()
	for _, seq := range all {
		c.remove(seq)
	}
}
