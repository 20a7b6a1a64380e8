package main

import (
	"errors"
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
--session, whatever AFOOT_SESSION says, it is for a caller that is no agent and sees only
tasks that belong to nobody. With --agent it acts as that agent of the session alone.`,
		Example: `  export AFOOT_TOKEN=$(afoot token --session demo --ttl 8h)`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			scopes, err := auth.ParseScopes(scope)
			if err != nil {
				return usageErrorf("--scope %q: %w", scope, err)
			}
			if ttl <= 0 {
				return usageErrorf("--ttl %s: must be above zero", ttl)
			}
			if a.agent != "" && a.session == "" {
				return usageErrorf("--agent needs --session: an agent is one of a session")
			}
			token, expires, err := a.mint(auth.Claims{Session: a.session, Agent: a.agent, Scopes: scopes}, ttl)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(map[string]any{"token": token, "expiresAt": expires.UnixMilli()})
			}
			return a.println(token)
		},
	}
	cmd.Flags().StringVar(&scope, "scope", "tasks:read tasks:write", "what it allows: of tasks:read, tasks:write and metrics, separated by spaces")
	cmd.Flags().DurationVar(&ttl, "ttl", time.Hour, "how long it is good")
	return cmd
}

func (a *app) mint(claims auth.Claims, ttl time.Duration) (string, time.Time, error) {
	authority, err := openKeys(a.keys())
	if err != nil {
		return "", time.Time{}, err
	}
	token, expires, err := authority.Mint(claims, ttl)
	if err != nil {
		err = exitError{code: exitUsage, err: err}
	}
	return token, expires, errors.Join(err, authority.Close())
}
