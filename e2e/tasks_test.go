package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

func TestListPagesAndFilters(t *testing.T) {
	t.Parallel()
	d := serve(t, "AFOOT_MAX_TASKS_PER_OWNER=50")
	c := d.as("list")
	var all []string
	for i := range 25 {
		command := "true"
		if i%5 == 0 {
			command = "kill -9 $$"
		}
		s := c.start(t, command)
		c.finish(t, s.ID)
		all = append(all, s.ID)
	}
	live := c.start(t, "sleep 833").ID
	all = append(all, live)
	take := func(query string) []string {
		t.Helper()
		found := []string{}
		for _, s := range c.list(t, query) {
			found = append(found, s.ID)
		}
		return found
	}
	require.Equal(t, all, take(""), "in registration order")
	for _, limit := range []int{1, 2, 7, 25, 26, 27, 1000} {
		require.Equal(t, all, take(fmt.Sprintf("limit=%d", limit)))
	}
	require.Equal(t, []string{live}, take("status=running"))
	require.Len(t, take("status=killed"), 5)
	require.Len(t, take("status=completed&limit=3"), 20)
	require.Empty(t, take("status=failed"))
	require.Empty(t, take("status=stopping"))
	require.Equal(t, all, take("kind=bash&limit=4"))
	require.Equal(t, []string{live}, take("kind=bash&status=running"))
	require.Empty(t, take("kind=pty"))

	// A page can be taken again, and new tasks come behind.
	a := c.do(t, http.MethodGet, "/tasks?limit=5", nil)
	var page struct {
		Tasks []snapshot `json:"tasks"`
		Next  string     `json:"next"`
	}
	a.into(t, &page)
	require.Len(t, page.Tasks, 5)
	more := c.start(t, "true").ID
	for range 2 {
		again := take("limit=100&after=" + page.Next)
		require.Equal(t, append(append([]string{}, all[5:]...), more), again)
	}
	for _, s := range c.list(t, "") {
		require.False(t, s.Reported, "listing marks nothing")
	}
}

func TestIdempotentStarts(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("idem")
	post := func(c *client, key string, body any) *answer {
		t.Helper()
		return c.do(t, http.MethodPost, "/tasks", body, "Idempotency-Key: "+key)
	}
	id := func(a *answer) string {
		t.Helper()
		var s snapshot
		a.into(t, &s)
		return s.ID
	}
	first := post(c, "k1", `{"kind":"bash","command":"true","env":{"A":"1","B":"2"}}`)
	require.Equal(t, http.StatusCreated, first.status, "%s", first)
	require.Empty(t, first.header.Get("Idempotency-Replayed"))
	for _, same := range []string{
		`{"kind":"bash","command":"true","env":{"A":"1","B":"2"}}`,
		`{ "env" : {"B":"2", "A":"1"}, "command":"tr\u0075e", "kind":"bash" }`,
	} {
		a := post(c, "k1", same)
		require.Equal(t, http.StatusOK, a.status, "%s", a)
		require.Equal(t, "true", a.header.Get("Idempotency-Replayed"))
		require.Equal(t, id(first), id(a))
	}
	for _, other := range []string{
		`{"kind":"bash","command":"false","env":{"A":"1","B":"2"}}`,
		`{"kind":"bash","command":"true"}`,
		`{"kind":"bash","command":"true","env":{"A":"1","B":"2"},"label":"x"}`,
	} {
		post(c, "k1", other).refused(t, http.StatusUnprocessableEntity, "idempotency_mismatch")
	}
	agent := c.open(t, fields{})
	post(agent, "k1", `{"kind":"bash","command":"true","env":{"A":"1","B":"2"}}`).
		refused(t, http.StatusUnprocessableEntity, "idempotency_mismatch")
	require.Equal(t, http.StatusCreated, post(c, "k2", startBody("true")).status)
	a := post(d.as("idem-other"), "k1", startBody("true"))
	require.Equal(t, http.StatusCreated, a.status, "keys are per session")

	// Refusals are not remembered.
	post(c, "k3", `{"kind":"bash","command":""}`).refused(t, http.StatusBadRequest, "invalid")
	require.Equal(t, http.StatusCreated, post(c, "k3", startBody("true")).status)

	// Without a session: per subject.
	one := d.with(d.mint(map[string]any{"sub": "one"}))
	two := d.with(d.mint(map[string]any{"sub": "two"}))
	x, y := post(one, "k1", startBody("true")), post(two, "k1", startBody("true"))
	require.Equal(t, http.StatusCreated, x.status)
	require.Equal(t, http.StatusCreated, y.status)
	require.Equal(t, id(x), id(post(one, "k1", startBody("true"))))
}

