package e2e

import (
	"encoding/json"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"
)

// agents gives the ids of the session's agents.
func (c *client) agents(t *testing.T) []string {
	t.Helper()
	a := c.do(t, http.MethodGet, "/agents", nil)
	require.Equal(t, http.StatusOK, a.status, "%s", a)
	var list struct {
		Agents []struct {
			ID      string `json:"id"`
			Label   string `json:"label"`
			LeaseMs *int64 `json:"leaseMs"`
		} `json:"agents"`
	}
	a.into(t, &list)
	require.NotNil(t, list.Agents, "agents is a list, also when empty: %s", a)
	found := []string{}
	for _, x := range list.Agents {
		found = append(found, x.ID)
	}
	return found
}

func TestAgentsOwnTasks(t *testing.T) {
	t.Parallel()
	d := serve(t)
	session := d.as("agents")
	a := session.do(t, http.MethodPost, "/agents", fields{"label": "builder", "leaseMs": 86400000})
	require.Equal(t, http.StatusCreated, a.status, "%s", a)
	var made map[string]any
	a.into(t, &made)
	require.Equal(t, map[string]any{"id": made["id"], "label": "builder", "leaseMs": 86400000.0}, made)
	one := session.acting(made["id"].(string))
	two := session.open(t, fields{})
	require.Subset(t, session.agents(t), []string{one.agent, two.agent})

	first, second, plain := one.start(t, "true"), two.start(t, "true"), session.start(t, "true")
	require.Equal(t, one.agent, first.Agent)
	require.Equal(t, two.agent, second.Agent)
	require.Equal(t, "default", plain.Agent)
	require.Len(t, one.list(t, ""), 3, "access is by session")
	for _, id := range []string{first.ID, second.ID, plain.ID} {
		session.finish(t, id)
		require.Equal(t, "completed", two.get(t, id).Status)
	}

	// Notices go to the exact owner.
	require.Equal(t, []string{first.ID}, ids(t, one.subscribe(t, "agent="+one.agent, "").quiet(t, one)))
	require.Equal(t, []string{second.ID}, ids(t, two.subscribe(t, "agent="+two.agent, "").quiet(t, two)))
	everyone := d.as("agents-2")
	a1, a2 := everyone.open(t, fields{}), everyone.open(t, fields{})
	want := []string{a1.start(t, "true").ID, a2.start(t, "true").ID, everyone.start(t, "true").ID}
	require.ElementsMatch(t, want, ids(t, everyone.subscribe(t, "", "").done(t, 3)), "a stream of the session delivers for all")
}

func TestAgentsThatAreNot(t *testing.T) {
	t.Parallel()
	d := serve(t)
	mine, theirs := d.as("agents-a"), d.as("agents-b")
	foreign := theirs.open(t, fields{})
	over := mine.open(t, fields{})
	a := mine.do(t, http.MethodDelete, "/agents/"+over.agent, nil)
	require.Equal(t, http.StatusNoContent, a.status, "%s", a)
	for agent, want := range map[string]struct {
		status int
		code   string
	}{
		"agent-99":    {404, "unknown_agent"},
		"agent-0":     {404, "unknown_agent"},
		"agent-01":    {404, "unknown_agent"},
		"nobody":      {404, "unknown_agent"},
		"Default":     {404, "unknown_agent"},
		foreign.agent: {403, "foreign_agent"},
		over.agent:    {410, "gone"},
	} {
		c := mine.acting(agent)
		for _, x := range [][2]string{{"GET", "/tasks"}, {"POST", "/tasks"}, {"GET", "/events"}} {
			var body any
			if x[0] == "POST" {
				body = startBody("true")
			}
			c.do(t, x[0], x[1], body).refused(t, want.status, want.code)
		}
		mine.do(t, http.MethodGet, "/events?agent="+agent, nil).refused(t, want.status, want.code)
		if agent != "default" {
			mine.do(t, http.MethodDelete, "/agents/"+agent, nil).refused(t, want.status, want.code)
		}
	}
	require.Equal(t, "bash-1", mine.start(t, "true").ID, "no id was burnt")
	require.Equal(t, foreign.agent, foreign.start(t, "true").Agent)
}

func TestAgentsPinnedByClaim(t *testing.T) {
	t.Parallel()
	d := serve(t)
	session := d.as("pin")
	one, two := session.open(t, fields{}), session.open(t, fields{})
	pinned := d.with(d.mint(jwt.MapClaims{"sid": "pin", "agent": one.agent}))
	require.Equal(t, one.agent, pinned.start(t, "true").Agent)
	require.Equal(t, one.agent, pinned.acting(one.agent).start(t, "true").Agent)
	for _, other := range []string{two.agent, "default", "agent-99"} {
		pinned.acting(other).do(t, http.MethodPost, "/tasks", startBody("true")).refused(t, http.StatusForbidden, "forbidden")
	}
	require.Len(t, session.list(t, ""), 2)
	d.with(d.mint(jwt.MapClaims{"sid": "pin", "agent": "agent-77"})).
		do(t, http.MethodGet, "/tasks", nil).refused(t, http.StatusNotFound, "unknown_agent")
	a := d.anyone().do(t, http.MethodPost, "/agents", fields{})
	a.refused(t, http.StatusForbidden, "forbidden")
}

