package api_test

import (
	"context"
	"net/http"
	"slices"
	"testing"

	"afoot/api/wire"
	"afoot/auth"
	"afoot/registry"
	"afoot/registry/inmem"
	"afoot/registry/registrytest"
)

func TestAgents(t *testing.T) {
	w := newWorld(t, func(s *setup) { s.inmem = inmem.Config{MaxAgentsPerSession: 2} })
	a := w.call(http.MethodPost, "/agents", `{"label":"one","leaseMs":60000}`).ok(http.StatusCreated)
	w.is.Equal("/agents/agent-1", a.header.Get("Location"))
	w.is.Equal(wire.Agent{Id: "agent-1", Label: "one", LeaseMs: 60000}, into[wire.Agent](a))
	w.is.Equal(wire.Agent{Id: "agent-2"}, into[wire.Agent](w.call(http.MethodPost, "/agents", "").ok(http.StatusCreated)))
	p := w.call(http.MethodPost, "/agents", "{}").refused(http.StatusTooManyRequests, "limit_reached")
	w.is.Equal("AFOOT_MAX_AGENTS_PER_SESSION", p.Limit)

	var ids []string
	for _, g := range into[wire.AgentList](w.get("/agents").ok(http.StatusOK)).Agents {
		ids = append(ids, g.Id)
	}
	w.is.Subset(ids, []string{"agent-1", "agent-2"})

	work := w.start(registrytest.Script{Cancel: func(work *registrytest.Work, _ string) error {
		go work.Settle(registry.Outcome{Status: registry.StatusKilled})
		return nil
	}}, "Afoot-Agent", "agent-1")
	w.is.Equal("agent-1", work.Owner.Agent)
	w.call(http.MethodDelete, "/agents/agent-1", "", "Afoot-Agent", "agent-1").ok(http.StatusNoContent)
	w.get("/tasks/bash-1").refused(http.StatusGone, "gone")
	w.get("/tasks", "Afoot-Agent", "agent-1").refused(http.StatusGone, "gone")
	w.call(http.MethodDelete, "/agents/agent-1", "").refused(http.StatusGone, "gone")
	w.get("/tasks", "Afoot-Agent", "agent-7").refused(http.StatusNotFound, "unknown_agent")
	bob := w.as(auth.Claims{Session: "bob", Scopes: auth.TasksWrite})
	bob.get("/tasks", "Afoot-Agent", "agent-2").refused(http.StatusForbidden, "foreign_agent")
	bob.call(http.MethodDelete, "/agents/agent-2", "").refused(http.StatusForbidden, "foreign_agent")
}

func TestBadAgents(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct{ body, says string }{
		{`{"leaseMs":999}`, "lease"},
		{`{"leaseMs":86400001}`, "lease"},
		{`{"leaseMs":-1}`, "lease"},
		{`{"leaseMs":9223372036854775807}`, "lease"},
		{`{"leaseMs":99999999999999999999}`, "leaseMs"},
		{`{"leaseMs":1000.5}`, "leaseMs"},
		{`{"leaseMs":null}`, `"leaseMs" has a wrong type or value: null`},
		{`{"label":""}`, "label"},
		{`{"label":null}`, `"label" has a wrong type or value: null`},
		{`{"label":7}`, `"label" has a wrong type or value: a number`},
		{`{"name":"x"}`, `"name" is unknown`},
		{`{"label":"a","label":"b"}`, `"label" is there twice`},
		{`{"label":"a"`, "JSON"},
		{`{"label":"a"}x`, "JSON"},
		{`[]`, "object"},
		{`null`, "object"},
	} {
		p := w.call(http.MethodPost, "/agents", c.body).refused(http.StatusBadRequest, "invalid")
		w.is.Contains(p.Detail, c.says, c.body)
	}
	w.call(http.MethodPost, "/agents", `{}`, "Content-Type", "text/plain").refused(http.StatusUnsupportedMediaType, "unsupported_media")
	w.as(auth.Claims{Scopes: auth.TasksWrite}).call(http.MethodPost, "/agents", "").refused(http.StatusForbidden, "forbidden")
	w.get("/tasks", "Afoot-Agent", " ").refused(http.StatusBadRequest, "invalid")
}

func TestPinnedAgent(t *testing.T) {
	w := newWorld(t)
	for range 2 {
		w.call(http.MethodPost, "/agents", "").ok(http.StatusCreated)
	}
	pinned := w.as(auth.Claims{Session: "alice", Agent: "agent-1", Scopes: auth.TasksWrite})
	w.is.Equal("agent-1", pinned.start(registrytest.Script{}).Owner.Agent)
	w.is.Equal("agent-1", pinned.start(registrytest.Script{}, "Afoot-Agent", "agent-1").Owner.Agent)
	pinned.get("/tasks", "Afoot-Agent", "agent-2").refused(http.StatusForbidden, "forbidden")
	pinned.get("/tasks", "Afoot-Agent", "default").refused(http.StatusForbidden, "forbidden")
	pinned.get("/events?agent=agent-2").refused(http.StatusForbidden, "forbidden")
	for _, other := range []string{"agent-2", "agent-7", "default"} {
		pinned.call(http.MethodDelete, "/agents/"+other, "").refused(http.StatusForbidden, "forbidden")
	}
	w.as(auth.Claims{Scopes: auth.TasksWrite}).get("/tasks", "Afoot-Agent", "agent-1").refused(http.StatusForbidden, "forbidden")
	w.as(auth.Claims{Scopes: auth.TasksWrite}).get("/events?agent=agent-1").refused(http.StatusForbidden, "forbidden")
	for _, agent := range []string{"agent-1", "default"} {
		w.as(auth.Claims{Scopes: auth.TasksWrite}).call(http.MethodDelete, "/agents/"+agent, "").refused(http.StatusForbidden, "forbidden")
	}
	ender := w.as(auth.Claims{Session: "bob", Agent: "default", Scopes: auth.TasksWrite})
	ender.call(http.MethodDelete, "/agents/default", "").ok(http.StatusNoContent)
}

// TestOpenRequestHoldsTheLease: a wait longer than the lease does not end its agent.
func TestOpenRequestHoldsTheLease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.call(http.MethodPost, "/agents", `{"leaseMs":3000}`).ok(http.StatusCreated)
	w.start(registrytest.Script{}, "Afoot-Agent", "agent-1")
	w.get("/tasks/bash-1/output?wait=true&timeout_ms=5000", "Afoot-Agent", "agent-1").ok(http.StatusOK)
	w.get("/tasks", "Afoot-Agent", "agent-1").ok(http.StatusOK)
	w.jobs.Retire()
	w.eventually(func() bool {
		agents, err := w.service.ListAgents(context.Background(), registry.Caller{Session: "alice"})
		w.is.NoError(err)
		return !slices.ContainsFunc(agents, func(g registry.Agent) bool { return g.ID == "agent-1" })
	}, "a silent agent is disposed")
}
