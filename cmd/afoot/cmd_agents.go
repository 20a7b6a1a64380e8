package main

import (
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"afoot/api/client"
)

func (a *app) agentsCommand() *cobra.Command {
	return group(&cobra.Command{Use: "agents", Short: "Live owners of tasks in the session"},
		a.agentsLsCommand(), a.agentsOpenCommand(), a.agentsEndCommand())
}

func (a *app) agentsLsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "ls",
		Short: "List live agents",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := a.connect()
			if err != nil {
				return err
			}
			defer func() { _ = r.close() }()
			list, err := decode[client.AgentList](r.ListAgents(cmd.Context(), &client.ListAgentsParams{AfootAgent: a.header()}))
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(list)
			}
			tabs := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(tabs, "ID\tLEASE\tLABEL")
			for _, agent := range list.Agents {
				fmt.Fprintf(tabs, "%s\t%s\t%s\n", agent.Id, leaseOf(agent), dash(agent.Label))
			}
			return tabs.Flush()
		},
	}
}

func (a *app) agentsOpenCommand() *cobra.Command {
	var label string
	var lease time.Duration
	cmd := &cobra.Command{
		Use:   "open",
		Short: "Make an agent and print its id",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := a.connect()
			if err != nil {
				return err
			}
			defer func() { _ = r.close() }()
			request := client.AgentRequest{Label: optional(label)}
			if lease != 0 { // less than a millisecond is for the daemon to refuse
				ms := lease.Milliseconds()
				request.LeaseMs = &ms
			}
			agent, err := decode[client.Agent](r.OpenAgent(cmd.Context(), &client.OpenAgentParams{}, request))
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(agent)
			}
			return a.println(agent.Id)
		},
	}
	cmd.Flags().StringVar(&label, "label", "", "one line that says who it is")
	cmd.Flags().DurationVar(&lease, "lease", 0, "end the agent after so long a silence (default: never)")
	return cmd
}

func (a *app) agentsEndCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "end ID",
		Aliases: []string{"rm"},
		Short:   "Stop an agent's tasks and end it",
		Args:    cobra.ExactArgs(1),

		ValidArgsFunction: inOrder(a.knownIDs(a.agentIDs)),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := a.connect()
			if err != nil {
				return err
			}
			defer func() { _ = r.close() }()
			show := newPulse(a.stderr, "waiting for the tasks of "+args[0]+" to end")
			defer show.Close()
			if err := discard(r.DisposeAgent(cmd.Context(), args[0], &client.DisposeAgentParams{})); err != nil {
				return err
			}
			if a.json {
				return show.aside(nil, func() error { return a.printJSON(map[string]string{"ended": args[0]}) })
			}
			return nil
		},
	}
}

func leaseOf(agent client.Agent) string {
	if agent.LeaseMs == 0 {
		return "-"
	}
	return (time.Duration(agent.LeaseMs) * time.Millisecond).String()
}