func TestAgentDisposalWaitsForTheWork(t *testing.T) {
	t.Parallel()
	d := serve(t)
	session := d.as("disposal")
	agent := session.open(t, fields{})
	stubborn := agent.start(t, `trap "" TERM; echo up; while :; do sleep 0.811; done`).ID
	quick := agent.start(t, `echo up; sleep 813`).ID
	pending := agent.start(t, "true").ID
	other := session.start(t, `echo up; sleep 815`).ID
	for _, id := range []string{stubborn, quick, other} {
		session.says(t, id, "up")
	}
	session.finish(t, pending)
	begun := time.Now()
	a := session.do(t, http.MethodDelete, "/agents/"+agent.agent, nil)
	require.Equal(t, http.StatusNoContent, a.status, "%s", a)
	for _, id := range []string{stubborn, quick} {
		require.Empty(t, d.aliveOf(id), "answered while %s lived", id)
	}
	require.GreaterOrEqual(t, time.Since(begun), grace-50*time.Millisecond)
	require.Less(t, time.Since(begun), patient(grace+2*time.Second))
	for _, id := range []string{stubborn, quick, pending} {
		session.do(t, http.MethodGet, "/tasks/"+id, nil).refused(t, http.StatusGone, "gone")
	}
	require.Len(t, session.list(t, ""), 1)
	require.NotContains(t, session.agents(t), agent.agent)
	events := session.subscribe(t, "", "")
	require.Empty(t, events.quiet(t, session), "pending notices are gone with their owner")
	require.Equal(t, "running", session.get(t, other).Status, "others are untouched")
	session.do(t, http.MethodDelete, "/agents/"+agent.agent, nil).refused(t, http.StatusGone, "gone")
}

// A disposal goes on when its caller leaves.
func TestAgentDisposalOutlivesItsCaller(t *testing.T) {
	t.Parallel()
	d := serve(t)
	session := d.as("disposal")
	agent := session.open(t, fields{})
	id := agent.start(t, `trap "" TERM; echo up; while :; do sleep 0.817; done`).ID
	session.says(t, id, "up")
	w, err := d.dial()
	require.NoError(t, err)
	_, err = w.conn.Write([]byte(bare("DELETE /agents/"+agent.agent+" HTTP/1.1", "Host: "+d.addr, session.bearer())))
	require.NoError(t, err)
	eventually(t, 5*time.Second, "disposal has begun", func() bool {
		a := session.do(t, http.MethodGet, "/tasks/"+id, nil)
		var s snapshot
		return a.status != http.StatusOK || json.Unmarshal(a.body, &s) == nil && s.Status != "running"
	})
	require.NoError(t, w.cut())
	d.gone(t, id, grace+2*time.Second)
	eventually(t, 5*time.Second, "record removed", func() bool {
		return session.do(t, http.MethodGet, "/tasks/"+id, nil).status == http.StatusGone
	})
}

func TestDefaultAgentBeginsAnew(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("default")
	old := c.start(t, `echo up; sleep 819`).ID
	c.says(t, old, "up")
	a := c.do(t, http.MethodDelete, "/agents/default", nil)
	require.Equal(t, http.StatusNoContent, a.status, "%s", a)
	require.Empty(t, d.aliveOf(old))
	c.do(t, http.MethodGet, "/tasks/"+old, nil).refused(t, http.StatusGone, "gone")
	s := c.start(t, "true")
	require.Equal(t, "default", s.Agent)
	require.Equal(t, "bash-2", s.ID)
	events := c.subscribe(t, "", "")
	require.Equal(t, []string{s.ID}, ids(t, events.done(t, 1)))
}

