package sse_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// event is what a client dispatches, or a comment.
type event struct {
	ID, Name, Data, Comment string
}

// client reads one stream as the standard says.
type client struct {
	t      *testing.T
	resp   *http.Response
	events chan event
	cancel context.CancelFunc
	// lastID is what a browser would send on its next try.
	lastID string
}

// patience bounds every wait of a test; it is only met by a failing one.
const patience = time.Minute

// parse reads events until the reader ends. An event that is not complete is not
// dispatched, and an id counts from the dispatch on.
func parse(r io.Reader, dispatch func(event)) error {
	var id string
	var e event
	var data []string
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return err
		}
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			if data != nil {
				e.ID, e.Data = id, strings.Join(data, "\n")
				dispatch(e)
			}
			e, data = event{}, nil
		case field == "":
			dispatch(event{Comment: value})
		case field == "id":
			id = value
		case field == "event":
			e.Name = value
		case field == "data":
			data = append(data, value)
		}
	}
}

// connect opens a stream that is read all along.
func connect(t *testing.T, hc *http.Client, url, lastID string) *client {
	t.Helper()
	c := dial(t, hc, url, lastID)
	require.Equal(t, http.StatusOK, c.resp.StatusCode)
	go func() {
		defer close(c.events)
		_ = parse(c.resp.Body, func(e event) { c.events <- e })
	}()
	return c
}

// dial opens a stream that nobody reads yet.
func dial(t *testing.T, hc *http.Client, url, lastID string) *client {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	require.NoError(t, err)
	if lastID != "" {
		req.Header.Set("Last-Event-ID", lastID)
	}
	resp, err := hc.Do(req)
	require.NoError(t, err)
	c := &client{t: t, resp: resp, events: make(chan event, 4096), cancel: cancel, lastID: lastID}
	t.Cleanup(c.close)
	return c
}

// close cuts the connection.
func (c *client) close() {
	c.cancel()
	_ = c.resp.Body.Close()
}

// next gives the next event, heartbeats left out.
func (c *client) next() event {
	c.t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case e, open := <-c.events:
			require.True(c.t, open, "the stream has ended")
			if e.Comment != "" {
				continue
			}
			c.lastID = e.ID
			return e
		case <-deadline:
			require.FailNow(c.t, "no event came")
		}
	}
}

// ended requires that the stream ends without another event.
func (c *client) ended() {
	c.t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case e, open := <-c.events:
			if !open {
				return
			}
			require.NotEmpty(c.t, e.Comment, "an event after the last one: %v", e)
		case <-deadline:
			require.FailNow(c.t, "the stream did not end")
		}
	}
}

// notices requires exactly these data, in this order.
func (c *client) notices(data ...string) {
	c.t.Helper()
	for _, want := range data {
		e := c.next()
		require.Equal(c.t, "task.done", e.Name, "%v", e)
		require.Equal(c.t, want, e.Data)
	}
}
