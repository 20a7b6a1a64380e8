package api

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/go-chi/chi/v5"

	"afoot/auth"
	"afoot/registry"
)

// routes is the whole map of the interface. It is flat: one lookup per request.
func (a *API) routes() http.Handler {
	m := chi.NewRouter()
	look := func(pattern string, h http.HandlerFunc) {
		m.Get(pattern, h)
		m.Head(pattern, h)
	}

	m.Post("/tasks", a.acting(auth.TasksWrite, a.startTask))
	look("/tasks", a.acting(auth.TasksRead, a.listTasks))
	look("/tasks/{id}", a.acting(auth.TasksRead, a.getTask))
	m.Delete("/tasks/{id}", a.acting(auth.TasksWrite, a.killTask))
	look("/tasks/{id}/output", a.acting(auth.TasksRead, a.readOutput))
	m.Post("/tasks/{id}/ack", a.acting(auth.TasksWrite, a.ackOutput))
	look("/tasks/{id}/log", a.acting(auth.TasksRead, a.getLog))

	look("/events", a.acting(auth.TasksRead, a.streamEvents))

	m.Post("/agents", a.acting(auth.TasksWrite, a.openAgent))
	look("/agents", a.acting(auth.TasksRead, a.listAgents))
	m.Delete("/agents/{id}", a.acting(auth.TasksWrite, a.disposeAgent))

	m.Post("/auth/code", a.authorized(0, a.makeCode))
	m.Post("/auth/exchange", a.open(a.exchangeCode))
	m.Post("/auth/renew", a.authorized(0, a.renewToken))

	look("/healthz", a.open(a.health))
	look("/readyz", a.open(a.readiness))
	look("/version", a.authorized(0, a.showVersion))
	look("/metrics", a.authorized(auth.Metrics, a.showMetrics))
	look("/openapi.yaml", a.open(a.showOpenAPI))

	m.NotFound(a.open(a.notFound))
	m.MethodNotAllowed(a.open(methodNotAllowed(m)))
	return m
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

// pathID gives the id in the path.
func pathID(r *http.Request) string {
	id := chi.URLParam(r, "id")
	if strings.Contains(id, "%") && r.URL.RawPath != "" {
		if plain, err := url.PathUnescape(id); err == nil {
			return plain
		}
	}
	return id
}

// taskID gives the task in the path; one that can't exist is the registry's to refuse.
func taskID(r *http.Request) registry.ID { return registry.ID(pathID(r)) }
