package e2e

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// mortal are the ends of a daemon that another one follows.
var mortal = []string{"in order", "killed"}

// serveUntil starts a daemon beside other tests, and gives what ends it that way.
func serveUntil(t *testing.T, how string) (d *daemon, end func()) {
	t.Helper()
	t.Parallel()
	d = serve(t)
	if how == "killed" {
		return d, func() { d.die(t) }
	}
	return d, d.stop
}

// K2: ids are never used again, whatever was removed and whoever died.
func TestK2IdsGoOn(t *testing.T) {
	t.Parallel()
	for _, how := range mortal {
		t.Run(how, func(t *testing.T) {
			d, end := serveUntil(t, how)
			c := d.as("k2")
			agent := c.open(t, fields{})
			require.Equal(t, "agent-1", agent.agent)
			for n := range 4 {
				want := 2*n + 1
				kept := c.collected(t, "echo kept")
				require.Equal(t, fmt.Sprintf("bash-%d", want), kept)
				last := agent.collected(t, "echo purged")
				require.Equal(t, fmt.Sprintf("bash-%d", want+1), last)
				c.purge(t, last) // the record with the highest number is gone
				other := c.open(t, fields{})
				require.Equal(t, fmt.Sprintf("agent-%d", n+2), other.agent)
				require.Equal(t, http.StatusNoContent, c.do(t, http.MethodDelete, "/agents/"+other.agent, nil).status)
				end()
				d.again()
				c.isGone(t, last)
				require.Equal(t, "kept\n", c.read(t, kept, "offset=0").Text)
				require.True(t, c.get(t, kept).Reported)
				c.do(t, http.MethodGet, fmt.Sprintf("/tasks/bash-%d", want+2), nil).refused(t, http.StatusNotFound, "unknown_task")
				other.do(t, http.MethodPost, "/tasks", startBody("true")).refused(t, http.StatusGone, "gone")
				c.acting("agent-99").do(t, http.MethodPost, "/tasks", startBody("true")).refused(t, http.StatusNotFound, "unknown_agent")
			}
		})
	}
}

// What was told stays told: cursors, keys, kills, agents, labels, requests to come.
func TestK2FactsGoOn(t *testing.T) {
	t.Parallel()
	for _, how := range mortal {
		t.Run(how, func(t *testing.T) {
			d, end := serveUntil(t, how)
			c, other := d.as("k2"), d.as("k2-other")
			agent := c.open(t, fields{"label": "worker"})
			read := c.start(t, `printf 'one\ntwo\nthree\n'; exit 3`, fields{"label": "some label", "outputLimitBytes": 1000})
			c.over(t, read.ID)
			o := c.read(t, read.ID, "limit_bytes=4", "Afoot-Ack: explicit")
			require.Equal(t, "one\n", o.Text)
			c.acked(t, read.ID, 4)
			split := c.start(t, `echo out; echo err >&2; exit 4`, fields{"streams": "split"})
			c.over(t, split.ID)
			held := c.start(t, `echo held`)
			c.over(t, held.ID)
			c.read(t, held.ID, "", "Afoot-Ack: explicit") // and never acknowledged
			stopped := agent.start(t, `echo up; sleep 961`)
			c.says(t, stopped.ID, "up")
			require.Equal(t, "requested", c.kill(t, stopped.ID).Outcome)
			c.over(t, stopped.ID)
			body := startBody(`echo once`, fields{"label": "keyed"})
			first := c.do(t, http.MethodPost, "/tasks", body, "Idempotency-Key: k2")
			require.Equal(t, http.StatusCreated, first.status)
			var keyed snapshot
			first.into(t, &keyed)
			c.over(t, keyed.ID)
			theirs := other.start(t, `echo theirs`).ID
			other.over(t, theirs)
			nobodys := d.anyone().collected(t, `echo nobody`)
			before := map[string]snapshot{}
			for _, s := range c.list(t, "") {
				before[s.ID] = s
			}
			end()
			d.again()

			after := c.list(t, "")
			require.Len(t, after, len(before))
			for _, s := range after {
				was := before[s.ID]
				require.True(t, was.same(s), "%+v was %+v", s, was)
				require.Equal(t, was.Reported, s.Reported, s.ID)
				require.Equal(t, was.OutputLimitBytes, s.OutputLimitBytes)
			}
			require.Equal(t, "two\n", c.read(t, read.ID, "limit_bytes=4").Text, "the cursor is where it was")
			require.Equal(t, "held\n", c.read(t, held.ID, "offset=0").Text)
			require.Equal(t, "out\n", string(c.log(t, split.ID)))
			require.Equal(t, "err\n", c.read(t, split.ID, "offset=0&stream=stderr").Text)
			a := c.do(t, http.MethodPost, "/tasks", body, "Idempotency-Key: k2")
			require.Equal(t, http.StatusOK, a.status, "%s", a)
			require.Equal(t, "true", a.header.Get("Idempotency-Replayed"))
			var again snapshot
			a.into(t, &again)
			require.Equal(t, keyed.ID, again.ID)
			c.do(t, http.MethodPost, "/tasks", startBody("echo other"), "Idempotency-Key: k2").
				refused(t, http.StatusUnprocessableEntity, "idempotency_mismatch")
			require.Equal(t, "already-finished", c.kill(t, stopped.ID).Outcome)
			c.do(t, http.MethodGet, "/tasks/"+theirs, nil).refused(t, http.StatusForbidden, "foreign_task")
			require.Equal(t, "nobody\n", c.read(t, nobodys, "offset=0").Text)
			_, text := agent.finish(t, agent.start(t, "echo $AFOOT_SESSION").ID)
			require.Equal(t, "k2\n", text, "the agent is there")
			require.Contains(t, string(c.do(t, http.MethodGet, "/agents", nil).body), `"worker"`)
		})
	}
}

