package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"time"
)

// Subscription says what to hear of. The zero value hears everything of the
// session, from what is pending on.
type Subscription struct {
	// Params choose the events. LastEventID is where to begin.
	Params StreamEventsParams
	// Silence is how long a stream may say nothing before it is taken for dead (60 s).
	// It must be longer than the daemon's heartbeat.
	Silence time.Duration
	// Retry hears of each lost stream and the pause before the next attempt; may be nil.
	Retry func(err error, pause time.Duration)
}

// Subscribe gives the session's events as they come. A lost stream is opened again
// behind the last event that was whole, with growing pauses, so that no event with
// an id is missed; after a gap event some may be. It ends with an error when the
// daemon refuses for good (a bad token, an agent that is gone) or ctx ends; it never
// ends without one, unless the caller stops.
func (c *Client) Subscribe(ctx context.Context, sub Subscription) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		wait := backoff{told: sub.Retry}
		params := sub.Params
		for {
			stopped, err := c.stream(ctx, &params, sub.Silence, func(e Event) bool {
				wait.worked()
				return yield(e, nil)
			})
			if stopped {
				return
			}
			if err = wait.again(ctx, err); err != nil {
				yield(Event{}, err)
				return
			}
		}
	}
}

// errSilence ends a stream that does not even send heartbeats.
var errSilence = errors.New("the stream said nothing for too long")

// stream reads one stream to its end and keeps params' LastEventID up to date.
func (c *Client) stream(ctx context.Context, params *StreamEventsParams, silence time.Duration, yield func(Event) bool) (stopped bool, err error) {
	if silence <= 0 {
		silence = time.Minute
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(silence, func() { cancel(errSilence) })
	defer watch.Stop()

	res, err := Check(c.StreamEvents(ctx, params, func(_ context.Context, r *http.Request) error { //nolint:bodyclose // closed below, or by Check
		r.Header.Set("Accept", "text/event-stream")
		return nil
	}))
	if err != nil {
		return false, cause(ctx, err)
	}
	defer func() { _ = res.Body.Close() }()
	in := newEventReader(res.Body)
	for {
		event, err := in.next(func() { watch.Reset(silence) })
		if err != nil {
			return false, cause(ctx, err)
		}
		watch.Stop() // the caller may take its time
		if !yield(event) {
			return true, nil
		}
		watch.Reset(silence)
		if event.ID != "" {
			params.LastEventID = &event.ID
		}
	}
}

// cause says why a context made a call fail, if one did.
func cause(ctx context.Context, err error) error {
	if c := context.Cause(ctx); c != nil {
		return c
	}
	return err
}

// Done gives the data of a task.done event.
func (e Event) Done() (TaskDone, error) {
	var done TaskDone
	if e.Type != "task.done" {
		return done, fmt.Errorf("the event is %s, not task.done", e.Type)
	}
	err := json.Unmarshal(e.Data, &done)
	return done, err
}
