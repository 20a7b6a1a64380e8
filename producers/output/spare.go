package output

import (
	"errors"
	"io/fs"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	// spareCount is how many empty files wait to be used, open. It hides the time
	// that a file system takes to make one (half a millisecond was seen), and costs
	// as many descriptors.
	spareCount = 4
	// idleCount is how many more wait closed: opening one again costs microseconds.
	idleCount = 256
)

// spare is an empty, open file of the store.
type spare struct {
	file *os.File
	seq  uint64
	// slot, use and named are as in the log that gave it back.
	slot  int32
	use   uint32
	named bool
}

// spares are files that were made ahead, and those that a log gave back unused.
type spares struct {
	// wanted asks the goroutine that makes them for more.
	wanted chan struct{}
	done   chan struct{}

	mu     sync.Mutex
	ready  []spare
	idle   []spare // without their files
	closed bool
}

func (s *spares) init(store *Store) {
	s.wanted, s.done = make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(s.done)
		for range s.wanted {
			s.fill(store)
		}
	}()
}

// fill makes files until there are enough. Errors are left to who needs one.
func (s *spares) fill(store *Store) {
	for s.lacks() {
		got, err := store.newSpare()
		if err != nil {
			return
		}
		store.giveBack(got)
	}
}

func (s *spares) lacks() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ready) < spareCount && !s.closed
}

// take gives a file, if one is ready.
func (s *spares) take() (got spare, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.ready)
	if n <= spareCount/2 && !s.closed {
		select {
		case s.wanted <- struct{}{}:
		default:
		}
	}
	if n == 0 {
		return spare{}, false
	}
	got, s.ready[n-1] = s.ready[n-1], spare{}
	s.ready = s.ready[:n-1]
	return got, true
}

// give takes an empty file, unless there are enough.
func (s *spares) give(got spare) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.ready) >= spareCount || s.closed {
		return false
	}
	s.ready = append(s.ready, got)
	return true
}

// lay takes the name of an empty file that was closed, unless there are enough.
func (s *spares) lay(got spare) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.idle) >= idleCount || s.closed {
		return false
	}
	got.file = nil
	s.idle = append(s.idle, got)
	return true
}

// pick gives the name of an empty file.
func (s *spares) pick() (got spare, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.idle); n > 0 {
		got, s.idle = s.idle[n-1], s.idle[:n-1]
		return got, true
	}
	return spare{}, false
}

// close ends the goroutine and gives what was not used, some of it closed.
func (s *spares) close() []spare {
	s.mu.Lock()
	rest := append(s.ready, s.idle...) //nolint:gocritic // both end here
	first := !s.closed
	s.ready, s.idle, s.closed = nil, nil, true
	s.mu.Unlock()
	if first {
		close(s.wanted)
	}
	<-s.done
	return rest
}

// newSpare opens an empty file that waits, or makes one.
func (s *Store) newSpare() (spare, error) {
	for got, ok := s.spares.pick(); ok; got, ok = s.spares.pick() {
		file, err := s.open(s.name(got.seq, logSuffix), unix.O_RDWR)
		switch {
		case err == nil:
			if got.file = file; s.fresh(&got) {
				return got, nil
			}
			s.drop(got)
		case errors.Is(err, fs.ErrNotExist):
			s.era.slots.giveBack(got.slot)
		default:
			s.spares.lay(got)
			return spare{}, err
		}
	}
	seq := s.seq.Add(1)
	file, err := s.create(s.name(seq, logSuffix))
	return spare{file: file, seq: seq}, err
}

// giveBack keeps an empty file for later, or removes it.
func (s *Store) giveBack(got spare) {
	if s.spares.give(got) {
		return
	}
	_ = got.file.Close()
	if !s.spares.lay(got) {
		got.file = nil
		s.drop(got)
	}
}

// fresh makes a file ready for the next log. One that is named in a handle is noted to be
// another log's from now on; false if that can't be.
func (s *Store) fresh(got *spare) bool {
	if !got.named {
		return true
	}
	err := s.era.slots.write(&got.slot, &slot{seq: got.seq, use: uint64(got.use) + 1, plain: true})
	if err != nil {
		return false
	}
	got.use, got.named = got.use+1, false
	return true
}

// drop removes an empty file.
func (s *Store) drop(got spare) {
	if got.file != nil {
		_ = got.file.Close()
	}
	if s.remove(s.name(got.seq, logSuffix)) == nil {
		s.era.slots.giveBack(got.slot)
	}
}
