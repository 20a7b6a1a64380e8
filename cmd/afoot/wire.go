package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"afoot/api"
	"afoot/api/mcp"
	"afoot/api/tools"
	"afoot/api/webhook"
	"afoot/auth"
	"afoot/producers/bash"
	"afoot/producers/output"
	"afoot/registry"
	"afoot/registry/inmem"
	"afoot/registry/journal"
	"afoot/sse"
	"afoot/web"
)

// teardownSlack is what a task may take to end after its last escalation before
// its record is failed by force.
const teardownSlack = 5 * time.Second

// leftoverSlack is what processes left running may take to end after their SIGKILL.
const leftoverSlack = time.Second

// teardown bounds the end of an owner's tasks, and of all tasks.
func (c *Config) teardown() time.Duration { return c.KillGrace + teardownSlack }

// patience is for what ended tasks left running, once all tasks have ended.
func (c *Config) patience() time.Duration { return c.KillGrace + leftoverSlack }

// house is all rooms, wired. Fields stand in the order in which they were made.
type house struct {
	cfg       *Config
	log       *slog.Logger
	level     *slog.LevelVar
	state     *state
	from      *luggage // nil: a start like any other
	tracing   *tracing // nil: nothing is traced
	meters    *meters
	journal   *journal.Journal // nil in memory
	authority *auth.Authority
	hub       *sse.Hub
	hooks     *webhook.Poster
	store     *output.Store
	sink      *output.Sink
	bash      *bash.Producer
	net       string      // how the processes of a task are found
	guard     *guard      // ends the tasks' processes if the daemon can't
	will      *insistence // writes down what that would be
	service   *inmem.Service
	api       *api.API
	handler   http.Handler
	tls       *tls.Config // nil without TLS
	// leaving says that a shutdown has begun, stopped that all work has ended.
	leaving, stopped atomic.Bool
}

// buildHouse makes the rooms from the ground up. On error nothing stays behind.
func buildHouse(ctx context.Context, cfg *Config, at *state, from *luggage, log *slog.Logger, level *slog.LevelVar) (h *house, err error) {
	h = &house{cfg: cfg, log: log, level: level, state: at, from: from, meters: newMeters()}
	defer func() {
		if err != nil && from != nil {
			return // work goes on: the watchdog ends it when this process ends now
		}
		if err != nil {
			if h.bash != nil {
				err = errors.Join(err, h.bash.Close(context.Background())) // it runs nothing yet
			}
			h.stopped.Store(true)
			err = errors.Join(err, h.close())
			h = nil
		}
	}()
	h.tracing = openTracing(ctx, cfg, log)
	if err := h.openKeys(cfg, log); err != nil {
		return h, err
	}
	if err := h.openJournal(ctx); err != nil {
		return h, err
	}
	if err := h.openWebhooks(ctx); err != nil {
		return h, err
	}
	if err := h.openProducers(cfg, log); err != nil {
		return h, err
	}
	if err := h.openGuard(); err != nil {
		return h, err
	}
	h.service = inmem.New(inmem.Config{
		Journal:             h.tracing.rows(h.rows()),
		MaxTasksPerOwner:    int(cfg.MaxTasksPerOwner),
		MaxTasks:            int(cfg.MaxTasks),
		MaxAgentsPerSession: int(cfg.MaxAgentsPerSession),
		TeardownTimeout:     cfg.teardown(),
		RetainCount:         int(cfg.RetainCount),
		RetainAge:           cfg.RetainAge,
		Room:                h.room,
		Adopt:               from.tasks(),
		Logger:              log,
	})
	h.service.AttachController("api", registry.AllOwners())
	h.service.AttachProducer(bash.Kind, h.tracing.bash(h.bash))
	if err := h.meter(); err != nil {
		return h, err
	}
	version := buildVersion()
	h.api, err = api.New(api.Config{
		Service:      h.service,
		Authority:    h.authority,
		Hub:          h.hub,
		Webhooks:     h.hooks,
		Doors:        auth.Doors{Hosts: cfg.Hosts, Origins: cfg.Origins},
		Page:         web.Handler(),
		Version:      api.VersionInfo{Version: version.Version, Commit: version.Commit, Date: version.Date, Go: version.Go, Net: h.net},
		Logger:       log,
		Metrics:      h.meters.Registry,
		Counts:       h.service.Counts,
		Tracer:       h.tracing.of(),
		Ready:        h.ready,
		WaitDefault:  cfg.WaitDefault,
		WaitMax:      cfg.WaitMax,
		WriteTimeout: cfg.WriteTimeout,
		Heartbeat:    cfg.Heartbeat,
		Tools: tools.Config{
			Background:  cfg.BashBackground,
			Timeout:     cfg.BashTimeout,
			TimeoutMax:  cfg.BashTimeoutMax,
			ResultBytes: int64(cfg.ResultBytes),
		},
		MCP: mcp.Config{
			Key:         h.mcpKey(),
			Retention:   cfg.RetainAge,
			MaxSessions: int(cfg.MaxMCPSessions), MaxSubscriptions: int(cfg.MaxMCPSubscriptions),
			Idle: cfg.MCPIdle,
		},
	})
	if err != nil {
		return h, err
	}
	h.handler = h.api.Handler()
	return h, h.restore(ctx)
}

