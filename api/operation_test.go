package api_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"afoot/api"
	"afoot/api/wire"
	"afoot/auth"
	"afoot/registry"
	"afoot/registry/registrytest"
)

func TestOpenPaths(t *testing.T) {
	ready := errors.New("not yet")
	w := newWorld(t, func(s *setup) { s.api.Ready = func() error { return ready } })
	w.is.JSONEq(`{"status":"ok"}`, string(w.get("/healthz", "Authorization", "").ok(http.StatusOK).body))
	w.get("/readyz", "Authorization", "").refused(http.StatusServiceUnavailable, "unavailable")
	ready = nil
	w.is.JSONEq(`{"status":"ok"}`, string(w.get("/readyz", "Authorization", "").ok(http.StatusOK).body))

	want, err := os.ReadFile("../openapi.yaml")
	w.is.NoError(err)
	a := w.get("/openapi.yaml", "Authorization", "").ok(http.StatusOK)
	w.is.Equal("application/yaml", a.header.Get("Content-Type"))
	w.is.Equal(string(want), string(a.body), "the embedded description is the project's: run make generate")
	w.is.Empty(w.call(http.MethodHead, "/openapi.yaml", "", "Authorization", "").ok(http.StatusOK).body)

	for _, path := range []string{"/tasks", "/tasks/bash-1", "/tasks/bash-1/output", "/tasks/bash-1/log", "/events", "/agents", "/version", "/metrics"} {
		a := w.get(path, "Authorization", "")
		a.refused(http.StatusUnauthorized, "unauthenticated")
		w.is.Equal(`Bearer realm="afoot"`, a.header.Get("WWW-Authenticate"))
		bad := w.get(path, "Authorization", "Bearer x.y.z")
		bad.refused(http.StatusUnauthorized, "unauthenticated")
		w.is.Contains(bad.header.Get("WWW-Authenticate"), `error="invalid_token"`)
		w.is.Equal(http.StatusUnauthorized, w.call(http.MethodHead, path, "", "Authorization", "").status)
	}
	none := w.as(auth.Claims{Session: "alice"})
	none.get("/tasks").refused(http.StatusForbidden, "forbidden")
	none.get("/version").ok(http.StatusOK)
}

func TestVersion(t *testing.T) {
	w := newWorld(t, func(s *setup) { s.api.Version = api.VersionInfo{Version: "1.2.3", Commit: "abc"} })
	v := into[wire.Version](w.get("/version").ok(http.StatusOK))
	w.is.Equal("1.2.3", v.Version)
	w.is.Equal("abc", v.Commit)
	w.is.NotEmpty(v.Go)
}

func TestUnknownPathsAndMethods(t *testing.T) {
	w := newWorld(t)
	for _, path := range []string{"/", "/task", "/tasks/", "/tasks/bash-1/", "/tasks/bash-1/nothing", "/agents/x/y", "/%2e%2e/etc"} {
		w.get(path, "Authorization", "").refused(http.StatusNotFound, "not_found")
	}
	for _, c := range []struct{ method, path, allow string }{
		{"PUT", "/tasks", "GET, HEAD, POST"},
		{"POST", "/tasks/bash-1", "GET, HEAD, DELETE"},
		{"PATCH", "/tasks/bash-1/output", "GET, HEAD"},
		{"GET", "/tasks/bash-1/ack", "POST"},
		{"OPTIONS", "/tasks", "GET, HEAD, POST"},
		{"DELETE", "/agents", "GET, HEAD, POST"},
		{"BREW", "/healthz", "GET, HEAD"},
	} {
		a := w.call(c.method, c.path, "")
		a.refused(http.StatusMethodNotAllowed, "method_not_allowed")
		w.is.Equal(c.allow, a.header.Get("Allow"), c.path)
	}
}

func TestPage(t *testing.T) {
	page := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			http.Error(w, "no such page", http.StatusNotFound)
			return
		}
		_, _ = io.WriteString(w, "<title>Afoot</title>")
	})
	w := newWorld(t, func(s *setup) { s.api.Page = page })
	w.is.Equal("<title>Afoot</title>", string(w.get("/", "Authorization", "").ok(http.StatusOK).body))
	w.get("/nothing", "Authorization", "").refused(http.StatusNotFound, "not_found")
	w.call(http.MethodPost, "/", "", "Authorization", "").refused(http.StatusNotFound, "not_found")
	w.get("/", "Host", "evil.example").refused(http.StatusMisdirectedRequest, "foreign_host")
}