func TestIdempotentTwins(t *testing.T) {
	t.Parallel()
	d := serve(t, "AFOOT_MAX_TASKS_PER_OWNER=50")
	c := d.as("twins")
	for round := range 5 {
		var mu sync.Mutex
		seen := map[string]int{}
		created := 0
		var g errgroup.Group
		for range 20 {
			g.Go(func() error {
				a, err := c.call(t.Context(), http.MethodPost, "/tasks", startBody("sleep .05"), fmt.Sprintf("Idempotency-Key: twin-%d", round))
				if err != nil {
					return err
				}
				var s snapshot
				if err := json.Unmarshal(a.body, &s); err != nil {
					return fmt.Errorf("%w: %s", err, a)
				}
				mu.Lock()
				defer mu.Unlock()
				seen[s.ID]++
				switch {
				case a.status == http.StatusCreated:
					created++
				case a.status != http.StatusOK || a.header.Get("Idempotency-Replayed") != "true":
					return fmt.Errorf("%s", a)
				}
				return nil
			})
		}
		require.NoError(t, g.Wait())
		require.Len(t, seen, 1, "one task for all twins")
		require.Equal(t, 1, created)
	}
	require.Len(t, c.list(t, ""), 5)
}

func TestKill(t *testing.T) {
	t.Parallel()
	d := serve(t, "AFOOT_KILL_GRACE=5s")
	c := d.as("kill")
	id := c.start(t, `trap "" TERM; echo up; while :; do sleep 0.835; done`).ID
	c.says(t, id, "up")
	for range 3 { // idempotent while it stops
		a := c.do(t, http.MethodDelete, "/tasks/"+id+"?reason=enough", nil)
		require.Equal(t, http.StatusAccepted, a.status, "%s", a)
		var k killed
		a.into(t, &k)
		require.Equal(t, "requested", k.Outcome)
		require.Equal(t, "stopping", k.Snapshot.Status)
		require.True(t, k.Snapshot.Reported)
		require.Nil(t, k.Snapshot.FinishedAt)
	}
	require.Len(t, c.list(t, "status=stopping"), 1)
	c.finish(t, id)
	k := c.kill(t, id)
	require.Equal(t, "already-finished", k.Outcome)
	require.Equal(t, "killed", k.Snapshot.Status)
	require.Equal(t, "up\n", c.read(t, id, "").Text)

	ended := c.start(t, "echo out; exit 2").ID
	c.finish(t, ended)
	k = c.kill(t, ended)
	require.Equal(t, "already-finished", k.Outcome)
	require.Equal(t, "completed", k.Snapshot.Status)
	require.Equal(t, "out\n", c.read(t, ended, "").Text, "pending output is not consumed")
}

func TestPurge(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("purge")
	live := c.start(t, "echo up; sleep 837").ID
	c.says(t, live, "up")
	purge := func(id string) *answer { return c.do(t, http.MethodDelete, "/tasks/"+id+"?purge=true", nil) }
	purge(live).refused(t, http.StatusConflict, "conflict")
	require.Equal(t, "running", c.get(t, live).Status)
	require.False(t, c.get(t, live).Reported)

	ended := c.start(t, "echo out; sleep 839 & exit 0").ID
	c.finish(t, ended)
	require.NotEmpty(t, d.aliveOf(ended))
	require.Equal(t, http.StatusNoContent, purge(ended).status)
	d.gone(t, ended, grace+time.Second)
	for _, x := range [][2]string{{"GET", ""}, {"GET", "/output"}, {"GET", "/output?offset=0"}, {"GET", "/log"}, {"DELETE", ""}, {"DELETE", "?purge=true"}} {
		c.do(t, x[0], "/tasks/"+ended+x[1], nil).refused(t, http.StatusGone, "gone")
	}
	require.Len(t, c.list(t, ""), 1)
	require.Equal(t, "bash-3", c.start(t, "true").ID, "ids are never used again")
}

func TestOperation(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("operation")
	c.finish(t, c.start(t, "echo x").ID)
	a := d.with("").do(t, http.MethodGet, "/openapi.yaml", nil)
	require.Equal(t, http.StatusOK, a.status)
	require.Contains(t, string(a.body), "openapi: 3.1")
	a = c.do(t, http.MethodGet, "/version", nil)
	require.Equal(t, http.StatusOK, a.status, "%s", a)
	require.True(t, json.Valid(a.body))
	metrics := d.with(d.mint(map[string]any{"scope": "metrics"})).do(t, http.MethodGet, "/metrics", nil)
	require.Equal(t, http.StatusOK, metrics.status)
	for _, word := range []string{"afoot_", `kind="bash"`, `status="completed"`, "_bucket{"} {
		require.Contains(t, string(metrics.body), word)
	}
	for _, x := range [][2]string{{"PUT", "/tasks"}, {"PATCH", "/tasks/bash-1"}, {"DELETE", "/tasks"}, {"POST", "/events"}} {
		a := c.do(t, x[0], x[1], nil)
		require.Equal(t, http.StatusMethodNotAllowed, a.status, "%v: %s", x, a)
		require.Equal(t, "application/problem+json", a.header.Get("Content-Type"))
	}
	a = c.do(t, http.MethodGet, "/no/such/path", nil)
	require.Equal(t, http.StatusNotFound, a.status)
	require.Equal(t, "application/problem+json", a.header.Get("Content-Type"))
	a = d.with("").do(t, http.MethodGet, "/", nil)
	require.Equal(t, http.StatusOK, a.status)
	require.True(t, strings.HasPrefix(a.header.Get("Content-Type"), "text/html"))
	require.NotEmpty(t, a.header.Get("Content-Security-Policy"))
}
