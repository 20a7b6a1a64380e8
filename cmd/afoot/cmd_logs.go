package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"afoot/api/client"
)

func (a *app) logsCommand() *cobra.Command {
	var follow bool
	var stream streamFlag
	cmd := &cobra.Command{
		Use:   "logs ID",
		Short: "Print a task's output from its first kept byte",
		Long: `Prints the raw bytes of a task's output. It is no reading: nothing is marked. With
--json the bytes come as pieces in base64, one object {"dataBase64": …} a line.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: inOrder(a.knownIDs(a.taskIDs)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.logs(cmd.Context(), args[0], stream, follow)
		},
	}
	stream.add(cmd)
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the task ends")
	return cmd
}

func (a *app) logs(ctx context.Context, id string, stream streamFlag, follow bool) error {
	r, err := a.connect()
	if err != nil {
		return err
	}
	defer func() { _ = r.close() }()
	if follow {
		show := newPulse(a.stderr, "following "+id)
		defer show.Close()
		ctx, done := r.patient(ctx, func(note string) { a.note(show, "%s", note) })
		defer done()
		return cause(ctx, a.follow(ctx, r, id, stream, printer{a, show, a.stdout}))
	}
	res, err := client.Check(r.GetLog(ctx, id, &client.GetLogParams{Stream: stream.param(), AfootAgent: a.header()}))
	if err != nil {
		return noDaemon(err)
	}
	defer func() { _ = res.Body.Close() }()
	if dropped, err := strconv.ParseInt(res.Header.Get("Afoot-Offset"), 10, 64); err == nil && dropped > 0 {
		a.tellLost(nil, dropped)
	}
	if _, err := io.Copy(printer{a, nil, a.stdout}, res.Body); err != nil {
		return fmt.Errorf("the log of %s broke off: %w", id, err)
	}
	return nil
}

// follow prints the raw output of a task until its end. A hole, where bytes were
// dropped before they could be printed, is told.
func (a *app) follow(ctx context.Context, r *remote, id string, stream streamFlag, out printer) error {
	var at int64
	for {
		next, err := r.Follow(ctx, id, at, client.GetLogParams{Stream: stream.param(), AfootAgent: a.header()}, out)
		behind, ok := errors.AsType[*client.BehindError](err)
		if !ok {
			return noDaemon(err)
		}
		a.tellLost(out.show, behind.First-next)
		at = behind.First
	}
}

// tellLost warns of a hole in what was printed.
func (a *app) tellLost(show *pulse, bytes int64) {
	a.note(show, "%d bytes of older output were dropped", bytes)
}

// streamFlag is --stream: one stream of a split task, or none named.
type streamFlag struct{ name string }

func (s *streamFlag) add(cmd *cobra.Command) {
	choose(cmd, &s.name, "stream", "stdout or stderr of a task that was started with --streams split", "stdout", "stderr")
}

func (s *streamFlag) param() *client.Stream { return optional(client.Stream(s.name)) }

// printer writes raw output: as it is, or as JSON one object for each piece.
type printer struct {
	app  *app
	show *pulse
	to   io.Writer
}

func (p printer) Write(data []byte) (int, error) {
	err := p.show.aside(data, func() error {
		if p.app.json {
			return p.app.printJSON(map[string][]byte{"dataBase64": data})
		}
		_, err := p.to.Write(data)
		return err
	})
	if err != nil {
		return 0, err
	}
	return len(data), nil
}
