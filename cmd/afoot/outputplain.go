package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"afoot/api/client"
)

// outputPlain prints whole lines, as a terminal would show them in the end, from the
// first kept one on. It is a look and no reading.
func (a *app) outputPlain(ctx context.Context, g reading) error {
	r, err := a.connect()
	if err != nil {
		return err
	}
	defer func() { _ = r.close() }()
	show := newPulse(a.stderr, "waiting for "+g.id)
	defer show.Close()
	var at int64
	for {
		params := &client.ReadOutputParams{Offset: &at, View: optional(client.Plain), Stream: g.stream.param(), AfootAgent: g.agent}
		if g.wait {
			params.Wait = optional(true)
			if !g.until.IsZero() {
				params.TimeoutMs = optional(max(1, time.Until(g.until).Milliseconds()))
			}
		}
		read, err := decode[client.TaskRead](r.ReadOutput(ctx, g.id, params))
		if err != nil {
			return err
		}
		if read.Offset > at {
			a.tellLost(show, read.Offset-at)
		}
		err = show.aside([]byte(read.Text), func() error {
			if a.json {
				return a.printJSON(read)
			}
			_, err := io.WriteString(a.stdout, read.Text)
			return err
		})
		if err != nil {
			return err
		}
		before := read.Offset
		at = read.NextOffset
		goesOn := at > before || g.wait && !terminal(read.Snapshot) && (g.until.IsZero() || time.Now().Before(g.until))
		if !read.Eof && goesOn {
			continue
		}
		show.Close()
		if !a.json {
			fmt.Fprintln(a.stderr, statusLine(read.Snapshot))
		}
		return nil
	}
}
