package e2e

import (
	"encoding/json"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"
)

// waitingCall is a call of bash whose client is a bare connection.
func (c *client) waitingCall(t *testing.T, label, command string, more ...fields) (id string, w *wire) {
	t.Helper()
	w, err := c.d.dial()
	require.NoError(t, err)
	t.Cleanup(func() { _ = w.conn.Close() }) // and nobody collects it before
	body, err := json.Marshal(shell(command, append(more, fields{"description": label})...))
	require.NoError(t, err)
	var headers []string
	if c.agent != "" {
		headers = append(headers, "Afoot-Agent: "+c.agent)
	}
	require.NoError(t, w.post(c, "/tools/bash", string(body), headers...))
	require.NoError(t, c.appears(t.Context(), label, &id))
	return id, w
}

// TestForegroundClientVanishes ends the whole tree of a command whose caller is gone,
// and what was printed so far stays.
func TestForegroundClientVanishes(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("vanish")
	events := c.subscribe(t, "", "")
	for _, row := range []struct {
		name, command string
		within        time.Duration
	}{
		{"obeys", `echo up; sleep 910 & sleep 911`, time.Second},
		{"refuses", `trap '' TERM; (trap '' TERM; setsid sleep 912) & echo up; while :; do sleep 913; done`, grace + time.Second},
		{"with yield", `echo up; sleep 914`, time.Second},
	} {
		for _, orderly := range []bool{true, false} {
			label := row.name
			if orderly {
				label += ", orderly"
			}
			more := fields{}
			if row.name == "with yield" {
				more["yield_ms"] = 60000
			}
			id, w := c.waitingCall(t, label, row.command, more)
			c.says(t, id, "up")
			if orderly {
				require.NoError(t, w.conn.Close())
			} else {
				require.NoError(t, w.cut())
			}
			d.gone(t, id, row.within)
			s := c.over(t, id)
			require.Equal(t, "killed", s.Status, "%s: %+v", label, s)
			require.True(t, s.Reported, "%s: %+v", label, s)
			require.Equal(t, "up\n", string(c.log(t, id)))
		}
	}
	require.Empty(t, events.quiet(t, c), "nobody is told of what somebody waited for")
}

// TestToolReaderVanishes keeps what a lost answer carried.
func TestToolReaderVanishes(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("reader")
	g := newGate(t)
	id := c.good(t, "bash", shell("echo up; "+g.wait()+"echo down", fields{"run_in_background": true})).Value.TaskID
	c.says(t, id, "up")
	w, err := d.dial()
	require.NoError(t, err)
	require.NoError(t, w.post(c, "/tools/task_output", `{"task_id":"`+id+`","wait":true,"timeout_ms":60000}`))
	require.NoError(t, c.until(t.Context(), id, func(s snapshot) bool { return s.Waiters == 1 }))
	require.NoError(t, w.cut())
	require.NoError(t, c.until(t.Context(), id, func(s snapshot) bool { return s.Waiters == 0 }))
	events := c.subscribe(t, "", "")
	g.open(t)
	require.Equal(t, id, events.done(t, 1)[0].notice(t).Task.ID)
	require.Equal(t, "up\ndown\n[status: completed, exit code: 0]", c.good(t, "task_output", fields{"task_id": id}).text())
}

// TestForegroundShutdown answers who waits, and tells the owner after the next start.
func TestForegroundShutdown(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("shutdown")
	answers := make(chan toolResult, 1)
	go func() {
		// Deaf, so that its end does not come before the answer.
		r, err := c.tryTool(t.Context(), "bash", shell(`trap "" TERM; echo up; sleep 915; true`, fields{"description": "left"}))
		if err != nil {
			t.Error(err)
		}
		answers <- r
	}()
	var id string
	require.NoError(t, c.appears(t.Context(), "left", &id))
	c.says(t, id, "up")
	require.NoError(t, d.cmd.Process.Signal(syscall.SIGTERM))
	r := <-answers
	require.True(t, r.IsError)
	require.Equal(t, "The daemon is shutting down; task "+id+" is stopped with it.", r.text())
	require.True(t, d.waitExit(20*time.Second))
	d.again()
	n := c.subscribe(t, "", "").done(t, 1)[0].notice(t)
	require.Equal(t, id, n.Task.ID)
	require.Equal(t, "killed", n.Task.Status)
	require.Equal(t, "up\n[status: killed, daemon shut down]", c.good(t, "task_output", fields{"task_id": id}).text())
}

