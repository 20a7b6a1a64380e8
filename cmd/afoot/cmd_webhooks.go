package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"afoot/api/client"
)

// mostSecretInput bounds what is read of standard input for a secret.
const mostSecretInput = 4 << 10

func (a *app) webhooksCommand() *cobra.Command {
	return group(&cobra.Command{Use: "webhooks", Short: "Where the notices of the agent are posted to"},
		a.webhooksLsCommand(), a.webhooksAddCommand(), a.webhooksRmCommand())
}

func (a *app) webhooksLsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "ls",
		Short: "List the agent's webhooks",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := a.connect()
			if err != nil {
				return err
			}
			defer func() { _ = r.close() }()
			list, err := decode[client.WebhookList](r.ListWebhooks(cmd.Context(), &client.ListWebhooksParams{AfootAgent: a.header()}))
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(list)
			}
			tabs := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(tabs, "ID\tPENDING\tURL\tSTATE")
			for _, hook := range list.Webhooks {
				fmt.Fprintf(tabs, "%s\t%d\t%s\t%s\n", hook.Id, hook.Pending, hook.Url, stateOfHook(hook))
			}
			return tabs.Flush()
		},
	}
}

func stateOfHook(hook client.Webhook) string {
	switch {
	case hook.LastError != nil && *hook.LastError != "":
		return *hook.LastError
	case hook.Waiting != nil && *hook.Waiting:
		return "waits for a call of the agent"
	}
	return "-"
}

func (a *app) webhooksAddCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "add URL",
		Short: "Have the agent's notices posted, and print the webhook's id",
		Long: `Has the notices of the agent posted to URL, signed with the secret that standard input
gives: whsec_ and 24 to 64 random bytes in base64. The host must be one of AFOOT_WEBHOOK_HOSTS.

  echo "whsec_$(openssl rand -base64 32)" | tee hook.secret | afoot webhooks add http://127.0.0.1:8080/`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !isWebURL(args[0]) {
				return usageErrorf("%q is no URL such as https://agents.example.com/afoot", args[0])
			}
			r, err := a.connect()
			if err != nil {
				return err
			}
			defer func() { _ = r.close() }()
			secret, err := a.readSecret(cmd.InOrStdin())
			if err != nil {
				return fmt.Errorf("read the secret from standard input: %w", err)
			}
			hook, err := decode[client.Webhook](r.AddWebhook(cmd.Context(), &client.AddWebhookParams{AfootAgent: a.header()},
				client.WebhookRequest{Url: args[0], Secret: strings.TrimSpace(secret)}))
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(hook)
			}
			return a.println(hook.Id)
		},
	}
}

// readSecret reads all that there is, and of a person at a terminal a line.
func (a *app) readSecret(from io.Reader) (string, error) {
	from = io.LimitReader(from, mostSecretInput)
	if !isTerminal(os.Stdin) {
		secret, err := io.ReadAll(from)
		return string(secret), err
	}
	fmt.Fprint(a.stderr, "secret (whsec_…): ")
	line, err := bufio.NewReader(from).ReadString('\n')
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return line, err
}

func (a *app) webhooksRmCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "rm ID",
		Short: "Post no more",
		Args:  cobra.ExactArgs(1),

		ValidArgsFunction: inOrder(a.knownIDs(a.webhookIDs)),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := a.connect()
			if err != nil {
				return err
			}
			defer func() { _ = r.close() }()
			if err := discard(r.RemoveWebhook(cmd.Context(), args[0], &client.RemoveWebhookParams{AfootAgent: a.header()})); err != nil {
				return err
			}
			if a.json {
				return a.printJSON(map[string]string{"removed": args[0]})
			}
			return nil
		},
	}
}
