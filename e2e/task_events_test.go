package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// watch opens GET /tasks/{id}/events.
func (c *client) watch(t *testing.T, id, query, lastEventID string) *stream {
	t.Helper()
	s, a := c.tryStream(t, "/tasks/"+id+"/events?"+query, lastEventID)
	require.Nil(t, a, "stream refused: %s", a)
	return s
}

// outputs joins the texts of the output events and checks that their ids rise.
func outputs(t *testing.T, events []event) string {
	t.Helper()
	var text strings.Builder
	last := int64(-1)
	for _, e := range events {
		if e.name != "output" {
			continue
		}
		var data struct {
			Text string `json:"text"`
		}
		require.NoError(t, json.Unmarshal([]byte(e.data), &data), "%q", e.data)
		require.NotEmpty(t, data.Text)
		next, err := strconv.ParseInt(e.id, 10, 64)
		require.NoError(t, err, "the id is the next offset: %q", e.id)
		require.Greater(t, next, last)
		last = next
		text.WriteString(data.Text)
	}
	return text.String()
}

func TestTaskEventsInOrder(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("watch")
	one, two := newGate(t), newGate(t)
	id := c.start(t, `printf 'fir\xe2\x82'; `+one.wait()+`printf '\xac second\n'; `+two.wait()+`echo third; exit 5`).ID
	c.says(t, id, "fir")
	s := c.watch(t, id, "", "")
	require.Contains(t, s.header.Get("Cache-Control"), "no-store")
	require.Equal(t, "no", s.header.Get("X-Accel-Buffering"))
	s.await(t, 5*time.Second, 1, "output")
	require.Equal(t, "fir", outputs(t, s.all()), "a torn character waits")
	one.open(t)
	eventually(t, 5*time.Second, "more output", func() bool { return strings.Contains(outputs(t, s.all()), "second\n") })
	two.open(t)
	s.over(t, 10*time.Second)
	all := s.all()
	require.Equal(t, "fir€ second\nthird\n", outputs(t, all))
	require.Len(t, s.all("end"), 1)
	last := all[len(all)-1]
	require.Equal(t, "end", last.name, "nothing comes behind the end")
	var end snapshot
	require.NoError(t, json.Unmarshal([]byte(last.data), &end))
	require.Equal(t, "completed", end.Status)
	require.Equal(t, 5, end.exitCode())
	require.NotNil(t, end.FinishedAt)
	require.False(t, c.get(t, id).Reported, "a look")
	for _, e := range s.all("output") {
		if strings.Contains(e.data, "third") {
			require.Equal(t, "20", e.id, "raw bytes")
		}
	}

	// Of an ended task: all of it, then the end.
	again := c.watch(t, id, "", "")
	again.over(t, 10*time.Second)
	require.Equal(t, "fir€ second\nthird\n", outputs(t, again.all()))
	require.Len(t, again.all("end"), 1)
	// From its end: the end alone.
	again = c.watch(t, id, "", "20")
	again.over(t, 10*time.Second)
	require.Empty(t, again.all("output"))
	require.Len(t, again.all("end"), 1)
}

func TestTaskEventsTellStatus(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("watch")
	id := c.start(t, `trap "" TERM; echo up; while :; do sleep 0.909; done`).ID
	c.says(t, id, "up")
	s := c.watch(t, id, "", "")
	s.await(t, 5*time.Second, 1, "output")
	c.kill(t, id)
	s.over(t, 20*time.Second)
	var told []string
	for _, e := range s.all("status", "end") {
		var snap snapshot
		require.NoError(t, json.Unmarshal([]byte(e.data), &snap), "%q", e.data)
		require.Equal(t, id, snap.ID)
		told = append(told, e.name+" "+snap.Status)
	}
	require.Contains(t, told, "status stopping")
	require.Equal(t, "end killed", told[len(told)-1])
	require.NotContains(t, told[:len(told)-1], "status killed", "the end is told by end")
}