// TestForegroundDaemonDies has the owner told of all that died with it: nobody waits for
// an answer any more.
func TestForegroundDaemonDies(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("dies")
	id, _ := c.waitingCall(t, "alone", "echo up; sleep 916")
	c.says(t, id, "up")
	kept := c.good(t, "bash", shell("printf a; sleep 917", fields{"yield_ms": 1})).Value.TaskID
	d.die(t)
	d.gone(t, id, orphaned)
	d.again()
	events := c.subscribe(t, "", "")
	var told []string
	for _, e := range events.quiet(t, c) {
		told = append(told, e.notice(t).Task.ID)
	}
	require.ElementsMatch(t, []string{id, kept}, told)
	s, err := c.whole(t.Context(), id)
	require.NoError(t, err)
	require.False(t, s.Foreground || s.Reported, "%+v", s)
	require.Equal(t, "failed", s.Status, "%+v", s)
}

// TestForegroundReload lets go of what somebody waits for, and of nothing else.
func TestForegroundReload(t *testing.T) {
	t.Parallel()
	d := prepare(t)
	replace := d.replaceable(t)
	d.launch()
	d.ready()
	c := d.as("reload")
	g := newGate(t)
	answers := make(chan toolResult, 1)
	go func() {
		r, err := c.tryTool(t.Context(), "bash", shell("echo up; "+g.wait()+"echo down", fields{"description": "goes on"}))
		if err != nil {
			t.Error(err)
		}
		answers <- r
	}()
	var id string
	require.NoError(t, c.appears(t.Context(), "goes on", &id))
	c.says(t, id, "up")
	replace()
	d.reloads(t, true)
	r := <-answers
	require.Equal(t, "up\n[still running as background task "+id+"]", r.text())
	require.False(t, r.IsError)
	g.open(t)
	require.Equal(t, id, c.subscribe(t, "", "").done(t, 1)[0].notice(t).Task.ID)
	require.Equal(t, "down\n[status: completed, exit code: 0]", c.good(t, "task_output", fields{"task_id": id}).text())
}

// TestForegroundRightEnds stops a command when the token of its caller has expired, or
// its agent was disposed.
func TestForegroundRightEnds(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("rights")
	brief := d.with(d.mint(jwt.MapClaims{"sid": "rights", "exp": time.Now().Add(6 * time.Second).Unix()}))
	a := brief.do(t, http.MethodPost, "/tools/bash", shell("exec sleep 922", fields{"description": "brief"}))
	a.refused(t, http.StatusUnauthorized, "unauthenticated")
	s := c.labelled(t, "brief")[0]
	d.gone(t, s.ID, time.Second)
	require.Equal(t, "killed", c.over(t, s.ID).Status)

	agent := c.open(t, fields{})
	id, w := agent.waitingCall(t, "of an agent", "exec sleep 923")
	defer func() { _ = w.conn.Close() }()
	require.Equal(t, http.StatusNoContent, c.do(t, http.MethodDelete, "/agents/"+agent.agent, nil).status)
	require.Empty(t, d.aliveOf(id))
	require.NoError(t, w.conn.SetReadDeadline(time.Now().Add(10*time.Second)))
	answer, err := http.ReadResponse(w.r, nil)
	require.NoError(t, err, "who waits is answered")
	require.NoError(t, answer.Body.Close())
	t.Logf("the call of a disposed agent: %s", answer.Status)
}

// TestForegroundWithExplicitAck moves the cursor of a promoted task when its text was
// acknowledged, and not before.
func TestForegroundWithExplicitAck(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("ack")
	g := newGate(t)
	r := c.good(t, "bash", shell("printf a; "+g.wait()+"printf b", fields{"yield_ms": 3000}), "Afoot-Ack: explicit")
	require.Equal(t, "a\n[still running as background task "+r.Value.TaskID+"]", r.text())
	id := fields{"task_id": r.Value.TaskID}
	again := c.good(t, "task_output", id, "Afoot-Ack: explicit")
	require.Equal(t, "a\n[status: running]", again.text())
	ack := c.do(t, http.MethodPost, "/tasks/"+r.Value.TaskID+"/ack", fields{"nextOffset": again.Value.NextOffset})
	require.Equal(t, http.StatusNoContent, ack.status, "%s", ack)
	require.Equal(t, "(no new output)\n[status: running]", c.good(t, "task_output", id).text())
	g.open(t)
	require.Equal(t, "b\n[status: completed, exit code: 0]", c.good(t, "task_output", fields{"task_id": r.Value.TaskID, "wait": true}).text())
}
