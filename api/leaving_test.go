package api_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"afoot/api/wire"
	"afoot/registry"
)

// TestLeavingRefusesAsAlways has what comes by an open connection to a daemon that is
// being replaced: behind the doors it is told to come again at once.
func TestLeavingRefusesAsAlways(t *testing.T) {
	w := newWorld(t)
	get := func(host, path string) (*http.Response, answer) {
		t.Helper()
		r := w.request(t.Context(), http.MethodGet, path, "")
		r.Host = host
		res, err := w.server.Client().Do(r)
		w.is.NoError(err)
		defer res.Body.Close()
		return res, w.answered(res)
	}
	w.api.Leave()
	res, a := get("localhost", "/tasks")
	p := a.refused(http.StatusServiceUnavailable, "unavailable")
	w.is.Equal(wire.Problem{
		Type: p.Type, Title: "Not available now", Status: p.Status, Code: p.Code, RequestId: p.RequestId,
		Detail: "The daemon is being replaced; ask again at once.",
	}, p)
	w.is.Equal("0", res.Header.Get("Retry-After"))
	w.is.True(res.Close)
	_, a = get("evil.example", "/tasks")
	a.refused(http.StatusMisdirectedRequest, "foreign_host")
	w.api.Stay()
	// So is who came just before, and met what is on its way already.
	w.ended("x")
	w.faulty.openLog = func(context.Context) (registry.RawLog, error) {
		w.api.Leave()
		moving := registry.Errorf(registry.CodeUnavailable, "It is elsewhere.")
		moving.RetryAfter = time.Second
		return nil, moving
	}
	_, late := get("localhost", "/tasks/bash-1/log")
	p = late.refused(http.StatusServiceUnavailable, "unavailable")
	w.is.Equal("The daemon is being replaced; ask again at once.", p.Detail)
	w.is.Equal("0", late.header.Get("Retry-After"))
	w.api.Stay()
	_, a = get("localhost", "/tasks")
	a.ok(http.StatusOK)
}
