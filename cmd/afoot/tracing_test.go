package main

import (
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The trace of a caller.
const (
	callersTrace  = "4bf92f3577b34da6a3ce929d0e0e4736"
	callersSpan   = "00f067aa0ba902b7"
	callersParent = "00-" + callersTrace + "-" + callersSpan + "-01"
)

// traced runs a command within the caller's trace, to its end.
func (r *rig) traced(body string) {
	r.t.Helper()
	info, err := readListenInfo(r.state)
	require.NoError(r.t, err)
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, info.URL+"/tasks?wait=true", strings.NewReader(body))
	require.NoError(r.t, err)
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(r.ok("token", "--session", "local", "--ttl", "1h")))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Traceparent", callersParent)
	req.Header.Set("Tracestate", "vendor=1")
	res, err := http.DefaultClient.Do(req)
	require.NoError(r.t, err)
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	require.NoError(r.t, err)
	require.Less(r.t, res.StatusCode, 300, "%s", data)
}

// TestTraces: from the caller's span through the start, the journal and the command to
// the end of the task, by the protocol of a real collector.
func TestTraces(t *testing.T) {
	t.Parallel()
	at := newCollector(t)
	r := newRig(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+at.server.URL, "OTEL_EXPORTER_OTLP_HEADERS=x-of=afoot", "OTEL_EXPORTER_OTLP_COMPRESSION=gzip",
		"OTEL_RESOURCE_ATTRIBUTES=deployment.environment.name=test", "OTEL_BSP_SCHEDULE_DELAY=20")
	r.serve()
	r.traced(`{"kind":"bash","command":"echo secret-word; echo \"$TRACEPARENT $TRACESTATE\""}`)
	want := []string{"POST /tasks", "start bash", "journal commit", "settle bash"}
	r.eventually("all spans", func() bool {
		got, _ := at.all(callersTrace)
		return len(got) == len(want)
	})
	got, service := at.all(callersTrace)
	require.Equal(t, "afoot", service["service.name"])
	require.Equal(t, "test", service["deployment.environment.name"])
	require.NotEmpty(t, service["service.version"])
	require.Equal(t, "afoot", at.headers.Get("X-Of"))
	parents := map[string]string{"POST /tasks": "", "start bash": "POST /tasks", "journal commit": "POST /tasks", "settle bash": "start bash"}
	for name, parent := range parents {
		require.Contains(t, got, name)
		want := callersSpan
		if parent != "" {
			want = hex.EncodeToString(got[parent].GetSpanId())
		}
		require.Equal(t, want, hex.EncodeToString(got[name].GetParentSpanId()), name)
		require.NotContains(t, got[name].String(), "secret-word")
		require.NotContains(t, got[name].String(), "local")
	}
	require.Equal(t, "bash-1", texts(got["settle bash"].GetAttributes())["afoot.task.id"])
	require.Equal(t, "completed", texts(got["settle bash"].GetAttributes())["afoot.task.status"])
	start := hex.EncodeToString(got["start bash"].GetSpanId())
	require.Contains(t, r.ok("logs", "bash-1"), "00-"+callersTrace+"-"+start+"-01 vendor=1\n")

	r.traced(`{"kind":"bash","command":"echo $TRACEPARENT","env":{"TRACEPARENT":"the caller's"}}`)
	require.Equal(t, "the caller's\n", r.ok("logs", "bash-2"))

	r.ok("run", "-d", "--", "sleep 1; true")
	r.stop()
	require.NotContains(t, r.out.String(), "traces", "all went well")
}

// TestTracesOff: nothing of it where it is not asked for.
func TestTracesOff(t *testing.T) {
	t.Parallel()
	r := newRig(t, "OTEL_SERVICE_NAME=x")
	r.serve()
	r.traced(`{"kind":"bash","command":"echo ${TRACEPARENT-none}"}`)
	require.Equal(t, "none\n", r.ok("logs", "bash-1"))
}

// TestTracesWithoutACollector: who does not answer holds up nobody.
func TestTracesWithoutACollector(t *testing.T) {
	t.Parallel()
	stuck := make(chan struct{})
	at := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-stuck }))
	t.Cleanup(at.Close)
	t.Cleanup(func() { close(stuck) })
	r := newRig(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+at.URL)
	r.serve()
	r.ok("run", "--", "true")
	r.stop()
	require.Contains(t, r.out.String(), "the last traces were not delivered")
}

// TestTracesThatAreWrong: variables that are often set for a whole machine stop no start.
func TestTracesThatAreWrong(t *testing.T) {
	t.Parallel()
	for _, wrong := range []string{
		"OTEL_EXPORTER_OTLP_ENDPOINT=::nowhere",
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1 OTEL_EXPORTER_OTLP_CERTIFICATE=/no/such/file",
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1 OTEL_EXPORTER_OTLP_HEADERS=s3cr3t OTEL_EXPORTER_OTLP_TIMEOUT=soon",
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1 OTEL_RESOURCE_ATTRIBUTES=%zz OTEL_TRACES_SAMPLER=never_heard",
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1 OTEL_EXPORTER_OTLP_PROTOCOL=grpc",
	} {
		t.Run(wrong, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, strings.Fields(wrong)...)
			r.serve()
			r.ok("run", "--", "true")
			r.stop()
			require.Regexp(t, `level=WARN msg=".*traces`, r.out.String())
			require.NotContains(t, r.out.String(), "level=ERROR")
			require.NotContains(t, r.out.String(), "s3cr3t")
		})
	}
}

func TestWantsTraces(t *testing.T) {
	for _, c := range []struct {
		env    string
		wanted bool
		why    string
	}{
		{"", false, ""},
		{"OTEL_SERVICE_NAME=x", false, ""},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://x:4318", true, ""},
		{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://x:4318/v1/traces", true, ""},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=", false, ""},
		{"OTEL_TRACES_EXPORTER=otlp", true, ""},
		{"OTEL_TRACES_EXPORTER=console,otlp", true, ""},
		{"OTEL_TRACES_EXPORTER=none OTEL_EXPORTER_OTLP_ENDPOINT=http://x", false, ""},
		{"OTEL_TRACES_EXPORTER=zipkin OTEL_EXPORTER_OTLP_ENDPOINT=http://x", false, ""},
		{"OTEL_SDK_DISABLED=TRUE OTEL_TRACES_EXPORTER=otlp", false, ""},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://x OTEL_EXPORTER_OTLP_PROTOCOL=grpc", false, `"grpc"`},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://x OTEL_EXPORTER_OTLP_PROTOCOL=grpc OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf", true, ""},
		{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=http://x", false, ""},
	} {
		wanted, why := wantsTraces(&Config{Environ: strings.Fields(c.env)})
		require.Equal(t, c.wanted, wanted, c.env)
		if c.why == "" {
			require.Empty(t, why, c.env)
		} else {
			require.Contains(t, why, c.why)
		}
	}
}