// TestDoorsComeFirst: before token, path and body, on every path.
func TestDoorsComeFirst(t *testing.T) {
	w := newWorld(t, func(s *setup) { s.api.Doors = auth.Doors{Origins: []string{"https://ui.example"}} })
	for _, path := range []string{"/", "/tasks", "/healthz", "/openapi.yaml", "/nothing", "/auth/exchange"} {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodOptions} {
			a := w.call(method, path, "", "Host", "localhost.evil.example", "Origin", "http://localhost.evil.example", "Authorization", "")
			a.refused(http.StatusMisdirectedRequest, "foreign_host")
			w.is.Empty(a.header.Get("Access-Control-Allow-Origin"))
			w.call(method, path, "", "Origin", "https://evil.example").refused(http.StatusForbidden, "foreign_origin")
			w.call(method, path, "", "Origin", "null").refused(http.StatusForbidden, "foreign_origin")
		}
	}
	a := w.get("/tasks", "Origin", "https://ui.example").ok(http.StatusOK)
	w.is.Equal("https://ui.example", a.header.Get("Access-Control-Allow-Origin"))
	w.get("/tasks", "Origin", w.server.URL).ok(http.StatusOK)
	pre := w.call(http.MethodOptions, "/tasks", "", "Origin", "https://ui.example", "Access-Control-Request-Method", "POST", "Authorization", "")
	w.is.Equal(http.StatusNoContent, pre.status)
	// A cookie is no credential, and a cross-site form starts nothing.
	w.call(http.MethodPost, "/tasks", `{"kind":"bash","command":"x"}`, "Authorization", "", "Cookie", "token="+w.token).refused(http.StatusUnauthorized, "unauthenticated")
	w.call(http.MethodPost, "/tasks", `{"kind":"bash","command":"x"}`, "Content-Type", "text/plain").refused(http.StatusUnsupportedMediaType, "unsupported_media")
	w.is.Zero(w.jobs.Starts())
	// An own answer keeps what the doors vary by.
	w.start(registrytest.Script{})
	w.is.ElementsMatch([]string{"Origin", "Accept"}, w.get("/tasks/bash-1/output").header.Values("Vary"))
}

func TestTokens(t *testing.T) {
	w := newWorld(t)
	made := w.call(http.MethodPost, "/auth/code", "").ok(http.StatusCreated)
	w.is.Equal("no-store", made.header.Get("Cache-Control"))
	code := into[wire.AuthCode](made)
	w.is.Greater(code.ExpiresAt, time.Now().UnixMilli())
	exchange := func(body string) answer {
		return w.call(http.MethodPost, "/auth/exchange", body, "Authorization", "")
	}
	body, err := json.Marshal(wire.ExchangeRequest{Code: code.Code})
	w.is.NoError(err)
	got := exchange(string(body)).ok(http.StatusOK)
	w.is.Equal("no-store", got.header.Get("Cache-Control"))
	exchange(string(body)).refused(http.StatusUnauthorized, "unauthenticated")
	for _, bad := range []string{`{}`, `{"code":""}`, `{"code":null}`, `{"code":1}`, `{"code":"x","y":1}`} {
		exchange(bad).refused(http.StatusBadRequest, "invalid")
	}

	other := *w
	other.token = into[wire.Token](got).Token
	other.start(registrytest.Script{})
	w.get("/tasks/bash-1").ok(http.StatusOK)
	fresh := into[wire.Token](other.call(http.MethodPost, "/auth/renew", "").ok(http.StatusOK))
	w.is.Greater(fresh.ExpiresAt, time.Now().UnixMilli())
	other.token = fresh.Token
	other.get("/tasks/bash-1").ok(http.StatusOK)
	w.call(http.MethodPost, "/auth/renew", "", "Authorization", "").refused(http.StatusUnauthorized, "unauthenticated")

	for range 20 {
		if a := w.call(http.MethodPost, "/auth/code", ""); a.status != http.StatusCreated {
			a.refused(http.StatusTooManyRequests, "limit_reached")
			w.is.NotEmpty(a.header.Get("Retry-After"))
			return
		}
	}
	w.is.Fail("codes are not limited")
}

