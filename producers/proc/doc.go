// Package proc owns one process tree, from its fork to its last descendant. It
// knows neither tasks nor shells, and captures nothing: the caller hands the
// descriptors in.
//
// A [Host] starts processes, each leader of its own session. The end of a leader
// is two steps: [Process.Wait] parks until it has exited (in the runtime's
// poller, on its pidfd: no thread
// waits), [Process.Reap] takes the exit and lets
// its number go. In between the number can't be reused, so a signal to its group
// can't meet a stranger. Who belongs to a tree is the affair of a net; today's
// knows the session, with all process groups in it, and misses whoever made a
// session of its own.
package proc