// Cut anywhere and resumed with the last id, the text is the output: no hole, no twin.
func TestTaskEventsResume(t *testing.T) {
	t.Parallel()
	d := serve(t, "AFOOT_MAX_STREAMS_PER_SESSION=100")
	c := d.as("watch")
	for seed := range uint64(4) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 5))
			var whole []byte
			for i := range 4000 {
				whole = fmt.Appendf(whole, "%d Größe € 😀 %x\n", i, random.Uint64())
			}
			f := newFeed(t)
			id := c.start(t, f.print()).ID
			f.size = int64(len(whole))
			var g errgroup.Group
			g.Go(func() error {
				for _, piece := range cuts(whole, 9000, random.IntN) {
					if _, err := f.file.Write(piece); err != nil {
						return err
					}
				}
				return nil
			})
			own := rand.New(rand.NewPCG(seed, 6))
			var text strings.Builder
			last, closed := "", false
			for begun := time.Now(); ; {
				require.Less(t, time.Since(begun), patient(60*time.Second))
				events, ended := c.someEvents(t, id, last, 1+own.IntN(400000))
				text.WriteString(outputs(t, events))
				for _, e := range events {
					if e.id != "" {
						last = e.id
					}
				}
				if ended {
					break
				}
				if !closed && text.Len() == len(whole) {
					closed = true
					f.done(t)
				}
			}
			require.NoError(t, g.Wait())
			same(t, string(whole), text.String())
			require.Equal(t, strconv.Itoa(len(whole)), last)
		})
	}
}

