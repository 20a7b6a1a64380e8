package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"afoot/api/mcp"
	"afoot/api/tools"
	"afoot/api/webhook"
	"afoot/auth"
	"afoot/registry"
	"afoot/sse"
)

// Config is what an [API] is made of. Service, Authority and Hub are required.
type Config struct {
	Service   registry.Service
	Authority *auth.Authority
	Hub       *sse.Hub
	// Webhooks posts notices; the caller resumes and closes it. Nil has none.
	Webhooks *webhook.Poster
	// Doors guard Host and Origin. The zero Doors let loopback names in, and no
	// origin but the server's own.
	Doors auth.Doors
	// Page serves the static files that need no token; nil serves none.
	Page    http.Handler
	Version VersionInfo
	Logger  *slog.Logger
	// Metrics takes the metrics of the daemon and is served by /metrics. Nil makes a
	// registry of its own.
	Metrics *prometheus.Registry
	// Counts gives the number of records by kind and status, for /metrics. Nil
	// leaves the gauge out.
	Counts func() map[registry.Kind]map[registry.Status]int
	// Tracer takes a span for each request. Nil traces nothing.
	Tracer trace.Tracer
	// Ready says why work cannot be started now. Nil is always ready.
	Ready func() error
	// WaitDefault (30 s) and WaitMax (10 min) bound waits.
	WaitDefault, WaitMax time.Duration
	// InputTimeout (5 s) bounds a call that writes to a task that does not read.
	InputTimeout time.Duration
	// WriteTimeout (30 s) bounds each write of at most 64 KiB to a caller, and the
	// reading of a body.
	WriteTimeout time.Duration
	// Heartbeat (15 s) is the longest silence before and within an answer of /mcp that
	// takes its time. The streams have that of the hub.
	Heartbeat time.Duration
	// Tools shape the tools. The API fills in its service and its bounds of waits.
	Tools tools.Config
	// MCP shapes what speaks the Model Context Protocol. The API fills in its service,
	// its tools, its version and its logger.
	MCP mcp.Config
}

// VersionInfo says what was built, and by which means it holds the processes of a
// task (Net). Go's zero value is filled in.
type VersionInfo struct {
	Version, Commit, Date, Go string
	Net                       string
}

// API is the HTTP interface of a daemon.
type API struct {
	service      registry.Service
	authority    *auth.Authority
	hub          *sse.Hub
	hooks        *webhook.Poster
	page         http.Handler
	version      VersionInfo
	log          *slog.Logger
	tracer       trace.Tracer
	ready        func() error
	waitDefault  time.Duration
	waitMax      time.Duration
	inputTimeout time.Duration
	writeTimeout time.Duration
	heartbeat    time.Duration

	tools    *tools.Set
	mcp      *mcp.Server
	metrics  *metrics
	watchers watchers
	leaving  leaving
	gzips    sync.Pool
	handler  http.Handler
	detach   []func()
	requests atomic.Uint64
	// life tells the request ids of one daemon from those of the next.
	life string
}

// New wires an API and makes it a listener of the service. The caller closes it,
// after the last request has ended.
func New(cfg Config) (*API, error) {
	a := &API{
		service:      cfg.Service,
		authority:    cfg.Authority,
		hub:          cfg.Hub,
		hooks:        cfg.Webhooks,
		page:         cfg.Page,
		version:      cfg.Version,
		log:          cfg.Logger,
		tracer:       cfg.Tracer,
		ready:        cfg.Ready,
		waitDefault:  cmp.Or(cfg.WaitDefault, 30*time.Second),
		waitMax:      cmp.Or(cfg.WaitMax, 10*time.Minute),
		inputTimeout: cmp.Or(cfg.InputTimeout, 5*time.Second),
		writeTimeout: cmp.Or(cfg.WriteTimeout, 30*time.Second),
		heartbeat:    cmp.Or(cfg.Heartbeat, 15*time.Second),
		life:         strconv.FormatInt(time.Now().UnixMilli(), 36),
	}
	a.leaving = newLeaving()
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	a.version.Version = cmp.Or(a.version.Version, "dev")
	a.version.Go = cmp.Or(a.version.Go, runtime.Version())
	if a.service == nil || a.authority == nil || a.hub == nil {
		return nil, errors.New("api: Service, Authority and Hub are required")
	}
	if a.waitDefault < time.Millisecond || a.waitMax < a.waitDefault {
		return nil, fmt.Errorf("api: the default wait (%v) must be at least 1ms and at most the maximum (%v)", a.waitDefault, a.waitMax)
	}
	a.hub.Unless(func(key string) (delivered, underway bool) { return a.service.Answered(registry.ID(key)) })
	var err error
	if a.hooks == nil { // one that posts nowhere
		if a.hooks, err = webhook.Open(context.Background(), webhook.Config{}); err != nil {
			return nil, fmt.Errorf("api: %w", err)
		}
	}
	if a.metrics, err = newMetrics(cfg.Metrics, cfg.Counts, a.hub.Streams, func() int { return a.mcp.Sessions() }); err != nil {
		return nil, fmt.Errorf("api: metrics: %w", err)
	}
	if a.tools, err = a.newTools(cfg.Tools); err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	if a.mcp, err = a.newMCP(cfg.MCP); err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	a.handler = cfg.Doors.Wrap(a.refuseAtDoor)(a.staying(bodyless(a.routes())))
	a.detach = append(a.detach,
		a.service.OnChange(registry.AllOwners(), a.changed),
		a.service.OnDone(registry.AllOwners(), a.done))
	return a, nil
}

// Tools are the tools that the API serves, for whoever carries their calls otherwise.
func (a *API) Tools() *tools.Set { return a.tools }

// Handler gives the whole HTTP interface. Its server should bound header size and
// the time to read headers, and set no WriteTimeout: each write has its own.
func (a *API) Handler() http.Handler { return http.HandlerFunc(a.serve) }

// Close stops listening to the service and ends the MCP sessions. It is idempotent and
// ends no other request.
func (a *API) Close() {
	a.mcp.Close()
	for _, detach := range a.detach {
		detach()
	}
}

// serve runs one request through the chain and accounts for it.
func (a *API) serve(w http.ResponseWriter, r *http.Request) {
	c := &call{
		ResponseWriter: w,
		control:        http.NewResponseController(w),
		api:            a,
		id:             a.life + "-" + strconv.FormatUint(a.requests.Add(1), 10),
		started:        time.Now(),
		unread:         r.ContentLength != 0,
	}
	w.Header().Set("X-Request-Id", c.id)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	defer func() { c.end(r, recover()) }()
	a.handler.ServeHTTP(c, r)
	if c.route == nil {
		return // refused or answered at the doors
	}
	serve := c.route.serve
	if a.tracer != nil {
		serve = c.route.serveTraced
	}
	if err := serve(c, r); err != nil {
		c.fail(r, err)
	}
}

// refuseAtDoor words a refusal of the doors.
func (a *API) refuseAtDoor(w http.ResponseWriter, r *http.Request, err *auth.Error) {
	callOf(w).fail(r, err)
}
