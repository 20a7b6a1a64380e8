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
// Durability, with a [Journal]: a stream carries a notice only once the journal
// has kept it, so that no number that was ever shown is given to another notice.
// Kept notices come in order, so what waits is always the end of a log; nothing
// else of a stream waits for the journal. What happens to a notice afterwards
// (written, withdrawn, evicted, a gap owed) is put in the journal's line when it
// has happened: a crash in between may bring a notice again, with the same id. A
// log that runs over while it waits owes its streams a gap, and ends none.
//
// After a start the notices are as they were, but that holds are over: what was
// held is pending. What was pending may have been carried all the same, and is never
// renumbered. One hub stands on a journal at a time.
//
// Whoever announces (the authority) keeps that it did, behind the hub's own row in
// the same journal. What it knows to be announced it never announces again, also if
// the hub has long evicted the notice. What it does not know to be announced it
// announces again after a start, and the hub decides: a key that is kept, pending
// or written, stays as it is. So a notice is told again only if its row was never
// written, or was evicted before the very next row. What the authority knows to be
// reported or gone it withdraws again after a start ([Hub.Kept]).
//
// Sessions that hold nothing are remembered by their last numbers, up to 10000 of
// them. Then those with the lowest are folded into one floor for all that are not
// remembered: numbers go on above it, and ids from below it meet a gap.
//
// Backpressure: a stream has at most one event on its way. One that does not
// take it within the write timeout is cut; one that the bounded log has moved
// past is told so and ended. Both resume by number. Nobody waits for them.
package sse
