// Package mcp speaks the Model Context Protocol for the daemon: the tools of
// [afoot/api/tools], each owned task's log as a resource, and the Tasks extension,
// over streamable HTTP by the protocol's official SDK.
//
// Whoever serves HTTP proves the caller, hands a request over as an [Exchange], writes
// what that has, and says what became of it. So cursor and notice move only when the
// answer was written: an exchange keeps the deliveries of its calls until it is
// confirmed or abandoned.
//
// The older protocols have sessions. One belongs to the session and agent of its
// opener, is ended by silence and by the end of its agent, and lives in memory alone:
// after a restart its client begins a new one. From 2026-07-28 on each request stands
// for itself.
//
// It authenticates nobody, and never learns how a task runs.
package mcp
