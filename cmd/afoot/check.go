package main

import (
	"errors"
	"fmt"
	"io/fs"

	"afoot/auth"
	"afoot/registry/journal"
)

// check says whether a daemon of this binary could take over with this configuration
// and state directory. It changes nothing, and a daemon may run meanwhile.
func (a *app) check() error {
	cfg := a.cfg
	if err := cfg.checkServe(); err != nil {
		return exitError{code: exitUsage, err: err}
	}
	if err := (auth.Doors{Hosts: cfg.Hosts, Origins: cfg.Origins}).Validate(); err != nil {
		return exitError{code: exitUsage, err: fmt.Errorf("%[1]s_HOSTS, %[1]s_ORIGINS: %[2]w", envPrefix, err)}
	}
	if err := cfg.checkKeys(); err != nil {
		return fmt.Errorf("keys: %w", err)
	}
	if _, err := cfg.certificate(); err != nil {
		return err
	}
	if !cfg.inMemory() {
		report, err := journal.Inspect(journalPath(cfg.StateDir))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if len(report.Problems) > 0 {
			return fmt.Errorf("the journal %s is damaged: %s", report.Path, report.Problems[0])
		}
	}
	v := buildVersion()
	if a.json {
		return a.printJSON(v)
	}
	return a.println("afoot " + v.Version + " can serve with this configuration")
}

// checkKeys loads the keys as a start would, but for a secret that it would make.
func (c *Config) checkKeys() error {
	keys := auth.Config{SecretFile: c.secretFile(), JWKS: c.JWKS, Issuer: c.JWTIssuer, Audience: c.JWTAudience}
	if _, err := auth.LoadSecret(keys.SecretFile); c.JWTSecretFile == "" && errors.Is(err, fs.ErrNotExist) {
		keys.SecretFile, keys.Secret = "", auth.NewSecret()
	} else if err := checkSecret(keys.SecretFile); err != nil {
		return err
	}
	authority, err := auth.New(keys)
	if err != nil {
		return err
	}
	return authority.Close()
}