// someEvents reads at most so many bytes of the stream and gives the events that
// they hold in full, or all of them with the end. It leaves by itself when nothing
// comes for a moment.
func (c *client) someEvents(t *testing.T, id, last string, most int) (events []event, ended bool) {
	t.Helper()
	w, err := c.d.dial()
	require.NoError(t, err)
	defer func() { _ = w.conn.Close() }()
	headers := []string{}
	if last != "" {
		headers = append(headers, "Last-Event-ID: "+last)
	}
	require.NoError(t, w.ask(c, "/tasks/"+id+"/events", headers...))
	res, err := http.ReadResponse(w.r, nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.NoError(t, w.conn.SetReadDeadline(time.Now().Add(500*time.Millisecond)))
	s := &stream{}
	s.pump(bufio.NewReader(io.LimitReader(res.Body, int64(most))))
	events = s.all()
	return events, len(s.all("end")) == 1
}

func TestTaskEventsUnplaceable(t *testing.T) {
	t.Parallel()
	d := serve(t, "AFOOT_OUTPUT_MAX_BYTES=256KiB")
	c := d.as("watch")
	id := c.start(t, `seq 1 100000`).ID
	eventually(t, 30*time.Second, "end", func() bool { return c.get(t, id).terminal() })
	s := c.get(t, id)
	require.Positive(t, s.DroppedBytes)
	kept := string(c.log(t, id))
	// From below the first kept byte it starts there, as a read does.
	for _, last := range []string{"", "0", "10", strconv.FormatInt(s.DroppedBytes-1, 10)} {
		w := c.watch(t, id, "", last)
		w.over(t, 20*time.Second)
		same(t, kept, outputs(t, w.all()))
		require.Len(t, w.all("end"), 1)
	}
	// What is no place in this output is told, and never gives silence or an error page.
	for _, last := range []string{"abc", "-1", "99999999999", strings.Repeat("7", 10000), "1.5", "9223372036854775808"} {
		w := c.watch(t, id, "", last)
		w.over(t, 20*time.Second)
		require.Len(t, w.all("gap"), 1, "%.20q", last)
		same(t, kept, outputs(t, w.all()))
		require.Len(t, w.all("end"), 1, "%.20q", last)
	}
	for path, want := range map[string]int{"/tasks/bash-999/events": 404, "/tasks/x/events": 404} {
		_, a := c.tryStream(t, path, "")
		require.NotNil(t, a)
		a.refused(t, want, "unknown_task")
	}
	_, a := d.as("watch-other").tryStream(t, "/tasks/"+id+"/events", "")
	require.NotNil(t, a)
	a.refused(t, http.StatusForbidden, "foreign_task")
	c.purge(t, id)
	_, a = c.tryStream(t, "/tasks/"+id+"/events", "")
	require.NotNil(t, a)
	a.refused(t, http.StatusGone, "gone")
}

// A follower that reads nothing slows neither another one nor the child.
func TestTaskEventsStoppedReader(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("watch")
	g := newGate(t)
	const size = 12000000
	id := c.start(t, g.wait()+fmt.Sprintf(`yes 0123456789abcdef | head -c %d; exit 0`, size)).ID
	for _, path := range []string{"/events", "/log?follow=true"} {
		d.stopped(t, c, "/tasks/"+id+path)
	}
	follower := c.watch(t, id, "", "")
	g.open(t)
	eventually(t, 20*time.Second, "the child's end", func() bool { return c.get(t, id).terminal() })
	follower.over(t, 30*time.Second)
	require.Len(t, outputs(t, follower.all()), size)
	require.Len(t, follower.all("end"), 1)
}

// stopped opens a request whose answer nobody reads.
func (d *daemon) stopped(t *testing.T, c *client, path string) *wire {
	t.Helper()
	w, err := d.dial()
	require.NoError(t, err)
	t.Cleanup(func() { _ = w.conn.Close() })
	require.NoError(t, w.conn.SetReadBuffer(4096))
	require.NoError(t, w.ask(c, path))
	line, err := w.r.Peek(len("HTTP/1.1 200"))
	require.NoError(t, err)
	require.Equal(t, "HTTP/1.1 200", string(line))
	return w
}

// Hundreds follow one task; each gets all of it.
func TestTaskEventsManyFollowers(t *testing.T) {
	t.Parallel()
	const n = 300
	d := serve(t, "AFOOT_MAX_STREAMS_PER_SESSION=1000")
	c := d.as("watch")
	gate := newGate(t)
	id := c.start(t, `echo up; `+gate.wait()+`for i in {1..50}; do echo line $i; sleep .01; done`).ID
	c.says(t, id, "up")
	follow := make([]*stream, n)
	for i := range follow {
		follow[i] = c.watch(t, id, "", "")
	}
	var logs errgroup.Group
	for range 50 {
		logs.Go(func() error {
			a, err := c.call(t.Context(), http.MethodGet, "/tasks/"+id+"/log?follow=true", nil)
			if err != nil {
				return err
			}
			if !strings.HasSuffix(string(a.body), "line 50\n") {
				return fmt.Errorf("a follower of the log got %q", a.body)
			}
			return nil
		})
	}
	gate.open(t)
	_, text := c.finish(t, id)
	for _, s := range follow {
		s.over(t, 30*time.Second)
		require.Equal(t, text, outputs(t, s.all()))
		require.Len(t, s.all("end"), 1)
	}
	require.NoError(t, logs.Wait())
	eventually(t, 10*time.Second, "no stream is left", func() bool { return d.streams(t) == 0 })
}

func TestTaskEventsOfSplitStreams(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("watch")
	id := c.startSplit(t, `echo out; echo err >&2`)
	c.finish(t, id)
	for query, want := range map[string]string{"": "out\n", "stream=stderr": "err\n"} {
		s := c.watch(t, id, query, "")
		s.over(t, 10*time.Second)
		require.Equal(t, want, outputs(t, s.all()), query)
		require.Len(t, s.all("end"), 1)
	}
	merged := c.start(t, "true").ID
	_, a := c.tryStream(t, "/tasks/"+merged+"/events?stream=stderr", "")
	require.NotNil(t, a)
	a.refused(t, http.StatusBadRequest, "invalid")
}
