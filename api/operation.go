package api

import (
	"io"
	"net/http"
	"strconv"

	"afoot/api/wire"
	"afoot/registry"
)

// health answers GET /healthz.
func (a *API) health(c *call, r *http.Request) error {
	return reply(c, r, http.StatusOK, wire.Health{Status: wire.Ok})
}

// readiness answers GET /readyz.
func (a *API) readiness(c *call, r *http.Request) error {
	if a.ready != nil {
		if err := a.ready(); err != nil {
			return registry.Wrap(registry.CodeUnavailable, err, "The daemon cannot start work now.")
		}
	}
	return reply(c, r, http.StatusOK, wire.Health{Status: wire.Ok})
}

// showVersion answers GET /version.
func (a *API) showVersion(c *call, r *http.Request) error {
	return reply(c, r, http.StatusOK, wireVersion(a.version))
}

// showMetrics answers GET /metrics.
func (a *API) showMetrics(c *call, r *http.Request) error {
	a.metrics.handler.ServeHTTP(c, r)
	return nil
}

// showOpenAPI answers GET /openapi.yaml.
func (a *API) showOpenAPI(c *call, _ *http.Request) error {
	c.Header().Set("Content-Type", "application/yaml")
	c.Header().Set("Content-Length", strconv.Itoa(len(wire.OpenAPI())))
	_, err := io.WriteString(c, wire.OpenAPI())
	return err
}

// notFound lets the page answer what is no call, and refuses what is no file of it.
func (a *API) notFound(c *call, r *http.Request) error {
	missing := registry.Errorf(CodeNotFound, "There is no %.80q here.", r.URL.Path)
	if a.page == nil || r.Method != http.MethodGet && r.Method != http.MethodHead {
		return missing
	}
	w := &pageWriter{call: c}
	a.page.ServeHTTP(w, r)
	if w.missed {
		return missing
	}
	return nil
}

// pageWriter holds back the page's own words about a missing file.
type pageWriter struct {
	*call
	missed bool
}

// WriteHeader begins the answer, unless there is no such file.
func (w *pageWriter) WriteHeader(status int) {
	if status == http.StatusNotFound {
		w.missed = true
		return
	}
	w.call.WriteHeader(status)
}

// Write writes the file.
func (w *pageWriter) Write(p []byte) (int, error) {
	if w.missed {
		return len(p), nil
	}
	return w.call.Write(p)
}

// ReadFrom sends a file.
func (w *pageWriter) ReadFrom(src io.Reader) (int64, error) {
	if w.missed {
		return io.Copy(io.Discard, src)
	}
	return w.call.ReadFrom(src)
}
