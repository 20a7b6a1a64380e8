package sse

// Right is what lets a stream exist. Its methods are for concurrent use, and never block
// on the hub.
type Right interface {
	// Ended reports whether it has ended. It is asked before each event.
	Ended() bool
	// Watch calls end once, on a goroutine of its own, when it has ended, unless stop was
	// called before.
	Watch(end func()) (stop func())
}
