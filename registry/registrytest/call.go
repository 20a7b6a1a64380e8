package registrytest

import (
	"context"
	"sync"
)

// call is a function that runs on a goroutine of its own until it returns.
type call[T any] struct {
	// leave ends the context that the function was given. It stays alive after the
	// function has returned, as a request does while its answer is written.
	leave context.CancelFunc
	done  chan struct{}
	value T
	err   error
}

func begin[T any](ctx context.Context, f func(ctx context.Context) (T, error)) *call[T] {
	ctx, leave := context.WithCancel(ctx)
	c := &call[T]{leave: leave, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.value, c.err = f(ctx)
	}()
	return c
}

// returned reports whether the function has returned, without waiting.
func (c *call[T]) returned() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// result waits for the function's results.
func (c *call[T]) result() (T, error) {
	<-c.done
	return c.value, c.err
}

// gate holds goroutines up until it is opened, once and for ever.
type gate struct {
	once   sync.Once
	opened chan struct{}
}

func newGate() *gate { return &gate{opened: make(chan struct{})} }

func (g *gate) open() { g.once.Do(func() { close(g.opened) }) }

func (g *gate) pass() { <-g.opened }
