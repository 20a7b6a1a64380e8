package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"afoot/api/client"
)

// inputPiece bounds one call: base64 of it fits a body.
const inputPiece = 512 << 10

func (a *app) inputCommand() *cobra.Command {
	var last bool
	cmd := &cobra.Command{
		Use:   "input ID [DATA|-]",
		Short: "Write to a task's standard input",
		Long: `Writes DATA as it stands, or with - what comes on standard input, to a task that was
started with --stdin open. With --close its input ends behind that.`,
		Example: `  afoot input bash-1 $'yes\n'
  generate | afoot input bash-1 - --close`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: inOrder(a.knownIDs(a.taskIDs)),
		RunE: func(cmd *cobra.Command, args []string) error {
			var data io.Reader
			switch {
			case len(args) == 2 && args[1] == "-":
				data = cmd.InOrStdin()
			case len(args) == 2:
				data = bytes.NewBufferString(args[1])
			case last:
				data = &bytes.Buffer{}
			default:
				return usageErrorf("nothing to do: give DATA, - or --close")
			}
			return a.input(cmd.Context(), args[0], data, last)
		},
	}
	cmd.Flags().BoolVar(&last, "close", false, "end the input behind the data")
	return cmd
}

func (a *app) input(ctx context.Context, id string, data io.Reader, last bool) error {
	r, err := a.connect()
	if err != nil {
		return err
	}
	defer func() { _ = r.close() }()
	f := feeder{remote: r, id: id, agent: a.header()}
	err = f.feed(ctx, data, last)
	total := f.last.Written
	switch {
	case err != nil && total > 0:
		return fmt.Errorf("the task took %d bytes: %w", total, err)
	case err != nil:
		return err
	case a.json:
		return a.printJSON(f.last)
	}
	return nil
}

// errTakesNothing is a task that does not read.
var errTakesNothing = errors.New("the task does not read its input")

// feeder hands data to a task, piece by piece.
type feeder struct {
	remote *remote
	id     string
	agent  *string
	// patient goes on with a task that does not read now.
	patient bool
	// last is the newest answer, with all the bytes that were taken so far.
	last client.InputResult
}

// feed hands over all of data, and with last closes the input behind it.
func (f *feeder) feed(ctx context.Context, data io.Reader, last bool) error {
	buf := make([]byte, inputPiece)
	for {
		n, err := data.Read(buf)
		if n > 0 {
			if err := f.send(ctx, buf[:n]); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF) && last:
			_, err := f.call(ctx, client.InputRequest{Close: &last})
			return err
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read the input: %w", err)
		}
	}
}

func (f *feeder) send(ctx context.Context, piece []byte) error {
	for len(piece) > 0 {
		text := base64.StdEncoding.EncodeToString(piece)
		n, err := f.call(ctx, client.InputRequest{DataBase64: &text})
		if err != nil {
			return err
		}
		if n == 0 && !f.patient {
			return errTakesNothing
		}
		piece = piece[n:]
	}
	return nil
}

func (f *feeder) call(ctx context.Context, request client.InputRequest) (int, error) {
	result, err := decode[client.InputResult](f.remote.SendInput(ctx, f.id, &client.SendInputParams{AfootAgent: f.agent}, request))
	f.last = client.InputResult{Written: f.last.Written + result.Written, Closed: result.Closed}
	return result.Written, err
}

// forward hands what is typed here to a task until one of both ends.
func (a *app) forward(ctx context.Context, r *remote, id string, from *os.File) {
	f := feeder{remote: r, id: id, agent: a.header(), patient: true}
	_ = f.feed(ctx, from, true) // a task that ended or closed its input is no fault
}
