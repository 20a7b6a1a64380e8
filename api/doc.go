// Package api turns HTTP into calls of the registry and their results back into
// answers. It decides nothing about tasks: it proves who calls, reads requests
// strictly, and writes what it is given.
//
// A request goes through one chain: request id, doors (Host, Origin), route,
// token, scope, acting agent, handler. A handler returns an error instead of
// writing one; errors.go is the one table from code to status, convert.go the one
// place that knows both wire and domain types, query.go and body.go the only
// readers of input, call.go the only writer of bytes.
//
// A consuming read is committed after its answer was flushed to a caller who was
// still there (deliver.go). Every write has a deadline of its own, so that a
// caller who stops reading gives its turn back.
//
// The package starts no goroutine, keeps no task, and knows no producer, no store
// and no web page; those are handed in.
package api
