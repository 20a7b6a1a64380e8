package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"afoot/api/client"
	"afoot/api/render"
)

func (a *app) lsCommand() *cobra.Command {
	var status, kind string
	cmd := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List tasks",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.ls(cmd.Context(), status, kind)
		},
	}
	choose(cmd, &status, "status", "only running, stopping, completed, killed or failed ones", "running", "stopping", "completed", "killed", "failed")
	cmd.Flags().StringVar(&kind, "kind", "", "only tasks of this kind")
	return cmd
}

func (a *app) ls(ctx context.Context, status, kind string) error {
	r, err := a.connect()
	if err != nil {
		return err
	}
	defer func() { _ = r.close() }()
	all := client.TaskList{Tasks: []client.Snapshot{}}
	params := &client.ListTasksParams{
		AfootAgent: a.header(), Limit: optional(int64(1000)),
		Status: optional(client.Status(status)), Kind: optional(kind),
	}
	for {
		page, err := decode[client.TaskList](r.ListTasks(ctx, params))
		if err != nil {
			return err
		}
		all.Tasks = append(all.Tasks, page.Tasks...)
		if page.Next == "" {
			break
		}
		params.After = &page.Next
	}
	if a.json {
		return a.printJSON(all)
	}
	return a.printTasks(all.Tasks)
}

// printTasks shows tasks as a table.
func (a *app) printTasks(tasks []client.Snapshot) error {
	if len(tasks) == 0 {
		fmt.Fprintln(a.stderr, render.List(nil))
		return nil
	}
	tabs := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tabs, "ID\tSTATUS\tTIME\tOUTPUT\tDETAIL\tLABEL")
	for _, task := range tasks {
		fmt.Fprintf(tabs, "%s\t%s\t%s\t%d\t%s\t%s\n", task.Id, task.Status, duration(task), task.OutputBytes, dash(task.Detail), task.Label)
	}
	if err := tabs.Flush(); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

// duration is how long a task ran, or runs.
func duration(task client.Snapshot) time.Duration {
	end := time.Now()
	if terminal(task) {
		end = time.UnixMilli(task.FinishedAt)
	}
	d := max(0, end.Sub(time.UnixMilli(task.StartedAt)))
	if d < time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(time.Second)
}

func dash(text string) string {
	if strings.TrimSpace(text) == "" {
		return "-"
	}
	return text
}
