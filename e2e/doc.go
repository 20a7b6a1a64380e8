// Package e2e proves the promises of the daemon from outside: every test starts
// the built binary with a state directory of its own and speaks to it over
// HTTP, Server-Sent Events and bare TCP, as callers do.
//
// It imports no room of the daemon and knows nothing of how it is made. A test
// that proves a row of the case list carries the row's id in its name. No test
// sleeps to wait for a fact: it polls a condition with a deadline, opens a gate
// (a FIFO) at which the task waits, or lets a later event prove that an earlier
// one never came.
//
// The official MCP client and conformance suite run by Node, with the packages of
// mcp/; their tests skip where those can't be had, or fail with E2E_NODE=required.
//
// AFOOT_E2E_BIN names a binary to test instead of building one.
package e2e