// openKeys makes the daemon's own secret where none was named, and loads keys and
// certificates.
func (h *house) openKeys(cfg *Config, log *slog.Logger) error {
	if err := (auth.Doors{Hosts: cfg.Hosts, Origins: cfg.Origins}).Validate(); err != nil {
		return exitError{code: exitUsage, err: fmt.Errorf("%[1]s_HOSTS, %[1]s_ORIGINS: %[2]w", envPrefix, err)}
	}
	var secret []byte
	switch {
	case cfg.secretFile() == "":
		secret = auth.NewSecret()
	case cfg.JWTSecretFile == "":
		if _, err := ensureSecret(cfg.secretFile()); err != nil {
			return err
		}
	default:
		if err := checkSecret(cfg.JWTSecretFile); err != nil {
			return err
		}
	}
	var err error
	h.authority, err = auth.New(auth.Config{
		SecretFile: cfg.secretFile(),
		Secret:     secret,
		JWKS:       cfg.JWKS,
		Issuer:     cfg.JWTIssuer,
		Audience:   cfg.JWTAudience,
		Logger:     log,
	})
	if err != nil {
		return fmt.Errorf("keys: %w", err)
	}
	cert, err := cfg.certificate()
	if err != nil || cert == nil {
		return err
	}
	h.tls = &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{*cert},
		NextProtos:   []string{"http/1.1"},
	}
	return nil
}

// certificate loads what the daemon shows; nil without TLS.
func (c *Config) certificate() (*tls.Certificate, error) {
	if c.TLSCert == "" {
		return nil, nil //nolint:nilnil // there is none, and that is right
	}
	cert, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey)
	if err != nil {
		return nil, fmt.Errorf("%[1]s_TLS_CERT, %[1]s_TLS_KEY: %[2]w", envPrefix, err)
	}
	return &cert, nil
}

// openProducers makes what runs work and what keeps its output.
func (h *house) openProducers(cfg *Config, log *slog.Logger) error {
	dir := filepath.Join(h.state.dir, outputName)
	var err error
	h.store, err = output.NewStore(output.Config{
		Dir:        dir,
		MaxBytes:   int64(cfg.OutputMaxBytes),
		TotalBytes: int64(cfg.OutputTotalBytes),
		Full:       func() { h.service.MakeRoom() }, // nothing writes before it is there
		Logger:     log,
	})
	if err != nil {
		return err
	}
	if h.sink, err = h.from.openSink(); err != nil {
		return err
	}
	h.bash, err = bash.New(bash.Config{
		Workdir:    cfg.Workdir,
		Net:        string(cfg.Net),
		RunAs:      cfg.RunAs.User,
		Env:        slices.DeleteFunc(slices.Clone(cfg.Environ), fromSupervisor),
		ContextEnv: h.tracing.env(),
		Grace:      cfg.KillGrace,
		Store:      h.store,
		Sink:       h.sink,
		Logger:     log,
		Adopt:      h.from.commands(),
	})
	if err != nil {
		return err
	}
	h.net, _ = h.bash.Net()
	if user := cfg.RunAs.User; user != nil {
		log.Info("tasks run as another user", "uid", user.UID, "gid", user.GID)
	}
	return nil
}

// openGuard starts the watchdog, before anything is started that it has to end.
func (h *house) openGuard() (err error) {
	will := lastWill{}
	var roll *os.File
	will.Remains, roll = h.bash.Remains()
	if h.cfg.inMemory() {
		will.Scratch = h.state.dir
	}
	if h.will, err = will.keep(h.state.dir, h.log); err != nil {
		return err
	}
	if h.guard, err = startGuard(will, roll, h.log); err == nil {
		h.from.dismissWatchdog()
	}
	return err
}

// room says whether the output of one more task may be kept.
func (h *house) room() error {
	if err := h.store.Room(); err != nil {
		return registry.Wrap(registry.CodeInsufficientStorage, err, "%s", err)
	}
	return nil
}

// ready says why no work can be started.
func (h *house) ready() error {
	if h.leaving.Load() {
		return errors.New("shutting down")
	}
	if h.journal != nil {
		return h.journal.Check()
	}
	return nil
}

// quiet ends what callers wait for: streams get a last event, then tasks are
// stopped, which answers the waits. What ended tasks left running is stopped
// meanwhile, so that all of it takes one grace and not two; after the tasks that
// may take patience more.
func (h *house) quiet(ctx context.Context, patience time.Duration) error {
	h.leaving.Store(true)
	posts := make(chan struct{})
	go func() { defer close(posts); h.closeWebhooks() }()
	defer func() { <-posts }()
	err := h.hub.Close(ctx, sse.ByeShutdown)
	// Who can't be stopped is given up by the registry, and then soon by the producer.
	bound, giveUp := context.WithCancel(ctx)
	defer giveUp()
	leftovers := make(chan error, 1)
	go func() { leftovers <- h.bash.Close(bound) }()
	stopErr := h.service.Close(ctx)
	defer time.AfterFunc(patience, giveUp).Stop()
	stopErr = errors.Join(stopErr, <-leftovers)
	h.stopped.Store(stopErr == nil)
	return errors.Join(err, stopErr)
}

// hurry makes the tasks that are being stopped end at once.
func (h *house) hurry() { h.bash.Hurry() }

// close gives everything back once no request runs any more. It takes a house
// that was not finished.
func (h *house) close() error {
	var errs []error
	if h.api != nil {
		h.api.Close()
	}
	h.closeWebhooks()
	if h.sink != nil {
		errs = append(errs, h.sink.Close())
	}
	if h.store != nil {
		errs = append(errs, h.store.Close())
	}
	if h.authority != nil {
		errs = append(errs, h.authority.Close())
	}
	errs = append(errs, h.closeJournal())
	h.tracing.close(h.log)
	h.will.close()
	if h.guard != nil {
		inOrder := h.stopped.Load()
		errs = append(errs, h.state.clear()) // as long as the watchdog ends it if this is broken off
		h.guard.close(inOrder)
		if inOrder {
			errs = append(errs, forgetWill(h.state.dir))
		}
	}
	return errors.Join(errs...)
}
