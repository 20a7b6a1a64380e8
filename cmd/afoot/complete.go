package main

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"afoot/api/client"
)

// completeTime bounds what a person waits at the tabulator key.
const completeTime = 2 * time.Second

// complete says what a flag's values are.
func complete(cmd *cobra.Command, flag string, values cobra.CompletionFunc) {
	_ = cmd.RegisterFlagCompletionFunc(flag, values) // it errs where there is no such flag
}

// knownIDs completes with what the daemon knows, but for what stands there already. Where
// none answers there is nothing.
func (a *app) knownIDs(list func(ctx context.Context, r *remote) ([]cobra.Completion, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		cfg, err := loadConfig()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		a.cfg = cfg
		r, err := a.connect()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer func() { _ = r.close() }()
		ctx, cancel := context.WithTimeout(cmd.Context(), completeTime)
		defer cancel()
		ids, _ := list(ctx, r)
		return ids, cobra.ShellCompDirectiveNoFileComp
	}
}

func (a *app) taskIDs(ctx context.Context, r *remote) (ids []cobra.Completion, err error) {
	list, err := decode[client.TaskList](r.ListTasks(ctx, &client.ListTasksParams{AfootAgent: a.header(), Limit: optional(int64(1000))}))
	for _, task := range list.Tasks {
		ids = append(ids, cobra.CompletionWithDesc(task.Id, string(task.Status)+", "+task.Label))
	}
	return ids, err
}

func (a *app) agentIDs(ctx context.Context, r *remote) (ids []cobra.Completion, err error) {
	list, err := decode[client.AgentList](r.ListAgents(ctx, &client.ListAgentsParams{}))
	for _, agent := range list.Agents {
		ids = append(ids, cobra.CompletionWithDesc(agent.Id, agent.Label))
	}
	return ids, err
}

func (a *app) webhookIDs(ctx context.Context, r *remote) (ids []cobra.Completion, err error) {
	list, err := decode[client.WebhookList](r.ListWebhooks(ctx, &client.ListWebhooksParams{AfootAgent: a.header()}))
	for _, hook := range list.Webhooks {
		ids = append(ids, cobra.CompletionWithDesc(hook.Id, hook.Url))
	}
	return ids, err
}

// inOrder completes each argument in its own way, and none behind them.
func inOrder(each ...cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) >= len(each) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return each[len(args)](cmd, args, typed)
	}
}

// others completes with what is not there yet.
func others(all cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		ids, directive := all(cmd, args, typed)
		return slices.DeleteFunc(ids, func(id cobra.Completion) bool {
			return slices.ContainsFunc(args, func(arg string) bool { return id == arg || len(id) > len(arg) && id[:len(arg)+1] == arg+"\t" })
		}), directive
	}
}

// signalNames are those that people send.
func signalNames() []cobra.Completion {
	return []cobra.Completion{"INT", "TERM", "HUP", "QUIT", "KILL", "USR1", "USR2", "STOP", "CONT", "TSTP", "ABRT", "ALRM", "PIPE", "WINCH"}
}

// anyFile completes with names of files.
func anyFile(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveDefault
}
