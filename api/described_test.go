package api_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
	"github.com/stretchr/testify/require"
)

// described is openapi.yaml, against which every exchange of these tests is held.
type described struct {
	doc    *openapi3.T
	router routers.Router
}

var describe = sync.OnceValues(func() (*described, error) {
	doc, err := openapi3.NewLoader().LoadFromFile("../openapi.yaml")
	if err != nil {
		return nil, err
	}
	doc.Servers = nil // the tests' servers have other addresses
	router, err := legacy.NewRouter(doc)
	if err != nil {
		return nil, err
	}
	return &described{doc: doc, router: router}, nil
})

// exchange is one request with its answer. Body is nil for a stream.
type exchange struct {
	request *http.Request
	sent    string
	status  int
	header  http.Header
	body    []byte
}

// holds reports what of an exchange is not as described, and which documented
// operation and status it was; neither for paths and methods that are not there.
func (d *described) holds(x exchange) (what string, err error) {
	r := x.request.Clone(context.Background())
	head := r.Method == http.MethodHead
	if head {
		r.Method = http.MethodGet
	}
	r.URL = &url.URL{Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: r.URL.RawQuery}
	r.Body = io.NopCloser(strings.NewReader(x.sent))
	route, params, err := d.router.FindRoute(r)
	if err != nil || x.status == http.StatusMethodNotAllowed {
		return "", nil //nolint:nilerr // not described, and not to be
	}
	what = fmt.Sprintf("%s %s %d", route.Method, route.Path, x.status)
	options := &openapi3filter.Options{
		AuthenticationFunc:    openapi3filter.NoopAuthenticationFunc,
		IncludeResponseStatus: true,
		ExcludeResponseBody:   head || x.body == nil || strings.HasPrefix(x.header.Get("Content-Type"), "text/event-stream") || x.status == http.StatusNoContent,
	}
	in := &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route, Options: options}
	// A number that no 64 bits hold is clamped; the validator can't know it.
	if huge := strings.Contains(r.URL.RawQuery, "99999999999999999999"); x.status < http.StatusMultipleChoices && !huge {
		if err := openapi3filter.ValidateRequest(context.Background(), in); err != nil {
			return what, fmt.Errorf("the request went well and is not as described: %w", err)
		}
	}
	err = openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: in, Status: x.status, Header: x.header,
		Body: io.NopCloser(bytes.NewReader(x.body)), Options: options,
	})
	return what, err
}

// check fails the test unless the exchange is as described.
func (w *world) check(x exchange) {
	w.t.Helper()
	d, err := describe()
	w.is.NoError(err)
	what, err := d.holds(x)
	w.is.NoError(err, "%s %s: %d %s", x.request.Method, x.request.URL, x.status, x.body)
	w.seen.Store(what, true)
}

func TestDescriptionIsValid(t *testing.T) {
	d, err := describe()
	require.NoError(t, err)
	require.NoError(t, d.doc.Validate(context.Background()))
}