func TestLeases(t *testing.T) {
	t.Parallel()
	d := serve(t)
	session := d.as("lease")
	t.Run("a silent agent is disposed", func(t *testing.T) {
		t.Parallel()
		agent := session.open(t, fields{"leaseMs": 3000})
		begun := time.Now()
		id := agent.start(t, `sleep 821`).ID
		eventually(t, 15*time.Second, "disposal", func() bool {
			return session.do(t, http.MethodGet, "/tasks/"+id, nil).status == http.StatusGone
		})
		require.GreaterOrEqual(t, time.Since(begun), 3*time.Second)
		require.Empty(t, d.aliveOf(id))
		agent.do(t, http.MethodGet, "/tasks", nil).refused(t, http.StatusGone, "gone")
	})
	// Each of these keeps an agent alive much longer than its lease; afterwards it
	// falls silent and goes.
	for name, busy := range map[string]func(t *testing.T, agent *client, id string){
		"calls renew": func(t *testing.T, agent *client, _ string) {
			t.Helper()
			until := time.Now().Add(7 * time.Second)
			eventually(t, 30*time.Second, "calls for two leases", func() bool {
				require.Equal(t, http.StatusOK, agent.do(t, http.MethodGet, "/tasks?limit=1", nil).status)
				return time.Now().After(until)
			})
		},
		"a stream holds": func(t *testing.T, agent *client, id string) {
			t.Helper()
			events := agent.subscribe(t, "agent="+agent.agent, "")
			o := session.read(t, id, "wait=true&timeout_ms=7000&offset=3")
			require.Equal(t, "running", o.Snapshot.Status)
			events.cut()
		},
		"a wait holds": func(t *testing.T, agent *client, id string) {
			t.Helper()
			require.Equal(t, "running", agent.read(t, id, "wait=true&timeout_ms=7000").Snapshot.Status)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agent := session.open(t, fields{"leaseMs": 4000})
			id := agent.start(t, `echo up; sleep 823`).ID
			session.says(t, id, "up")
			busy(t, agent, id)
			require.Contains(t, session.agents(t), agent.agent)
			eventually(t, 15*time.Second, "disposal", func() bool {
				return session.do(t, http.MethodGet, "/tasks/"+id, nil).status == http.StatusGone
			})
			d.gone(t, id, time.Second)
		})
	}
	t.Run("the default agent has none", func(t *testing.T) {
		t.Parallel()
		c := d.as("lease-default")
		id := c.start(t, `sleep 2.5; exit 3`).ID
		eventually(t, 10*time.Second, "end, seen by another", func() bool { return len(d.aliveOf(id)) == 0 })
		eventually(t, 10*time.Second, "its end is recorded", func() bool { return c.get(t, id).FinishedAt != nil })
		require.Equal(t, 3, c.get(t, id).exitCode())
	})
}

func TestAgentLimit(t *testing.T) {
	t.Parallel()
	d := serve(t, "AFOOT_MAX_AGENTS_PER_SESSION=3")
	c := d.as("limit")
	var made []*client
	for range 3 {
		a := c.do(t, http.MethodPost, "/agents", fields{})
		if a.status == http.StatusTooManyRequests {
			break // the default agent may count
		}
		require.Equal(t, http.StatusCreated, a.status, "%s", a)
		var x struct{ ID string }
		a.into(t, &x)
		made = append(made, c.acting(x.ID))
	}
	require.GreaterOrEqual(t, len(made), 2)
	text := c.do(t, http.MethodPost, "/agents", fields{}).refused(t, http.StatusTooManyRequests, "limit_reached")
	require.Contains(t, text, "AFOOT_MAX_AGENTS_PER_SESSION")
	d.as("limit-other").open(t, fields{})
	a := c.do(t, http.MethodDelete, "/agents/"+made[0].agent, nil)
	require.Equal(t, http.StatusNoContent, a.status)
	next := c.open(t, fields{})
	for _, m := range made {
		require.NotEqual(t, m.agent, next.agent, "ids are never reused")
	}
}

func TestTaskLimits(t *testing.T) {
	t.Parallel()
	d := serve(t)
	session := d.as("limit")
	agent := session.open(t, fields{})
	full := func(c *client, n int) []string {
		t.Helper()
		var held []string
		for range n {
			held = append(held, c.start(t, `trap "" TERM; echo up; while :; do sleep 0.825; done`).ID)
		}
		a := c.do(t, http.MethodPost, "/tasks", startBody("true"))
		text := a.refused(t, http.StatusTooManyRequests, "limit_reached")
		require.Contains(t, text, "AFOOT_MAX_TASKS_PER_OWNER")
		require.Contains(t, text, strconv.Itoa(n))
		return held
	}
	held := full(session, 10)
	other := agent.start(t, "true") // its own bucket
	require.Equal(t, "bash-11", other.ID, "a refusal burns no id")
	d.anyone().start(t, "true") // another bucket

	for _, id := range held {
		session.says(t, id, "up")
	}
	session.kill(t, held[0])
	session.do(t, http.MethodPost, "/tasks", startBody("true")).refused(t, http.StatusTooManyRequests, "limit_reached") // a stopping task keeps its place
	session.finish(t, held[0])
	session.start(t, "exit 1")
	for _, id := range held[1:] {
		session.kill(t, id)
	}
	for _, id := range held[1:] {
		session.finish(t, id)
	}
	for _, command := range []string{"true", "exit 3", "kill -9 $$"} {
		for range 12 { // room returns at each kind of end
			session.finish(t, session.start(t, command).ID)
		}
	}
}

func TestDaemonWideTaskLimit(t *testing.T) {
	t.Parallel()
	d := serve(t, "AFOOT_MAX_TASKS=3")
	a, b := d.as("wide-a"), d.as("wide-b")
	a.start(t, "sleep 827")
	a.start(t, "sleep 829")
	last := b.start(t, "sleep 831").ID
	for _, c := range []*client{a, b, d.anyone()} {
		text := c.do(t, http.MethodPost, "/tasks", startBody("true")).refused(t, http.StatusTooManyRequests, "limit_reached")
		require.Contains(t, text, "AFOOT_MAX_TASKS")
	}
	b.kill(t, last)
	b.finish(t, last)
	require.Equal(t, "bash-4", b.start(t, "true").ID)
}
