package main

import (
	"context"

	"github.com/spf13/cobra"

	"afoot/api/client"
	"afoot/producers/proc"
)

func (a *app) signalCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "signal ID NAME",
		Short: "Send a signal to a task",
		Long: `Sends a signal, such as INT or HUP, to a task as a terminal would. To stop a task for
certain, with everything that it began, use afoot kill.`,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: inOrder(a.knownIDs(a.taskIDs), cobra.FixedCompletions(signalNames(), cobra.ShellCompDirectiveNoFileComp)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, known := proc.SignalByName(args[1]); !known {
				return usageErrorf("%q is no signal such as INT, TERM or HUP", args[1])
			}
			return a.signal(cmd.Context(), args[0], args[1])
		},
	}
}

func (a *app) signal(ctx context.Context, id, name string) error {
	r, err := a.connect()
	if err != nil {
		return err
	}
	defer func() { _ = r.close() }()
	err = discard(r.SendSignal(ctx, id, &client.SendSignalParams{AfootAgent: a.header()}, client.SignalRequest{Signal: name}))
	switch {
	case err != nil:
		return err
	case a.json:
		return a.printJSON(map[string]string{"id": id, "signal": name})
	default:
		return a.println("sent " + name + " to task " + id)
	}
}
