package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"afoot/api/client"
)

func (a *app) outputCommand() *cobra.Command {
	var wait, plain bool
	var stream streamFlag
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "output ID",
		Short: "Take a task's unread output",
		Long: `Prints the output since the last reading, and on standard error how the task stands.
What was printed counts as read; the end of a task that was read gives no notice.
Of a split task both streams are printed, each where it belongs.

With --plain it prints all whole lines from the first kept one on, as a terminal
would show them in the end. That is only a look: nothing counts as read.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: inOrder(a.knownIDs(a.taskIDs)),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case timeout < 0:
				return usageErrorf("--timeout %s: must not be negative", timeout)
			case timeout > 0 && !wait:
				return usageErrorf("--timeout says how long --wait waits, which is not there")
			}
			g := reading{id: args[0], agent: a.header(), stream: stream, wait: wait}
			if timeout > 0 {
				g.until = time.Now().Add(timeout)
			}
			if plain {
				return a.outputPlain(cmd.Context(), g)
			}
			return a.output(cmd.Context(), g)
		},
	}
	stream.add(cmd)
	cmd.Flags().BoolVar(&plain, "plain", false, "look at whole lines without control sequences")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait for the end of the task")
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "with --wait: for at most so long")
	return cmd
}

func (a *app) output(ctx context.Context, g reading) error {
	r, err := a.connect()
	if err != nil {
		return err
	}
	defer func() { _ = r.close() }()
	show := newPulse(a.stderr, "waiting for "+g.id)
	defer show.Close()
	g.remote = r
	midLine := false
	next := int64(-1)
	g.sink = func(read client.TaskRead) error {
		if next >= 0 && read.Offset > next {
			a.tellLost(show, read.Offset-next)
		}
		next = read.NextOffset
		return show.aside([]byte(read.Text), func() error {
			if a.json {
				return a.printJSON(read)
			}
			if read.Text != "" {
				midLine = read.Text[len(read.Text)-1] != '\n'
			}
			_, err := io.WriteString(a.stdout, read.Text)
			if err == nil && read.Stderr != nil {
				_, err = io.WriteString(a.stderr, read.Stderr.Text)
			}
			return err
		})
	}
	last, err := g.run(ctx)
	show.Close()
	if err != nil || a.json {
		return err
	}
	if midLine && isTerminal(a.stdout) {
		fmt.Fprintln(a.stdout)
	}
	fmt.Fprintln(a.stderr, statusLine(last.Snapshot))
	return nil
}
