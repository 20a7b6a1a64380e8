package main

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"afoot/auth"
)

func (a *app) secretCommand() *cobra.Command {
	return group(&cobra.Command{Use: "secret", Short: "The daemon's secret"}, a.secretMakeCommand(), a.secretRotateCommand())
}

func (a *app) secretMakeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "make",
		Short: "Make the secret where there is none",
		Long: `Makes the secret's file with mode 0600 where there is none: AFOOT_JWT_SECRET_FILE,
else the one in the state directory, which the first start would make too.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			path := a.cfg.secretFile()
			if path == "" {
				return errNoSecretFile()
			}
			if a.cfg.JWTSecretFile == "" {
				dir, err := openStateDir(a.cfg.StateDir)
				if err != nil {
					return err
				}
				if err := dir.Close(); err != nil {
					return err
				}
			}
			created, err := ensureSecret(path)
			switch {
			case err != nil:
				return err
			case a.json:
				return a.printJSON(map[string]any{"file": path, "created": created})
			case created:
				return a.println("made " + path)
			default:
				return a.println(path + " is there already")
			}
		},
	}
}

func (a *app) secretRotateCommand() *cobra.Command {
	var keep time.Duration
	cmd := &cobra.Command{
		Use:   "rotate",
		Short: "Replace the secret",
		Long: `Puts a new secret into the secret's file. A running daemon takes it up by itself;
tokens of the old secret stay good for a while.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if keep < 0 {
				return usageErrorf("--keep %s: must not be negative", keep)
			}
			path := a.keys().SecretFile
			if path == "" {
				return errNoSecretFile()
			}
			if err := checkSecret(path); err != nil {
				return err // before anything is made
			}
			if err := auth.RotateSecret(path, keep); err != nil {
				return err
			}
			if a.json {
				return a.printJSON(map[string]any{"file": path, "oldValidUntil": time.Now().Add(keep).UnixMilli()})
			}
			return a.println(fmt.Sprintf("new secret in %s; tokens of the old one end within %s", path, keep))
		},
	}
	cmd.Flags().DurationVar(&keep, "keep", time.Hour, "how long tokens of the old secret stay good at most")
	return cmd
}

// keys says which secret makes tokens: the one that is configured here, else that
// of the daemon that runs with the state directory, else the one it would make.
func (a *app) keys() auth.Config {
	if a.cfg.JWTSecretFile == "" && !a.cfg.inMemory() {
		if info, err := readListenInfo(a.cfg.StateDir); err == nil {
			return auth.Config{SecretFile: info.SecretFile, Issuer: info.Issuer, Audience: info.Audience}
		}
	}
	return auth.Config{SecretFile: a.cfg.secretFile(), Issuer: a.cfg.JWTIssuer, Audience: a.cfg.JWTAudience}
}

// openKeys opens the keys that make tokens. It makes no secret: a token of one
// that no daemon knows opens nothing.
func openKeys(keys auth.Config) (*auth.Authority, error) {
	if keys.SecretFile == "" {
		return nil, errNoSecretFile()
	}
	if err := checkSecret(keys.SecretFile); err != nil {
		return nil, err
	}
	return auth.New(keys)
}

// ensureSecret makes the secret where there is none.
func ensureSecret(path string) (created bool, err error) {
	if _, err := auth.LoadSecret(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, exitError{code: exitUsage, err: err}
	}
	return auth.EnsureSecret(path)
}

// checkSecret says what is wrong with the file of a secret, which is configuration.
func checkSecret(path string) error {
	_, err := auth.LoadSecret(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return usageErrorf("there is no secret at %s yet: `afoot secret make`, or the first `afoot serve`, makes it; AFOOT_STATE_DIR may name another place", path)
	case err != nil:
		return exitError{code: exitUsage, err: err}
	}
	return nil
}

// errNoSecretFile is for a daemon that keeps nothing.
func errNoSecretFile() error {
	return usageErrorf("with %[1]s_STATE_DIR=%[2]s the secret is in the daemon's memory alone: set %[1]s_JWT_SECRET_FILE, for it and here", envPrefix, memoryState)
}
