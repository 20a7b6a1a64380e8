package bash

import (
	"errors"
	"os"
	"sync"
	"time"

	"afoot/producers/output"
	"afoot/registry"
)

// outlet is one pipe of a running command and the log that it is moved into.
type outlet struct {
	pipe *os.File
	log  *output.Log
	// err is why the last drain ended; it belongs to whoever drains.
	err error
	// drained says that the pipe is at its end. Guarded by run.mu, and written by
	// whoever drains.
	drained bool
}

// Stderr implements [registry.Split].
func (r *run) Stderr() registry.Stream {
	if r.stderr == nil {
		return nil
	}
	return r.stderr
}

// drain moves the output until it ends, or until the bound that is set meanwhile.
// With two pipes it holds a goroutine for the second.
func (r *run) drain(l *live) {
	if l.stderr == nil {
		r.empty(&l.out)
		return
	}
	var second sync.WaitGroup
	second.Go(func() { r.empty(l.stderr) })
	r.empty(&l.out)
	second.Wait()
}

func (r *run) empty(o *outlet) {
	if o.drained {
		return
	}
	if o.err = o.log.Drain(o.pipe); o.err == nil {
		r.mark(func() { o.drained = true })
	}
}

// boundLocked gives the output a bounded time to end, once the shell has exited
// and no stop is under way. The bound does not move with new bytes.
func (r *run) boundLocked(l *live) {
	if l.exited && !l.stopping {
		l.setDeadlineLocked(time.Now().Add(r.producer.drain))
	}
}

// setDeadlineLocked sets the bound of what is not at its end; a zero time takes it
// back. While the run is handed over it is only remembered.
func (l *live) setDeadlineLocked(bound time.Time) {
	l.bound = bound
	if !l.held {
		l.applyLocked(bound)
	}
}

func (l *live) applyLocked(bound time.Time) {
	if !l.out.drained {
		_ = l.out.pipe.SetReadDeadline(bound)
	}
	if l.stderr != nil && !l.stderr.drained {
		_ = l.stderr.pipe.SetReadDeadline(bound)
	}
}

// retire ends the log and gives the pipe back, or to the sink, if it still has a
// writer.
func (o *outlet) retire(p *Producer) {
	o.log.End() // first: the sink needs a descriptor
	if o.err == nil {
		_ = o.pipe.Close()
		return
	}
	if !errors.Is(o.err, os.ErrDeadlineExceeded) {
		p.logger.Error("output can't be read", "error", o.err.Error())
	}
	if err := p.sink.Take(o.pipe); err != nil {
		p.logger.Warn("the pipe of a leftover can't be kept", "error", err.Error())
	}
}
