package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"afoot/api/client"
	"afoot/api/render"
	"afoot/registry"
)

func (a *app) killCommand() *cobra.Command {
	var reason string
	var purge bool
	cmd := &cobra.Command{
		Use:   "kill ID…",
		Short: "Stop tasks",
		Long: `Asks tasks to end: SIGTERM to all their processes, SIGKILL to what is left after the
grace. On a finished task it stops what the task left running.`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: others(a.knownIDs(a.taskIDs)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.kill(cmd.Context(), args, &client.KillTaskParams{
				Reason: optional(reason), Purge: optional(purge), AfootAgent: a.header(),
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, one line")
	cmd.Flags().BoolVar(&purge, "purge", false, "remove finished tasks with their output for good")
	return cmd
}

func (a *app) kill(ctx context.Context, ids []string, params *client.KillTaskParams) error {
	r, err := a.connect()
	if err != nil {
		return err
	}
	defer func() { _ = r.close() }()
	var errs []error
	for _, id := range ids {
		if err := a.killOne(ctx, r, id, params); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", id, err))
		}
	}
	return errors.Join(errs...)
}

func (a *app) killOne(ctx context.Context, r *remote, id string, params *client.KillTaskParams) error {
	if params.Purge != nil {
		if err := discard(r.KillTask(ctx, id, params)); err != nil {
			return err
		}
		if a.json {
			return a.printJSON(map[string]string{"removed": id})
		}
		return a.println("removed task " + id)
	}
	result, err := decode[client.KillResult](r.KillTask(ctx, id, params))
	switch {
	case err != nil:
		return err
	case a.json:
		return a.printJSON(result)
	default:
		return a.println(render.Kill(registry.KillOutcome(result.Outcome), worded(result.Snapshot)))
	}
}
