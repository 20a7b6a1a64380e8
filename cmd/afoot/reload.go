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
		return nil, fmt.Errorf("the configuration was not changed: %w", err)
	}
	replaced, err := newBinary(ctx, next)
	if err != nil {
		return nil, err
	}
	if next.JWKS != was.JWKS {
		if err := d.house.authority.SetJWKS(next.JWKS); err != nil {
			return nil, fmt.Errorf("the configuration was not changed: %s_JWKS: %w", envPrefix, err)
		}
	}
	d.house.take(next)
	live := liveVariables()
	for _, name := range was.changed(next) {
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
	if replaced {
		lines = append(lines, "the binary was not replaced: a restart takes up the new one")
	}
	return lines, nil
}

// merged is the configuration that holds after next was taken up.
func merged(was, next *Config) *Config {
	c := *was
	c.fromFile = next.fromFile
	c.MaxTasksPerOwner, c.MaxTasks = next.MaxTasksPerOwner, next.MaxTasks
	c.MaxAgentsPerSession, c.MaxStreamsPerSession = next.MaxAgentsPerSession, next.MaxStreamsPerSession
	c.KillGrace, c.RetainCount, c.RetainAge = next.KillGrace, next.RetainCount, next.RetainAge
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
	h.bash.SetGrace(next.KillGrace)
	h.level.Set(next.LogLevel)
}

// newBinary says whether another binary lies at the place of the one that runs, and has
// that one check whether it could go on from here.
func newBinary(ctx context.Context, cfg *Config) (replaced bool, err error) {
	path, err := os.Executable()
	if err != nil {
		return false, fmt.Errorf("where this binary lies is not known: %w", err)
	}
	there, err := os.Stat(path)
	if err != nil {
		return false, fmt.Errorf("there is no binary to reload: %w", err)
	}
	if running, err := os.Stat(ownBinary()); err == nil && os.SameFile(there, running) {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, checkPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "serve", "--check")
	cmd.Env, cmd.Dir = cfg.Environ, "/"
	out, err := cmd.CombinedOutput()
	if err == nil {
		return true, nil
	}
	text := strings.TrimPrefix(strings.TrimSpace(string(out)), "afoot: ")
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || text == "" {
		text = err.Error()
	}
	return false, fmt.Errorf("the new binary %s refuses, so the old one goes on: %s", path, text)
}
