package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"afoot/auth"
)

func (a *app) tokenCommand() *cobra.Command {
	var scope string
	var ttl time.Duration
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Print a token",
		Long: `Makes a token from the daemon's secret and prints it and nothing else. Without
--session it is for a caller that is no agent and sees only tasks that belong to
nobody. With --agent it acts as that agent alone.`,
		Example: `  export AFOOT_TOKEN=$(afoot token --session demo --ttl 8h)`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			scopes, err := auth.ParseScopes(scope)
			if err != nil {
				return usageErrorf("--scope %q: %w", scope, err)
			}
			token, expires, err := a.mint(auth.Claims{Session: a.session, Agent: a.agent, Scopes: scopes}, ttl)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(map[string]any{"token": token, "expiresAt": expires.UnixMilli()})
			}
			fmt.Fprintln(a.stdout, token)
			return nil
		},
	}
	cmd.Flags().StringVar(&scope, "scope", "tasks:read tasks:write", "what it allows: of tasks:read, tasks:write and metrics, separated by spaces")
	cmd.Flags().DurationVar(&ttl, "ttl", time.Hour, "how long it is good")
	return cmd
}

// mint makes a token from the secret that is there; it makes no secret, since a
// token of one that no daemon knows opens nothing.
func (a *app) mint(claims auth.Claims, ttl time.Duration) (string, time.Time, error) {
	keys := auth.Config{SecretFile: a.cfg.secretFile(), Issuer: a.cfg.JWTIssuer, Audience: a.cfg.JWTAudience}
	if info, err := readListenInfo(a.cfg.StateDir); err == nil && a.cfg.JWTSecretFile == "" {
		keys = auth.Config{SecretFile: info.SecretFile, Issuer: info.Issuer, Audience: info.Audience}
	}
	if _, err := os.Stat(keys.SecretFile); errors.Is(err, fs.ErrNotExist) {
		return "", time.Time{}, fmt.Errorf("there is no secret at %s yet: the first `afoot serve` makes it, or AFOOT_STATE_DIR names another place", keys.SecretFile)
	}
	authority, err := auth.New(keys)
	if err != nil {
		return "", time.Time{}, err
	}
	token, expires, err := authority.Mint(claims, ttl)
	return token, expires, errors.Join(err, authority.Close())
}

func (a *app) secretCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "secret", Short: "The daemon's secret", Args: cobra.NoArgs}
	var keep time.Duration
	rotate := &cobra.Command{
		Use:   "rotate",
		Short: "Replace the secret",
		Long: `Makes a new secret in the secret's file. A running daemon takes it up by itself;
tokens of the old secret stay good for a while.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if keep < 0 {
				return usageErrorf("--keep %s: must not be negative", keep)
			}
			path := a.cfg.secretFile()
			if info, err := readListenInfo(a.cfg.StateDir); err == nil && a.cfg.JWTSecretFile == "" {
				path = info.SecretFile
			}
			if err := auth.RotateSecret(path, keep); err != nil {
				return err
			}
			if a.json {
				return a.printJSON(map[string]any{"file": path, "oldValidUntil": time.Now().Add(keep).UnixMilli()})
			}
			fmt.Fprintf(a.stdout, "new secret in %s; tokens of the old one are good for another %s at most\n", path, keep)
			return nil
		},
	}
	rotate.Flags().DurationVar(&keep, "keep", time.Hour, "how long tokens of the old secret stay good")
	cmd.AddCommand(rotate)
	return cmd
}
