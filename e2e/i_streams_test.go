package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// ends lets n tasks end one after another and gives their ids.
func (c *client) ends(t *testing.T, n int) []string {
	t.Helper()
	var all []string
	for range n {
		id := c.start(t, "true").ID
		c.finish(t, id)
		all = append(all, id)
	}
	return all
}

func TestI3IdleStreamStaysOpen(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		env   []string
		beats int
	}{
		"quick heartbeat":   {[]string{"AFOOT_HEARTBEAT=500ms"}, 12},
		"default heartbeat": {nil, 5}, // more than 65 s
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := serve(t, row.env...)
			c := d.as("i3")
			events := c.subscribe(t, "", "")
			eventually(t, 120*time.Second, "heartbeats", func() bool { return events.beats() >= row.beats })
			want := c.ends(t, 1)
			require.Equal(t, want, ids(t, events.done(t, 1)), "on the old connection")
		})
	}
}

func TestI4HeadersAndHeartbeat(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("i4")
	var beats errgroup.Group // they are waited for at the same time
	for _, query := range []string{"", "?observe=true", "?agent=default"} {
		w, err := d.dial()
		require.NoError(t, err)
		begun := time.Now()
		require.NoError(t, w.ask(c, "/events"+query, "Accept: */*", "Accept-Encoding: gzip, deflate, br"))
		res, err := http.ReadResponse(w.r, nil)
		require.NoError(t, err, query)
		defer func() { //nolint:revive // three rounds
			_ = w.conn.Close() // first: closing a body reads it to its end
			_ = res.Body.Close()
		}()
		require.Less(t, time.Since(begun), patient(time.Second), query)
		require.Equal(t, http.StatusOK, res.StatusCode, query)
		require.True(t, strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream"), "%s: %v", query, res.Header)
		require.Contains(t, res.Header.Get("Cache-Control"), "no-store", query)
		require.Equal(t, "no", res.Header.Get("X-Accel-Buffering"), query)
		require.Empty(t, res.Header.Get("Content-Encoding"), query)
		beats.Go(func() error {
			body := bufio.NewReader(res.Body)
			for { // the first comment may come at once; the next one is the heartbeat
				line, err := body.ReadString('\n')
				if err != nil {
					return fmt.Errorf("%q: %w", query, err)
				}
				if strings.HasPrefix(line, ":") && time.Since(begun) > time.Second {
					break
				}
			}
			if took := time.Since(begun); took > patient(16*time.Second) {
				return fmt.Errorf("%q: a comment at least every 15 s, not after %v", query, took)
			}
			return nil
		})
	}
	require.NoError(t, beats.Wait())
}

func TestI5TooManyStreams(t *testing.T) {
	t.Parallel()
	d := serve(t, "AFOOT_MAX_STREAMS_PER_SESSION=3")
	c := d.as("i5")
	var open []*stream
	for range 3 {
		open = append(open, c.subscribe(t, "", ""))
	}
	s, refusal := c.trySubscribe(t, "", "")
	require.Nil(t, s)
	refusal.refused(t, http.StatusTooManyRequests, "limit_reached")
	d.as("i5-other").subscribe(t, "", "").cut()
	open[0].cut()
	eventually(t, 5*time.Second, "a place is free again", func() bool {
		s, _ := c.trySubscribe(t, "", "")
		return s != nil
	})
}

func TestI6EndWithTheToken(t *testing.T) {
	t.Parallel()
	d := serve(t)
	long := d.as("i6")
	id := long.start(t, `sleep 617`).ID
	begun := time.Now()
	short := d.with(d.mint(jwt.MapClaims{"sid": "i6", "exp": begun.Add(8 * time.Second).Unix()}))
	streams := []*stream{short.subscribe(t, "", ""), short.subscribe(t, "observe=true", "")}
	var g errgroup.Group
	for _, query := range []string{"wait=true&timeout_ms=60000", "wait=true&timeout_ms=60000&offset=0"} {
		g.Go(func() error {
			a, err := short.call(t.Context(), http.MethodGet, "/tasks/"+id+"/output?"+query, nil)
			if err != nil {
				return err
			}
			a.mustRefuse(t, http.StatusUnauthorized, "unauthenticated")
			return nil
		})
	}
	g.Go(func() error { // the answer has begun, so all that is left is to end it
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		req, err := short.request(ctx, http.MethodGet, "/tasks/"+id+"/log?follow=true", nil)
		if err != nil {
			return err
		}
		res, err := short.http.Do(req)
		if err != nil {
			return err
		}
		defer func() { _ = res.Body.Close() }()
		_, _ = io.Copy(io.Discard, res.Body)
		return ctx.Err()
	})
	g.Go(func() error {
		a, err := short.call(t.Context(), http.MethodPost, "/tasks?wait=true&timeout_ms=60000", startBody(`sleep 619`))
		if err != nil {
			return err
		}
		if a.status == http.StatusOK || time.Since(begun) > patient(10*time.Second) {
			return fmt.Errorf("a start with wait outlived its token: %s", a)
		}
		return nil
	})
	for _, s := range streams {
		s.over(t, time.Until(begun.Add(10*time.Second)))
		all := s.all()
		require.NotEmpty(t, all)
		last := all[len(all)-1]
		require.Equal(t, "bye", last.name)
		require.JSONEq(t, `{"reason":"token_expired"}`, last.data)
	}
	require.NoError(t, g.Wait())
	require.Less(t, time.Since(begun), patient(10*time.Second))
	require.GreaterOrEqual(t, time.Since(begun), 6*time.Second, "not long before it expires")
	s, refusal := short.trySubscribe(t, "", "")
	require.Nil(t, s)
	refusal.refused(t, http.StatusUnauthorized, "unauthenticated")
	short.do(t, http.MethodGet, "/tasks/"+id, nil).refused(t, http.StatusUnauthorized, "unauthenticated")
	require.Equal(t, "running", long.get(t, id).Status, "the task goes on")
}

// mustRefuse is refused for goroutines other than the test's.
func (a *answer) mustRefuse(t *testing.T, status int, code string) {
	t.Helper()
	assert.Equal(t, status, a.status, "%s", a)
	assert.Contains(t, string(a.body), `"`+code+`"`)
}

func TestStreamTellsChanges(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("changes")
	other, nobody := d.as("changes-other"), d.anyone()
	mine, theirs, bare := c.subscribe(t, "", ""), other.subscribe(t, "", ""), nobody.subscribe(t, "", "")
	id := c.start(t, `sleep 621`).ID
	e := mine.await(t, 5*time.Second, 1, "tasks.changed")[0]
	require.Empty(t, e.id)
	require.True(t, json.Valid([]byte(e.data)), "%q", e.data)
	before := len(mine.all("tasks.changed"))
	c.kill(t, id)
	mine.await(t, 5*time.Second, before+1, "tasks.changed")
	require.Empty(t, theirs.all("tasks.changed"), "another session's change")

	nobody.start(t, "true")
	theirs.await(t, 5*time.Second, 1, "tasks.changed")
	bare.await(t, 5*time.Second, 1, "tasks.changed")
	require.Empty(t, theirs.all("task.done"))
}
