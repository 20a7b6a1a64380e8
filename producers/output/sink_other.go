//go:build unix && !linux

package output

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"sync"
)

// Sink empties the pipes of work that has ended but left somebody who holds
// them, each until its last writer ends: a closed pipe would kill them.
type Sink struct {
	work sync.WaitGroup

	mu     sync.Mutex
	pipes  map[*os.File]struct{}
	closed bool
}

// NewSink makes a sink.
func NewSink() (*Sink, error) {
	return &Sink{pipes: make(map[*os.File]struct{})}, nil
}

// Take empties pipe from now on and closes it when its last writer is gone. The
// pipe is the sink's in any case.
func (s *Sink) Take(pipe *os.File) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = pipe.Close()
		return os.ErrClosed
	}
	s.pipes[pipe] = struct{}{}
	s.work.Go(func() {
		_, _ = io.Copy(io.Discard, pipe)
		s.mu.Lock()
		delete(s.pipes, pipe)
		s.mu.Unlock()
		_ = pipe.Close()
	})
	return nil
}

// Len counts the pipes that still have a writer.
func (s *Sink) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.pipes)
}

// Close ends the work on all pipes and closes them. It is idempotent.
func (s *Sink) Close() error {
	s.mu.Lock()
	s.closed = true
	for pipe := range s.pipes {
		_ = pipe.Close()
	}
	s.mu.Unlock()
	s.work.Wait()
	return nil
}

var errNoMoves = errors.New("pipes can't be handed over on this system")

// HandOver fails on this system.
func (*Sink) HandOver() (json.RawMessage, error) { return nil, errNoMoves }

// TakeBack does nothing here.
func (*Sink) TakeBack() {}

// AdoptSink fails on this system.
func AdoptSink(json.RawMessage) (*Sink, error) { return nil, errNoMoves }
