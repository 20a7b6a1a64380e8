package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"afoot/registry/inmem"
)

// checkPatience bounds the check of a new binary by itself.
const checkPatience = 30 * time.Second

// liveVariables are those that may change while the daemon runs, without the prefix.
func liveVariables() []string {
	return []string{
		"MAX_TASKS_PER_OWNER", "MAX_TASKS", "MAX_AGENTS_PER_SESSION", "MAX_STREAMS_PER_SESSION",
		"WEBHOOK_HOSTS", "WEBHOOK_TIMEOUT", "WAKE_BUDGET", "MAX_WEBHOOKS_PER_AGENT",
		"KILL_GRACE", "RETAIN_COUNT", "RETAIN_AGE", "LOG_LEVEL", "JWKS",
	}
}

// reload reads the configuration anew and takes up what may change. If anything is
// wrong with it, or with a binary that was put in place of this one, nothing changes.
// The lines say what was done.
func (d *daemon) reload(ctx context.Context) (lines []string, err error) {
	d.supervisor.reloading()
	defer d.supervisor.ready(d.status())
	was := d.cfg()
	next, err := was.reread()
	if err != nil {
		return nil, fmt.Errorf("the configuration was not changed: %w", err)
	}
	if err := next.checkServe(); err != nil {
		was.putBack(next)
		return nil, fmt.Errorf("the configuration was not changed: %w", err)
	}
	if err := d.askBinary(ctx, next); err != nil {
		was.putBack(next)
		return nil, err
	}
	changed := was.changed(next)
	stays := d.stays(changed)
	if stays == "" {
		for _, name := range changed {
			lines = append(lines, name+" was taken up")
		}
		if len(lines) == 0 {
			lines = append(lines, "the configuration has not changed")
		}
		err := d.replace(ctx, next.Environ, lines) // it is back only if that failed
		was.putBack(next)
		return nil, err
	}
	if next.JWKS != was.JWKS {
		if err := d.house.authority.SetJWKS(next.JWKS); err != nil {
			was.putBack(next)
			return nil, fmt.Errorf("the configuration was not changed: %s_JWKS: %w", envPrefix, err)
		}
	}
	d.house.take(next)
	live := liveVariables()
	for _, name := range changed {
		if slices.Contains(live, strings.TrimPrefix(name, envPrefix+"_")) {
			lines = append(lines, name+" was taken up")
		} else {
			lines = append(lines, name+" has changed and needs a restart")
		}
	}
	if len(lines) == 0 {
		lines = append(lines, "the configuration has not changed")
	}
	d.config.Store(merged(was, next))
	if !isRunning(d.program) {
		lines = append(lines, "the binary was not replaced: "+stays)
	}
	return lines, nil
}

// stays says why this image of the program goes on, with what may change in it; "" if
// another one can.
func (d *daemon) stays(changed []string) (why string) {
	switch {
	case !canReplace:
		return "work can't be handed over on this system"
	case d.cfg().inMemory():
		return "a daemon that keeps nothing has nothing to go on from"
	}
	for _, name := range []string{"ADDR", "STATE_DIR", "NET", "RUN_AS"} {
		if name = envPrefix + "_" + name; slices.Contains(changed, name) {
			return name + " needs a restart"
		}
	}
	return ""
}

// merged is the configuration that holds after next was taken up.
func merged(was, next *Config) *Config {
	c := *was
	c.fromFile = next.fromFile
	c.MaxTasksPerOwner, c.MaxTasks = next.MaxTasksPerOwner, next.MaxTasks
	c.MaxAgentsPerSession, c.MaxStreamsPerSession = next.MaxAgentsPerSession, next.MaxStreamsPerSession
	c.KillGrace, c.RetainCount, c.RetainAge = next.KillGrace, next.RetainCount, next.RetainAge
	c.WebhookHosts, c.WebhookTimeout = next.WebhookHosts, next.WebhookTimeout
	c.WakeBudget, c.MaxWebhooksPerAgent = next.WakeBudget, next.MaxWebhooksPerAgent
	c.LogLevel, c.JWKS = next.LogLevel, next.JWKS
	return &c
}

// limits are what the registry is bound by.
func (c *Config) limits() inmem.Limits {
	return inmem.Limits{
		MaxTasksPerOwner:    int(c.MaxTasksPerOwner),
		MaxTasks:            int(c.MaxTasks),
		MaxAgentsPerSession: int(c.MaxAgentsPerSession),
		TeardownTimeout:     c.teardown(),
		RetainCount:         int(c.RetainCount),
		RetainAge:           c.RetainAge,
	}
}

// take takes up what may change, but for keys, which may be refused.
func (h *house) take(next *Config) {
	h.service.SetLimits(next.limits())
	h.hub.SetMaxStreamsPerSession(int(next.MaxStreamsPerSession))
	if err := h.hooks.SetLimits(next.hookLimits()); err != nil { // the configuration was checked
		h.log.Error("webhooks go on as they were", keyError, err.Error())
	}
	h.bash.SetGrace(next.KillGrace)
	h.level.Set(next.LogLevel)
}

// askBinary has the binary at the place of the one that runs check whether it could go on
// from here.
func (d *daemon) askBinary(ctx context.Context, cfg *Config) error {
	if _, err := os.Stat(d.program); err != nil {
		return fmt.Errorf("there is no binary to reload: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, checkPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, d.program, "serve", "--check")
	cmd.Env = cfg.Environ // relative paths in it begin where the daemon is
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	text := strings.TrimPrefix(strings.TrimSpace(string(out)), "afoot: ")
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || text == "" {
		text = err.Error()
	}
	return fmt.Errorf("the new binary %s refuses, so the old one goes on: %s", d.program, text)
}
