// Package sse is the event stream of a session: numbered notices that are kept
// until they were delivered, replayed by Last-Event-ID and fanned out to open
// connections, with heartbeats and a last word before a stream ends. It never
// learns what a task is, and it proves nobody's identity.
//
// The notice log of a session ([Hub.Append]) is the truth. r3labs/sse writes the
// wire, one package stream per connection, and remembers nothing: each
// connection is a small state machine that gives the package one event, hears
// from the guarded response writer that this very event was flushed, and only
// then chooses the next one. No goroutine waits for it to do so: whoever made
// something due (an append, a poke, a timer, the flush before) takes the step,
// and no step blocks.
//
// Ordering, per stream: numbers rise. A notice counts as written when its flush
// returned without error while the request was still live, and before the next
// event of that stream is chosen. Between notices come tasks.changed and
// heartbeat comments, of which at most one round is ever outstanding.
//
// Backpressure: a stream has at most one event on its way. One that does not
// take it within the write timeout is cut; one that the bounded log has moved
// past is told so and ended. Both resume by number. Nobody waits for them.
package sse
