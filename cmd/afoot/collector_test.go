package main

import (
	"compress/gzip"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	collect "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// collector takes spans by OTLP over HTTP, as a real one does.
type collector struct {
	t      *testing.T
	server *httptest.Server

	mu      sync.Mutex
	service map[string]string
	headers http.Header
	got     []*spans.Span
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{t: t}
	m := http.NewServeMux()
	m.HandleFunc("POST /v1/traces", c.take)
	c.server = httptest.NewServer(m)
	t.Cleanup(c.server.Close)
	return c
}

func (c *collector) take(w http.ResponseWriter, r *http.Request) {
	assert.Equal(c.t, "application/x-protobuf", r.Header.Get("Content-Type"))
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		zipped, err := gzip.NewReader(r.Body)
		if !assert.NoError(c.t, err) {
			return
		}
		body = zipped
	}
	data, err := io.ReadAll(body)
	assert.NoError(c.t, err)
	var request collect.ExportTraceServiceRequest
	assert.NoError(c.t, proto.Unmarshal(data, &request))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.headers = r.Header
	for _, of := range request.GetResourceSpans() {
		c.service = texts(of.GetResource().GetAttributes())
		for _, scope := range of.GetScopeSpans() {
			c.got = append(c.got, scope.GetSpans()...)
		}
	}
	answer, err := proto.Marshal(&collect.ExportTraceServiceResponse{})
	assert.NoError(c.t, err)
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(answer)
}

// all gives the spans of one trace by name, and how the sender calls itself.
func (c *collector) all(trace string) (named map[string]*spans.Span, service map[string]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	named = make(map[string]*spans.Span)
	for _, s := range c.got {
		if hex.EncodeToString(s.GetTraceId()) == trace {
			named[s.GetName()] = s
		}
	}
	return named, c.service
}

// texts gives the attributes that are text.
func texts(from []*common.KeyValue) map[string]string {
	all := make(map[string]string, len(from))
	for _, kv := range from {
		all[kv.GetKey()] = kv.GetValue().GetStringValue()
	}
	return all
}
