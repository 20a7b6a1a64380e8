package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"afoot/api/client"
)

func (a *app) logsCommand() *cobra.Command {
	var follow bool
	cmd := &cobra.Command{
		Use:   "logs ID",
		Short: "Print a task's output from its first kept byte",
		Long:  "Prints the raw bytes of a task's output. It counts as no reading: nothing is marked.",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.logs(cmd.Context(), args[0], follow)
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the task ends")
	return cmd
}

func (a *app) logs(ctx context.Context, id string, follow bool) error {
	r, err := a.connect()
	if err != nil {
		return err
	}
	defer func() { _ = r.close() }()
	var show *pulse
	if follow {
		show = newPulse(a.stderr, "following "+id)
		defer show.Close()
	}
	sink := func(p []byte) error {
		return show.print(p, func() error { return a.printLog(p) })
	}
	if follow {
		f := follower{remote: r, id: id, agent: a.header(), sink: sink, lost: a.tellLost}
		return f.run(ctx)
	}
	res, err := check(r.GetLog(ctx, id, &client.GetLogParams{AfootAgent: a.header()}))
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if dropped := offsetOf(res); dropped > 0 {
		a.tellLost(dropped)
	}
	f := follower{id: id, sink: sink}
	if _, err := f.copy(res.Body); err != nil {
		return fmt.Errorf("%w (`afoot logs -f %s` takes it up again)", err, id)
	}
	return nil
}

// printLog writes raw bytes, or as JSON one object for each piece.
func (a *app) printLog(p []byte) error {
	if a.json {
		return a.printJSON(map[string][]byte{"dataBase64": p})
	}
	_, err := a.stdout.Write(p)
	return err
}
