// Package registry says what a task is and what may happen to it: the
// vocabulary, the pure rules, the [Service] that callers use, the [Producer]
// contract that kinds of work fulfil, and the errors of both.
//
// It holds no task itself (registry/inmem does), starts no process, and knows
// neither HTTP nor the file system. Sessions are kept apart here: every call
// names a [Caller], and what belongs to another session is refused with
// [CodeForeignTask], never hidden behind a success.
//
// Order of events, per task: registered, stopping (if it is stopped before its
// end), settled, then the completion notice, then reported or removed. Change
// listeners see the first three before any completion listener sees the end.
package registry
