// Package tools is the agents' side of the daemon: the tools that a model calls,
// whatever carries the call. It has their definitions, reads their arguments
// strictly, makes the calls of the registry, and words the answers.
//
// An [Answer] may carry a read that counts only once it has reached its caller: who
// writes the answer confirms it afterwards, or abandons it.
//
// It knows neither HTTP nor MCP, and starts no goroutine.
package tools
