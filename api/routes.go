package api

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-chi/chi/v5"

	"afoot/auth"
	"afoot/registry"
)

// routes is the whole map of the interface. It is flat: one lookup per request. It
// only chooses: the route is served when the router has returned, because a blocked
// call holds every frame beneath it, and 10,000 of them may be open.
func (a *API) routes() http.Handler {
	m := chi.NewRouter()
	on := func(method, pattern string, t *route) {
		t.pattern = pattern
		m.Method(method, pattern, choose(t))
	}
	post := func(pattern string, t *route) { on(http.MethodPost, pattern, t) }
	remove := func(pattern string, t *route) { on(http.MethodDelete, pattern, t) }
	look := func(pattern string, t *route) {
		on(http.MethodGet, pattern, t)
		on(http.MethodHead, pattern, t)
	}

	post("/tasks", acting(auth.TasksWrite, a.startTask))
	look("/tasks", acting(auth.TasksRead, a.listTasks))
	look("/tasks/{id}", acting(auth.TasksRead, a.getTask))
	remove("/tasks/{id}", acting(auth.TasksWrite, a.killTask))
	look("/tasks/{id}/output", acting(auth.TasksRead, a.readOutput))
	post("/tasks/{id}/ack", acting(auth.TasksWrite, a.ackOutput))
	post("/tasks/{id}/input", acting(auth.TasksWrite, a.sendInput))
	post("/tasks/{id}/signal", acting(auth.TasksWrite, a.sendSignal))
	look("/tasks/{id}/events", streaming(acting(auth.TasksRead, a.streamTaskEvents)))
	look("/tasks/{id}/log", streaming(acting(auth.TasksRead, a.getLog)))

	look("/events", streaming(acting(auth.TasksRead, a.streamEvents)))

	post("/agents", acting(auth.TasksWrite, a.openAgent))
	look("/agents", acting(auth.TasksRead, a.listAgents))
	remove("/agents/{id}", acting(auth.TasksWrite, a.disposeAgent))

	look("/tools", acting(auth.TasksRead, a.listTools))
	look("/tools/guidance", acting(auth.TasksRead, a.toolGuidance))
	post("/tools/{name}", acting(auth.TasksRead, a.callTool))

	post("/mcp", acting(auth.TasksRead, a.serveMCP))
	remove("/mcp", acting(auth.TasksRead, a.serveMCP))
	on(http.MethodGet, "/mcp", streaming(acting(auth.TasksRead, a.serveMCP)))

	post("/webhooks", acting(auth.TasksWrite, a.addWebhook))
	look("/webhooks", lookingFirst(acting(auth.TasksRead, a.listWebhooks)))
	remove("/webhooks/{id}", acting(auth.TasksWrite, a.removeWebhook))

	post("/auth/code", authorized(0, a.makeCode))
	post("/auth/exchange", open(a.exchangeCode))
	post("/auth/renew", authorized(0, a.renewToken))

	look("/healthz", open(a.health))
	look("/readyz", open(a.readiness))
	look("/version", authorized(0, a.showVersion))
	look("/metrics", authorized(auth.Metrics, a.showMetrics))
	look("/openapi.yaml", open(a.showOpenAPI))

	m.NotFound(choose(open(a.notFound)))
	m.MethodNotAllowed(choose(open(methodNotAllowed(m))))
	return m
}

// choose makes t the route of a request. The router takes its own state back when
// it returns, so what the path named is read here.
func choose(t *route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c := callOf(w)
		c.route, c.target = t, pathID(r)
	}
}

// methodNotAllowed refuses the method and names those that the path has.
func methodNotAllowed(m chi.Routes) handler {
	return func(c *call, r *http.Request) error {
		var allowed []string
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodDelete} {
			if m.Match(chi.NewRouteContext(), method, r.URL.Path) {
				allowed = append(allowed, method)
			}
		}
		list := strings.Join(allowed, ", ")
		c.Header().Set("Allow", list)
		return registry.Errorf(CodeMethodNotAllowed, "The path %.80q has no %.20q; it has %s.", r.URL.Path, r.Method, list)
	}
}

// pathID gives the id, or the name, in the path, if it has one. Whether such a thing can exist
// is the registry's to say.
func pathID(r *http.Request) string {
	id := cmp.Or(chi.URLParam(r, "id"), chi.URLParam(r, "name"))
	if strings.Contains(id, "%") && r.URL.RawPath != "" {
		if plain, err := url.PathUnescape(id); err == nil {
			return plain
		}
	}
	return id
}
