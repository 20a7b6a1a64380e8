package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"afoot/api/webhook"
	"afoot/registry"
)

// maxResultBytes is half of what one read of a task's output gives.
const maxResultBytes = registry.MaxPageBytes / 2

// check refuses values that contradict themselves or each other.
func (c *Config) check() error {
	var errs []error
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"WAIT_DEFAULT", c.WaitDefault},
		{"WAIT_MAX", c.WaitMax},
		{"KILL_GRACE", c.KillGrace},
		{"RETAIN_AGE", c.RetainAge},
		{"BASH_TIMEOUT", c.BashTimeout},
		{"BASH_TIMEOUT_MAX", c.BashTimeoutMax},
		{"WEBHOOK_TIMEOUT", c.WebhookTimeout},
		{"MCP_IDLE", c.MCPIdle},
		{"HEARTBEAT", c.Heartbeat},
		{"WRITE_TIMEOUT", c.WriteTimeout},
	} {
		if d.value < time.Millisecond {
			errs = append(errs, fmt.Errorf("%s_%s=%s: must be at least 1ms", envPrefix, d.name, d.value))
		}
	}
	if c.WaitDefault > c.WaitMax {
		errs = append(errs, fmt.Errorf("%[1]s_WAIT_DEFAULT=%[2]s is above %[1]s_WAIT_MAX=%[3]s", envPrefix, c.WaitDefault, c.WaitMax))
	}
	if c.ResultBytes > maxResultBytes {
		errs = append(errs, fmt.Errorf("%s_RESULT_BYTES=%d: must be at most %d", envPrefix, c.ResultBytes, maxResultBytes))
	}
	if c.BashTimeout > c.BashTimeoutMax {
		errs = append(errs, fmt.Errorf("%[1]s_BASH_TIMEOUT=%[2]s is above %[1]s_BASH_TIMEOUT_MAX=%[3]s", envPrefix, c.BashTimeout, c.BashTimeoutMax))
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		errs = append(errs, fmt.Errorf("%[1]s_TLS_CERT and %[1]s_TLS_KEY go together: one of them is not set", envPrefix))
	}
	if c.JWKS != "" && (c.JWTIssuer == "" || c.JWTAudience == "") {
		errs = append(errs, fmt.Errorf("%[1]s_JWKS needs %[1]s_JWT_ISSUER and %[1]s_JWT_AUDIENCE", envPrefix))
	}
	if err := webhook.CheckHosts(c.WebhookHosts); err != nil {
		errs = append(errs, fmt.Errorf("%s_WEBHOOK_HOSTS: %w", envPrefix, err))
	}
	return errors.Join(errs...)
}

// checkServe refuses what only the daemon can't work with.
func (c *Config) checkServe() error {
	if !isDir(c.Workdir) {
		return fmt.Errorf("%s_WORKDIR=%s is no directory that can be entered", envPrefix, c.Workdir)
	}
	if c.RunAs.User != nil && os.Geteuid() != 0 {
		return fmt.Errorf("%s_RUN_AS needs a daemon that runs as root, and this one runs as user %d", envPrefix, os.Geteuid())
	}
	if addr := c.PprofAddr; addr != (Address{}) && (addr.Network != "tcp" || !addr.Local()) {
		return fmt.Errorf("%s_PPROF_ADDR=%s must be a loopback address such as 127.0.0.1:6060: what is served there needs no token", envPrefix, addr)
	}
	return c.checkListen()
}

// checkListen refuses to open a door to the network with keys that were never
// handed out on purpose, or without the names that requests may use.
func (c *Config) checkListen() error {
	if c.Addr.Local() {
		return nil
	}
	if c.JWTSecretFile == "" && c.JWKS == "" {
		return fmt.Errorf("%[1]s_ADDR=%[2]s can be reached from other machines: set %[1]s_JWT_SECRET_FILE or %[1]s_JWKS, so that it is clear who holds the keys", envPrefix, c.Addr)
	}
	if len(c.Hosts) == 0 {
		return fmt.Errorf("%[1]s_ADDR=%[2]s can be reached from other machines: set %[1]s_HOSTS to the names under which they may call it", envPrefix, c.Addr)
	}
	return nil
}
