// Package client speaks to a running Afoot daemon.
//
// Calls and types are generated from openapi.yaml. Written by hand is what a
// generator can't know: [Check] turns a refusal into an error, [Client.Subscribe]
// reads the event stream across reconnects by Last-Event-ID, [Client.Follow] reads
// a task's log to its end across reconnects by offset.
//
// It does not start daemons, find secrets or make tokens: a [RequestEditorFn] adds
// the header Authorization.
package client

//go:generate oapi-codegen -config oapi.yaml ../../openapi.yaml
