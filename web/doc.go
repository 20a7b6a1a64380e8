// Package web is the page for people: static files, embedded in the binary and
// served with a strict content security policy. The page talks to the HTTP
// interface of the same origin, as any other client would.
//
// It needs no build step, holds no secret, and asks no other host for anything.
// It knows nothing about tasks; what it shows, the browser fetches itself.
package web
