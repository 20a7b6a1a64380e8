package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"afoot/api/client"
)

// leastSilence is how long an event stream may at least say nothing before it is
// taken for dead.
const leastSilence = time.Minute

// eventLine is one event as `afoot events --json` prints it.
type eventLine struct {
	ID    string          `json:"id,omitempty"`
	Event string          `json:"event"`
	Data  json.RawMessage `json:"data"`
}

func (a *app) eventsCommand() *cobra.Command {
	var observe bool
	var after string
	cmd := &cobra.Command{
		Use:   "events",
		Short: "Print a line when a task ends",
		Long: `Prints a line for each task of the session that ends, first for those that nobody
was told of yet. What is printed counts as told, unless --observe is given. Goes on
until it is interrupted, and takes a lost stream up where it was.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			params := client.StreamEventsParams{Agent: optional(a.agent), Observe: optional(observe), LastEventID: optional(after)}
			return a.events(cmd.Context(), params)
		},
	}
	cmd.Flags().BoolVar(&observe, "observe", false, "look on: nothing counts as told")
	cmd.Flags().StringVar(&after, "after", "", "begin behind the event with this id")
	return cmd
}

func (a *app) events(ctx context.Context, params client.StreamEventsParams) error {
	r, err := a.connect()
	if err != nil {
		return err
	}
	defer func() { _ = r.close() }()
	show := newPulse(a.stderr, "waiting for events")
	defer show.Close()
	ctx, done := r.patient(ctx, func(note string) { a.note(show, "%s", note) })
	defer done()
	for event, err := range r.Subscribe(ctx, client.Subscription{Params: params, Silence: max(leastSilence, 3*a.cfg.Heartbeat)}) {
		if err != nil {
			return cause(ctx, err)
		}
		if err := a.printEvent(show, event); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) printEvent(show *pulse, event client.Event) error {
	if a.json {
		return show.aside(nil, func() error {
			return a.printJSON(eventLine{ID: event.ID, Event: event.Type, Data: event.Data})
		})
	}
	switch event.Type {
	case "task.done":
		done, err := event.Done()
		if err != nil {
			return err
		}
		return show.aside(nil, func() error {
			_, err := fmt.Fprintln(a.stdout, done.Text)
			return err
		})
	case "gap":
		a.note(show, "some events may be missing")
	}
	return nil
}

// note tells the person something between what the command prints.
func (a *app) note(show *pulse, format string, args ...any) {
	_ = show.aside(nil, func() error {
		_, err := fmt.Fprintf(a.stderr, "afoot: "+format+"\n", args...)
		return err
	})
}
