// Package proc owns one process tree, from its fork to its last descendant. It
// knows neither tasks nor shells, and captures nothing: the caller hands the
// descriptors in.
//
// A [Host] starts processes, each leader of its own session. The end of a leader
// is two steps: [Process.Wait] parks until it has exited (in the runtime's
// poller, on its pidfd: no thread
// waits), [Process.Reap] takes the exit and lets
// its number go. In between the number can't be reused, so a signal to its group
// can't meet a stranger.
//
// Who belongs to a tree is the affair of a net. There are three:
//
//   - cgroup: a control group (version 2) for each tree. Nobody leaves it by itself, and
//     SIGKILL reaches everybody in it at once.
//   - subreaper: who descends from the leader, whatever sessions that made. Orphans become
//     children of this program. One whose parents were gone before the first look at it
//     is known by its session, by a resource limit that it inherited, by its AFOOT_TASK_ID,
//     the pipe it writes to, or because only one tree was there when it was born; one that
//     hid all that while several ran is told of in the log, and ended when no tree is left
//     or the host closes.
//   - group: the leader's session, with all process groups in it. It misses whoever
//     made a session of its own.
package proc
