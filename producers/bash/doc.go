// Package bash is the producer of shell commands: it resolves a request fully,
// runs it as `bash -c` (never a login shell) in a session of its own, and words
// how it ended.
//
// Both output streams are one pipe, so that their order is true, unless a request
// wants them split; each pipe is moved into a file from the first byte. Standard
// input is empty, or a pipe that callers write to while the command lives. A command has ended when its shell has
// exited and the pipe is at its end or a bounded drain is over, whichever comes
// first; a stopped one not before everybody in its tree is gone. Processes that
// outlive their command stay owned by the run: they are named in its result,
// their pipe is kept empty, and [registry.Run]'s Cancel and Discard stop them. A
// request may have them stopped before the end instead.
//
// A running command holds one goroutine for each pipe of output, parked in the
// runtime's poller, and a handful of descriptors; an ended one a few hundred bytes.
package bash