// acked acknowledges an explicit read.
func (c *client) acked(t *testing.T, id string, next int64) {
	t.Helper()
	a := c.do(t, http.MethodPost, "/tasks/"+id+"/ack", fields{"nextOffset": next})
	require.Equal(t, http.StatusNoContent, a.status, "%s", a)
}

// K9, and after it: tasks that a shutdown ended are told when there is a daemon again.
func TestK9ToldAfterTheNextStart(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("k9")
	agent := c.open(t, fields{})
	events := c.subscribe(t, "", "")
	polite := c.start(t, `trap 'echo bye; exit 9' TERM; echo up; sleep 963 & wait`).ID
	deaf := agent.start(t, `trap "" TERM; echo up; sleep 965; sleep 967`).ID
	asked := c.start(t, `trap "" TERM; echo up; sleep 969; sleep 971`).ID
	unowned := d.anyone().start(t, `echo up; sleep 973`).ID
	for _, id := range []string{polite, deaf, asked, unowned} {
		c.says(t, id, "up")
	}
	done := c.start(t, "true").ID
	told := events.done(t, 1)
	require.Equal(t, "requested", c.kill(t, asked).Outcome)
	d.stop()
	events.over(t, 5*time.Second)
	require.Equal(t, []string{done}, ids(t, events.all("task.done")), "it announces nothing on its way down")
	last := events.all()[len(events.all())-1]
	require.Equal(t, "bye", last.name)
	require.JSONEq(t, `{"reason":"shutdown"}`, last.data)

	for range 2 { // the second time there is nothing new to tell
		d.again()
		for id, text := range map[string]string{polite: "up\nbye\n", deaf: "up\n", unowned: "up\n"} {
			s := c.get(t, id)
			require.Equal(t, "killed", s.Status, "%+v", s)
			require.Equal(t, "daemon shut down", s.Detail)
			require.False(t, s.Reported)
			require.Equal(t, text, c.read(t, id, "offset=0").Text)
		}
		require.True(t, c.get(t, asked).Reported)
		again := c.subscribe(t, "", told[0].id)
		require.ElementsMatch(t, []string{polite, deaf}, ids(t, again.quiet(t, d.as("k9").acting(agent.agent)))[:2])
		require.Empty(t, again.all("gap"))
		again.leave(t, c)
		d.stop()
	}
}

// A lease is counted from the daemon's start, however long there was none.
func TestK2LeasesBeginAnew(t *testing.T) {
	t.Parallel()
	for _, how := range mortal {
		t.Run(how, func(t *testing.T) {
			d, end := serveUntil(t, how)
			c := d.as("lease")
			const lease = 5 * time.Second
			short := c.open(t, fields{"leaseMs": lease.Milliseconds(), "label": "short"})
			long := c.open(t, fields{"leaseMs": 3600000, "label": "long"})
			id := short.collected(t, "echo x")
			kept := long.collected(t, "echo y")
			end()
			down := time.NewTimer(lease + 100*time.Millisecond)
			<-down.C
			begun := time.Now()
			d.again()
			require.Equal(t, "x\n", c.read(t, id, "offset=0").Text, "it is there")
			eventually(t, lease+5*time.Second, "the short lease ends", func() bool {
				return c.do(t, http.MethodGet, "/tasks/"+id, nil).status == http.StatusGone
			})
			require.GreaterOrEqual(t, time.Since(begun), lease)
			short.do(t, http.MethodPost, "/tasks", startBody("true")).refused(t, http.StatusGone, "gone")
			require.Equal(t, "y\n", long.read(t, kept, "offset=0").Text)
		})
	}
}

// Bounds of retention hold for what an earlier daemon kept, also new ones, and the
// output of what is gone is given back.
func TestK2RetentionAfterARestart(t *testing.T) {
	t.Parallel()
	for _, how := range mortal {
		t.Run(how, func(t *testing.T) {
			d, end := serveUntil(t, how)
			c := d.as("retained")
			unread := c.ends(t, 2)
			var read []string
			for range 6 {
				read = append(read, c.collected(t, `echo x`))
			}
			files := d.files(t)
			end()
			d.env = append(d.env, "AFOOT_RETAIN_COUNT=4")
			d.again()
			c.kept(t, append(append([]string{}, unread...), read[4:]...)...)
			c.isGone(t, read[0])
			eventually(t, 10*time.Second, "files of the evicted are gone", func() bool { return d.files(t) <= files-4 })
			end()
			d.env = append(d.env, "AFOOT_RETAIN_AGE=1s")
			d.again()
			c.kept(t)
			c.isGone(t, unread[0])
			require.Equal(t, unread, ids(t, c.subscribe(t, "", "").done(t, 2)), "no end is silently swallowed")
			require.Equal(t, "bash-9", c.start(t, "true").ID)
		})
	}
}
