// Package client speaks to a running Afoot daemon.
//
// Calls and types are generated from openapi.yaml. Written by hand are what a
// generator can't know: [New] makes a client for an address, TCP or Unix socket;
// [Check] turns a refusal into an [*Error]; [Client.Follow] and [Client.Subscribe]
// read streams, the latter across reconnects by Last-Event-ID.
//
// It does not start daemons, find secrets or make tokens.
package client

//go:generate oapi-codegen -config oapi.yaml ../../openapi.yaml
