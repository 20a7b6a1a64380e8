package api_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sort"
	"strings"
	"testing"
	"time"

	"afoot/api/webhook"
	"afoot/api/wire"
	"afoot/auth"
	"afoot/registry"
	"afoot/registry/inmem"
	"afoot/registry/registrytest"
)

// notExercised are the documented answers that a test can't bring about from
// outside, each with the reason.
func notExercised(what string) (reason string, ok bool) {
	switch what {
	case "POST /auth/code 500", "POST /auth/exchange 500", "POST /auth/renew 500":
		return "minting a token from a key that was read already has nothing that fails", true
	case "GET /metrics 500":
		return "only a collector that contradicts itself makes it fail", true
	}
	return "", false
}

// TestConformance brings about every documented status of every documented
// operation at a running server, and holds each request and answer against
// openapi.yaml.
func TestConformance(t *testing.T) {
	ready := error(nil)
	kept := &hookJournal{}
	var hooks *webhook.Poster
	w := newWorld(t, func(s *setup) {
		s.inmem = inmem.Config{MaxTasksPerOwner: 8, MaxAgentsPerSession: 2}
		s.sse.MaxStreamsPerSession = 2
		s.auth.CodeBurst = 2
		s.api.Ready = func() error { return ready }
		s.api.Page = http.NotFoundHandler()
		hooks = posts(t, s, webhook.Config{Hosts: []string{"localhost"}, MaxPerOwner: 2, Journal: kept})
	})
	bob := w.as(auth.Claims{Session: "bob", Scopes: auth.TasksRead | auth.TasksWrite})
	nobody := w.as(auth.Claims{Scopes: auth.TasksRead | auth.TasksWrite})
	meter := w.as(auth.Claims{Scopes: auth.Metrics})

	// Tasks to meet: bash-1 lives, bash-2 has ended, bash-3 is purged, bash-4 has
	// only final output.
	w.start(registrytest.Script{})
	w.ended("0123456789")
	w.ended("")
	w.call("DELETE", "/tasks/bash-3?purge=true", "").ok(204)
	w.start(registrytest.Script{Final: true})
	broken := w.start(registrytest.Script{Cancel: func(*registrytest.Work, string) error {
		return registry.Errorf(registry.CodeUnavailable, "not now")
	}})
	gone := into[wire.Agent](w.call("POST", "/agents", `{"label":"a"}`).ok(201))
	w.call("DELETE", "/agents/"+gone.Id, "").ok(204)
	foreign := into[wire.Agent](bob.call("POST", "/agents", `{"leaseMs":60000}`).ok(201))

	calls := []struct{ method, path, body string }{
		{"POST", "/tasks", `{"kind":"bash","command":"x"}`},
		{"GET", "/tasks", ""},
		{"GET", "/tasks/bash-1", ""},
		{"DELETE", "/tasks/bash-1", ""},
		{"GET", "/tasks/bash-1/output", ""},
		{"POST", "/tasks/bash-1/ack", `{"nextOffset":0}`},
		{"POST", "/tasks/bash-1/input", `{"data":"x"}`},
		{"POST", "/tasks/bash-1/signal", `{"signal":"INT"}`},
		{"GET", "/tasks/bash-1/events", ""},
		{"GET", "/tasks/bash-1/log", ""},
		{"GET", "/events", ""},
		{"POST", "/agents", "{}"},
		{"GET", "/agents", ""},
		{"DELETE", "/agents/agent-9", ""},
		{"POST", "/webhooks", hookBody("http://localhost/")},
		{"GET", "/webhooks", ""},
		{"DELETE", "/webhooks/webhook-x", ""},
		{"GET", "/tools", ""},
		{"GET", "/tools/guidance", ""},
		{"POST", "/tools/task_list", "{}"},
	}

	// The refusals that every call about tasks and agents has in common.
	for _, c := range calls {
		w.call(c.method, c.path+"?nonsense=1", c.body).ok(400)
		w.call(c.method, c.path, c.body, "Afoot-Agent", "agent-99").ok(404)
		w.call(c.method, c.path, c.body, "Afoot-Agent", gone.Id).ok(410)
		w.call(c.method, c.path, c.body, "Afoot-Agent", foreign.Id).ok(403)
		if c.method == "POST" {
			w.call(c.method, c.path, `"`+strings.Repeat("x", 2<<20)+`"`).ok(413)
			w.call(c.method, c.path, c.body, "Content-Type", "text/plain").ok(415)
		}
	}
	w.faulty.broken.Store(true)
	for _, c := range calls {
		w.call(c.method, c.path, c.body, "Afoot-Agent", foreign.Id).ok(500)
		if c.path != "/events" && c.path != "/tools" && c.path != "/tools/guidance" && !strings.HasPrefix(c.path, "/webhooks") { // they ask no service
			w.call(c.method, c.path, c.body).ok(500)
		}
	}
	w.faulty.broken.Store(false)
	w.call("POST", "/auth/code?nonsense=1", "").ok(400)
	w.call("POST", "/auth/renew?nonsense=1", "").ok(400)
	w.call("POST", "/auth/exchange", "{}").ok(400)
	w.call("POST", "/auth/exchange", `"`+strings.Repeat("x", 2<<20)+`"`).ok(413)
	w.call("POST", "/auth/exchange", "{}", "Content-Type", "text/plain").ok(415)

	// The doors, the token and its scopes, for every operation there is.
	d, err := describe()
	w.is.NoError(err)
	for path, item := range d.doc.Paths.Map() {
		path = strings.NewReplacer("{id}", "x", "{name}", "x").Replace(path)
		for method, op := range item.Operations() {
			w.call(method, path, "", "Host", "evil.example").ok(421)
			w.call(method, path, "", "Origin", "https://evil.example").ok(403)
			if op.Security == nil {
				w.call(method, path, "", "Authorization", "").ok(401)
			}
		}
	}

	// What goes well, and what each call alone refuses.
	w.call("POST", "/tasks", `{"kind":"bash","command":"x","label":"l","outputLimitBytes":100,"workdir":"/","env":{"A":"b"},"timeoutMs":5,"stdin":"null","streams":"merged","leftovers":"keep","nice":19,"memoryMaxBytes":1048576,"pidsMax":5}`, "Idempotency-Key", "k").ok(201)
	w.call("POST", "/tasks", `{"kind":"bash","command":"y"}`, "Idempotency-Key", "k2").ok(201)
	w.call("POST", "/tasks", `{"kind":"bash","command":"y"}`, "Idempotency-Key", "k2").ok(200)
	w.call("POST", "/tasks", `{"kind":"bash","command":"y"}`, "Idempotency-Key", "k").ok(422)
	done := registrytest.Script{Start: func(_ ctx, work *registrytest.Work) error {
		work.Complete("exit code: 0")
		return nil
	}}
	w.call("POST", "/tasks?wait=true&timeout_ms=1000000000000", w.body(done), "Afoot-Ack", "explicit").ok(201)
	w.call("POST", "/tasks", w.body(registrytest.Script{Start: func(ctx, *registrytest.Work) error {
		return registry.Errorf(registry.CodeInsufficientStorage, "full")
	}})).ok(507)
	for range 8 {
		bob.start(registrytest.Script{})
	}
	bob.call("POST", "/tasks", bob.body(registrytest.Script{})).ok(429)
	nobody.call("POST", "/tasks", nobody.body(registrytest.Script{})).ok(201)

	w.get("/tasks?status=running&kind=bash&limit=1").ok(200)
	w.get("/tasks?limit=2000").ok(200)
	w.get("/tasks/bash-1").ok(200)
	w.get("/tasks/bash-2").ok(200)
	w.get("/tasks/bash-1/output?wait=true&timeout_ms=1&limit_bytes=5").ok(200)
	w.get("/tasks/bash-2/output?offset=3", "Accept", "text/plain").ok(200)
	w.get("/tasks/bash-2/output", "Afoot-Ack", "explicit").ok(200)
	w.call("HEAD", "/tasks/bash-2/output", "").ok(200)
	w.call("POST", "/tasks/bash-2/ack", `{"nextOffset":10}`).ok(204)
	w.call("POST", "/tasks/bash-2/ack", `{"nextOffset":11}`).ok(409)
	w.get("/tasks/bash-2/output?offset=0&view=plain&stream=stdout").ok(200)
	w.call("POST", "/tasks/bash-1/input", `{"data":"x","close":true}`).ok(409)
	w.call("POST", "/tasks/bash-2/signal", `{"signal":"INT"}`).ok(409)
	whole := nobody.start(registrytest.Script{
		Split:  true,
		Signal: func(*registrytest.Work, string) error { return nil },
		Input: func(_ ctx, _ *registrytest.Work, data []byte, last bool) (registry.InputResult, error) {
			return registry.InputResult{Written: len(data), Closed: last}, nil
		},
	})
	w.call("POST", "/tasks/"+string(whole.ID)+"/input", `{"dataBase64":"eA==","close":true}`).ok(200)
	w.call("POST", "/tasks/"+string(whole.ID)+"/signal", `{"signal":"INT"}`).ok(204)
	w.get("/tasks/" + string(whole.ID) + "/output").ok(200)
	w.get("/tasks/" + string(whole.ID) + "/output?stream=stderr").ok(200)
	w.get("/tasks/bash-2/events?offset=3").ok(200)
	w.get("/tasks/bash-2/events", "Last-Event-ID", "x").ok(200)
	w.call("HEAD", "/tasks/bash-2/events", "").ok(200)
	w.get("/tasks/bash-2/log").ok(200)
	w.call("HEAD", "/tasks/bash-2/log", "").ok(200)
	w.get("/tasks/bash-2/log?follow=true").ok(200)
	w.get("/tasks/bash-2/log", "Range", "bytes=3-4").ok(206)
	w.get("/tasks/bash-2/log", "Range", "bytes=10-").ok(416)
	w.get("/tasks/bash-4/log").ok(409)
	w.call("DELETE", "/tasks/bash-1?purge=true", "").ok(409)
	w.call("DELETE", "/tasks/bash-1?reason=enough", "").ok(202)
	w.call("DELETE", "/tasks/bash-2", "").ok(200)
	w.call("DELETE", "/tasks/"+string(broken.ID), "").ok(503)
	w.get("/tools?format=anthropic").ok(200)
	w.get("/tools/guidance").ok(200)
	w.call("POST", "/tools/task_output", `{"task_id":"bash-2"}`).ok(200)
	w.get("/agents").ok(200)
	w.call("POST", "/agents", "").ok(201)
	w.call("POST", "/agents", "").ok(201)
	w.call("POST", "/agents", "").ok(429)

	w.call("POST", "/webhooks", hookBody("http://localhost/")).ok(201)
	kept.broken.Store(true)
	w.call("POST", "/webhooks", hookBody("http://localhost/")).ok(507)
	kept.broken.Store(false)
	w.call("POST", "/webhooks", hookBody("http://localhost/")).ok(201)
	w.call("POST", "/webhooks", hookBody("http://localhost/")).ok(429)
	w.call("DELETE", "/webhooks/x", "").ok(404)
	for _, hook := range into[wire.WebhookList](w.get("/webhooks").ok(200)).Webhooks {
		w.call("DELETE", "/webhooks/"+hook.Id, "").ok(204)
	}
	hooks.Close(context.Background())
	bob.call("POST", "/webhooks", hookBody("http://localhost/")).ok(503)

	code := into[wire.AuthCode](w.call("POST", "/auth/code", "").ok(201))
	w.call("POST", "/auth/code", "").ok(201)
	w.call("POST", "/auth/code", "").ok(429)
	w.call("POST", "/auth/exchange", `{"code":"`+code.Code+`"}`).ok(200)
	w.call("POST", "/auth/exchange", `{"code":"`+code.Code+`"}`).ok(401)
	w.call("POST", "/auth/renew", "").ok(200)
	w.get("/healthz").ok(200)
	w.get("/readyz").ok(200)
	ready = errors.New("not yet")
	w.get("/readyz").ok(503)
	w.get("/version").ok(200)
	meter.get("/metrics").ok(200)
	w.get("/openapi.yaml").ok(200)

	w.subscribe("?observe=true")
	w.subscribe("?agent=default", "Last-Event-ID", "nonsense")
	w.get("/events").ok(429)
	w.get("/tasks/bash-2/events").ok(429)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	w.is.NoError(w.hub.Close(ctx, "shutdown"))
	w.get("/events").ok(503)
	w.get("/tasks/bash-2/events").ok(503)
	w.jobs.Retire()
	w.is.NoError(w.service.Close(ctx))
	w.call("POST", "/tasks", w.body(registrytest.Script{})).ok(503)
	w.call("POST", "/agents", "").ok(503)

	var missing []string
	for path, item := range d.doc.Paths.Map() {
		for method, op := range item.Operations() {
			for status := range op.Responses.Map() {
				what := fmt.Sprintf("%s %s %s", method, path, status)
				_, seen := w.seen.Load(what)
				if _, excused := notExercised(what); seen == excused {
					missing = append(missing, what)
				}
			}
		}
	}
	sort.Strings(missing)
	w.is.Empty(missing, "documented and never exercised, or exercised and excused")
}
