package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// event is one dispatched Server-Sent Event.
type event struct {
	id, name, data string
}

// notice is the data of a task.done event.
type notice struct {
	Text string   `json:"text"`
	Task snapshot `json:"task"`
}

func (e event) notice(t *testing.T) notice {
	t.Helper()
	require.Equal(t, "task.done", e.name)
	var n notice
	require.NoError(t, json.Unmarshal([]byte(e.data), &n), "%q", e.data)
	return n
}

// number gives epoch and number of the event's id.
func (e event) number(t *testing.T) (epoch string, n uint64) {
	t.Helper()
	epoch, n, err := place(e.id)
	require.NoError(t, err)
	return epoch, n
}

// place reads the id of an event.
func place(id string) (epoch string, n uint64, err error) {
	i := strings.LastIndexByte(id, '-')
	if i <= 0 {
		return "", 0, fmt.Errorf("event id %q", id)
	}
	if n, err = strconv.ParseUint(id[i+1:], 10, 64); err != nil {
		return "", 0, fmt.Errorf("event id %q: %w", id, err)
	}
	return id[:i], n, nil
}

// stream is an open subscription. A goroutine reads it until it ends or is cut.
type stream struct {
	header http.Header
	cancel context.CancelFunc
	ended  chan struct{}

	mu       sync.Mutex
	events   []event
	comments []time.Time
	err      error
}

// subscribe opens GET /events and fails the test unless it is a stream.
func (c *client) subscribe(t *testing.T, query, lastEventID string) *stream {
	t.Helper()
	s, a := c.trySubscribe(t, query, lastEventID)
	require.Nil(t, a, "stream refused: %s", a)
	return s
}

// trySubscribe gives the refusal instead, if that is the answer. The stream ends
// with the test at the latest.
func (c *client) trySubscribe(t *testing.T, query, lastEventID string) (*stream, *answer) {
	t.Helper()
	return c.tryStream(t, "/events?"+query, lastEventID)
}

// tryStream is trySubscribe for any stream.
func (c *client) tryStream(t *testing.T, path, lastEventID string) (*stream, *answer) {
	t.Helper()
	s, a, err := c.listen(path, lastEventID)
	require.NoError(t, err)
	if a != nil {
		return nil, a
	}
	require.True(t, strings.HasPrefix(s.header.Get("Content-Type"), "text/event-stream"), "%v", s.header)
	t.Cleanup(s.cut)
	return s, nil
}

// listen opens a stream from any goroutine, and gives the refusal if that is the
// answer. The caller cuts the stream.
func (c *client) listen(path, lastEventID string) (*stream, *answer, error) {
	ctx, cancel := context.WithCancel(context.Background())
	req, err := c.request(ctx, http.MethodGet, path, nil, "Last-Event-ID: "+lastEventID)
	if err != nil {
		cancel()
		return nil, nil, err
	}
	res, err := c.http.Do(req)
	if err != nil {
		cancel()
		return nil, nil, err
	}
	if res.StatusCode != http.StatusOK {
		defer cancel()
		defer func() { _ = res.Body.Close() }()
		body := make([]byte, 4096)
		n, _ := res.Body.Read(body)
		return nil, &answer{status: res.StatusCode, header: res.Header, body: body[:n]}, nil
	}
	s := &stream{header: res.Header, cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		defer func() { _ = res.Body.Close() }()
		s.pump(bufio.NewReader(res.Body))
	}()
	return s, nil, nil
}

// pump dispatches events as the standard says; an event without its blank line is
// none.
func (s *stream) pump(r *bufio.Reader) {
	var e event
	var data []string
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			s.mu.Lock()
			s.err = err
			s.mu.Unlock()
			return
		}
		line = strings.TrimRight(line, "\r\n")
		if line == "" {
			if len(data) > 0 {
				e.data = strings.Join(data, "\n")
				if e.name == "" {
					e.name = "message"
				}
				s.mu.Lock()
				s.events = append(s.events, e)
				s.mu.Unlock()
			}
			e, data = event{}, nil
			continue
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "":
			s.mu.Lock()
			s.comments = append(s.comments, time.Now())
			s.mu.Unlock()
		case "id":
			e.id = value
		case "event":
			e.name = value
		case "data":
			data = append(data, value)
		}
	}
}

// cut drops the connection and waits until the reader has ended.
func (s *stream) cut() {
	s.cancel()
	<-s.ended
}

// leave cuts the stream once the daemon has written something behind the last
// notice that came, and so has recorded that one as written: who leaves at once may
// get it again. The later event is the change of an unowned task. It returns when
// the daemon has noticed: until then an end may be written to nobody.
func (s *stream) leave(t *testing.T, c *client) {
	t.Helper()
	before := len(s.all("tasks.changed"))
	c.d.anyone().start(t, "true")
	s.await(t, 10*time.Second, before+1, "tasks.changed")
	open := c.d.streams(t)
	s.cut()
	eventually(t, 10*time.Second, "the daemon sees that the client has left", func() bool { return c.d.streams(t) < open })
}

// streams counts the open streams of a daemon.
func (d *daemon) streams(t *testing.T) int {
	t.Helper()
	a := d.with(d.mint(map[string]any{"scope": "metrics"})).do(t, http.MethodGet, "/metrics", nil)
	for line := range strings.Lines(string(a.body)) {
		if count, ok := strings.CutPrefix(line, "afoot_streams "); ok {
			n, err := strconv.Atoi(strings.TrimSpace(count))
			require.NoError(t, err)
			return n
		}
	}
	require.Fail(t, "no afoot_streams in /metrics", "%s", a.body)
	return 0
}

// all gives the events with one of names so far, all of them without names.
func (s *stream) all(names ...string) []event {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []event
	for _, e := range s.events {
		match := len(names) == 0
		for _, name := range names {
			match = match || e.name == name
		}
		if match {
			found = append(found, e)
		}
	}
	return found
}

func (s *stream) beats() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.comments)
}

// done waits for n notices and gives all there are.
func (s *stream) done(t *testing.T, n int) []event {
	t.Helper()
	return s.await(t, 20*time.Second, n, "task.done")
}

// await waits for n events of the names.
func (s *stream) await(t *testing.T, within time.Duration, n int, names ...string) []event {
	t.Helper()
	begun := time.Now()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		found := s.all(names...)
		if len(found) >= n {
			return found
		}
		if late(begun, within) {
			require.FailNow(t, "events missing", "%d of %d %v within %v; all: %v", len(found), n, names, within, s.all())
		}
		<-tick.C
	}
}

// over waits for the end of the stream.
func (s *stream) over(t *testing.T, within time.Duration) {
	t.Helper()
	eventually(t, within, "the stream is over", func() bool {
		select {
		case <-s.ended:
			return true
		default:
			return false
		}
	})
}

// quiet proves that no other notice is on its way to the caller: it ends a task of
// its own and takes that notice as the mark behind everything earlier. It gives the
// notices that came before the mark.
func (s *stream) quiet(t *testing.T, c *client) []event {
	t.Helper()
	mark := c.start(t, "true", fields{"label": "mark " + hexText(4)})
	var before []event
	eventually(t, 15*time.Second, "the mark's notice", func() bool {
		for _, e := range s.all("task.done")[len(before):] {
			if e.notice(t).Task.ID == mark.ID {
				return true
			}
			before = append(before, e)
		}
		return false
	})
	return before
}

// ids gives the task ids of notices, in order.
func ids(t *testing.T, events []event) []string {
	t.Helper()
	found := make([]string, 0, len(events))
	for _, e := range events {
		found = append(found, e.notice(t).Task.ID)
	}
	return found
}
