package api_test

import (
	"net/http"
	"testing"

	"afoot/api/wire"
)

// TestLeavingRefusesAsAlways has what comes by an open connection to a daemon that is
// being replaced: behind the doors it is told to come again at once.
func TestLeavingRefusesAsAlways(t *testing.T) {
	w := newWorld(t)
	get := func(host string) (*http.Response, answer) {
		t.Helper()
		r := w.request(t.Context(), http.MethodGet, "/tasks", "")
		r.Host = host
		res, err := w.server.Client().Do(r)
		w.is.NoError(err)
		defer res.Body.Close()
		return res, w.answered(res)
	}
	w.api.Leave()
	res, a := get("localhost")
	p := a.refused(http.StatusServiceUnavailable, "unavailable")
	w.is.Equal(wire.Problem{
		Type: p.Type, Title: "Not available now", Status: p.Status, Code: p.Code, RequestId: p.RequestId,
		Detail: "The daemon is being replaced; ask again at once.",
	}, p)
	w.is.Equal("0", res.Header.Get("Retry-After"))
	w.is.True(res.Close)
	_, a = get("evil.example")
	a.refused(http.StatusMisdirectedRequest, "foreign_host")
	w.api.Stay()
	_, a = get("localhost")
	a.ok(http.StatusOK)
}