func TestMetrics(t *testing.T) {
	w := newWorld(t)
	dropping := w.start(registrytest.Script{})
	dropping.Output.Append("12345")
	dropping.Output.Drop(2)
	dropping.Complete("exit code: 0")
	w.start(registrytest.Script{})
	w.get("/tasks/bash-9").refused(http.StatusNotFound, "unknown_task")
	w.subscribe("")
	w.get("/metrics").refused(http.StatusForbidden, "forbidden")
	m := w.as(auth.Claims{Scopes: auth.Metrics})
	a := m.get("/metrics").ok(http.StatusOK)
	w.is.Contains(a.header.Get("Content-Type"), "text/plain")
	for _, line := range []string{
		`afoot_tasks{kind="bash",status="completed"} 1`,
		`afoot_tasks{kind="bash",status="running"} 1`,
		`afoot_start_seconds_count 2`,
		`afoot_settle_seconds_count 1`,
		`afoot_output_bytes_total 5`,
		`afoot_output_dropped_bytes_total 2`,
		`afoot_recovered_tasks_total 0`,
		`afoot_refusals_total{code="unknown_task"} 1`,
		`afoot_refusals_total{code="forbidden"} 1`,
		`afoot_waits 0`,
		`afoot_streams 1`,
		`go_goroutines `,
	} {
		w.is.Contains(string(a.body), line)
	}
}

// TestInternalErrors: a fixed sentence for the caller, the cause in the log under
// the request id.
func TestInternalErrors(t *testing.T) {
	cause := errors.New("the secret cause")
	w := newWorld(t)
	for _, c := range []struct {
		name   string
		script registrytest.Script
		status int
		code   string
		hidden bool
	}{
		{"an error nobody foresaw", registrytest.Script{Prepare: func(ctx) error { return cause }}, 500, "internal", true},
		{"a panic", registrytest.Script{Prepare: func(ctx) error { panic(cause) }}, 500, "internal", true},
		{"a code nobody knows", registrytest.Script{Prepare: func(ctx) error { return registry.Errorf("strange", "the secret cause") }}, 500, "internal", true},
		{"a known one with a cause", registrytest.Script{Start: func(ctx, *registrytest.Work) error {
			return registry.Wrap(registry.CodeInsufficientStorage, cause, "the disk is full")
		}}, 507, "insufficient_storage", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := w.call(http.MethodPost, "/tasks", w.body(c.script)).refused(c.status, c.code)
			require.NotContains(t, p.Detail, "secret")
			if c.hidden {
				require.Equal(t, "The daemon could not answer this request; its log has the cause under the request id.", p.Detail)
			}
			log := w.log.String()
			require.Contains(t, log, "request="+p.RequestId)
			require.Contains(t, log, "the secret cause")
		})
	}
}

// TestLog lines never hold what must stay secret.
func TestAccessLog(t *testing.T) {
	w := newWorld(t)
	w.ended("the output")
	w.get("/tasks/bash-1/output?offset=0").ok(http.StatusOK)
	w.get("/tasks/bash-9", "X-Request-Id", "chosen").refused(http.StatusNotFound, "unknown_task")
	w.eventually(func() bool { return strings.Contains(w.log.String(), "path=/tasks/bash-9") }, "logged")
	log := w.log.String()
	w.is.Contains(log, "level=INFO msg=request request=")
	w.is.Contains(log, "code=unknown_task")
	w.is.Contains(log, "level=DEBUG msg=request request=")
	for _, secret := range []string{w.token, "alice", "the output", "scripted", "chosen", "offset="} {
		w.is.NotContains(log, secret)
	}
}

func TestNewRefusesBadConfiguration(t *testing.T) {
	_, err := api.New(api.Config{})
	require.Error(t, err)
	w := newWorld(t)
	_, err = api.New(api.Config{Service: w.service, Authority: w.authority, Hub: w.hub, WaitDefault: time.Hour, WaitMax: time.Minute})
	require.ErrorContains(t, err, "1h0m0s")
}
