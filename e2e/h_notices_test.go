package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestH1OneNoticePerUnreportedEnd(t *testing.T) {
	t.Parallel()
	d := serve(t, "AFOOT_MAX_TASKS_PER_OWNER=50")
	c := d.as("h1")
	events := c.subscribe(t, "", "")
	var want []string
	for range 20 {
		want = append(want, c.start(t, `sleep .1`).ID)
	}
	failing := c.start(t, `exit 1`).ID
	want = append(want, failing)
	victim := c.start(t, `sleep 611`).ID
	c.kill(t, victim)
	events.done(t, len(want))
	eventually(t, 10*time.Second, "the killed one is over", func() bool { return c.get(t, victim).terminal() })
	told := events.quiet(t, c)
	require.ElementsMatch(t, want, ids(t, told))
	epoch, last := told[0].number(t)
	for _, e := range told[1:] {
		again, n := e.number(t)
		require.Equal(t, epoch, again)
		require.Equal(t, last+1, n, "numbers rise by one")
		last = n
	}
	for _, e := range told {
		if n := e.notice(t); n.Task.ID == failing {
			require.Equal(t, "exit code: 1", n.Task.Detail)
		} else {
			require.Equal(t, "exit code: 0", n.Task.Detail)
		}
	}
}

func TestH2NoticeComesBehindTheEnd(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("h2")
	events := c.subscribe(t, "", "")
	for _, row := range []struct {
		command, text string
		code          int
	}{
		{`echo a; sleep 2; echo b; exit 6`, "a\nb\n", 6},
		{`echo a; sleep .3; seq 1 30000; exit 5`, "", 5},
		{`(sleep .3; echo late) & echo a; exit 4`, "a\nlate\n", 4},
	} {
		before := len(events.all("task.done"))
		begun := time.Now()
		id := c.start(t, row.command).ID
		e := events.done(t, before+1)[before]
		if strings.Contains(row.command, "sleep 2") {
			require.GreaterOrEqual(t, time.Since(begun), 2*time.Second, "no notice before the end")
		}
		s := c.get(t, id)
		require.Equal(t, row.code, s.exitCode())
		require.Equal(t, e.notice(t).Task.OutputBytes, s.OutputBytes)
		o := c.read(t, id, "")
		require.True(t, o.EOF)
		require.Equal(t, s.OutputBytes, int64(len(o.Text)))
		if row.text != "" {
			require.Equal(t, row.text, o.Text)
		} else {
			require.True(t, strings.HasSuffix(o.Text, "\n30000\n"))
		}
	}
}

func TestH3SessionsAreFenced(t *testing.T) {
	t.Parallel()
	d := serve(t)
	a, b, nobody := d.as("h3-a"), d.as("h3-b"), d.anyone()
	mine := a.subscribe(t, "", "")
	ended := a.start(t, `echo secret-output; exit 0`, fields{"label": "secret-label"}).ID
	live := a.start(t, `echo secret-output; sleep 613`, fields{"label": "secret-label"}).ID
	a.says(t, live, "secret-output")
	last := mine.done(t, 1)[0].id
	agent := a.open(t, fields{}).agent

	for name, c := range map[string]*client{"another session": b, "no session": nobody} {
		t.Run(name, func(t *testing.T) {
			require.Empty(t, c.list(t, ""))
			for _, id := range []string{ended, live} {
				for _, call := range []struct {
					method, path string
					body         any
				}{
					{http.MethodGet, "/tasks/" + id, nil},
					{http.MethodGet, "/tasks/" + id + "/output", nil},
					{http.MethodGet, "/tasks/" + id + "/output?offset=0", nil},
					{http.MethodGet, "/tasks/" + id + "/output?wait=true&timeout_ms=100", nil},
					{http.MethodGet, "/tasks/" + id + "/output?wait=true&timeout_ms=100&offset=0", nil},
					{http.MethodPost, "/tasks/" + id + "/ack", fields{"nextOffset": 0}},
					{http.MethodGet, "/tasks/" + id + "/log", nil},
					{http.MethodGet, "/tasks/" + id + "/log?follow=true", nil},
					{http.MethodDelete, "/tasks/" + id, nil},
					{http.MethodDelete, "/tasks/" + id + "?purge=true", nil},
					{http.MethodPost, "/tasks/" + id + "/input", fields{"data": "x"}},
				} {
					answer := c.do(t, call.method, call.path, call.body)
					answer.refused(t, http.StatusForbidden, "foreign_task")
					require.NotContains(t, answer.String(), "secret-")
				}
			}
		})
	}

	theirs := b.subscribe(t, "", last)
	first := theirs.await(t, 5*time.Second, 1, "gap", "task.done")[0]
	require.Equal(t, "gap", first.name)
	require.Empty(t, theirs.quiet(t, b), "never another session's notice")
	b.acting(agent).do(t, http.MethodGet, "/tasks", nil).refused(t, http.StatusForbidden, "foreign_agent")
	b.do(t, http.MethodDelete, "/agents/"+agent, nil).refused(t, http.StatusForbidden, "foreign_agent")
	b.do(t, http.MethodGet, "/events?agent="+agent, nil).refused(t, http.StatusForbidden, "foreign_agent")

	require.Equal(t, "running", a.get(t, live).Status)
	require.False(t, a.get(t, ended).Reported)
	require.Equal(t, "secret-output\n", a.read(t, ended, "").Text)
	require.Equal(t, "secret-output\n", a.read(t, live, "").Text)
	require.NotEmpty(t, d.aliveOf(live))
}

func TestH3UnownedTasksAreOpen(t *testing.T) {
	t.Parallel()
	d := serve(t)
	nobody, other, session := d.anyone(), d.anyone(), d.as("h3")
	id := nobody.start(t, `echo open; sleep .2; exit 2`).ID
	s := session.get(t, id)
	require.Empty(t, s.OwnerSession)
	require.Empty(t, s.Agent)
	require.Len(t, session.list(t, ""), 1)
	require.Len(t, other.list(t, ""), 1)
	events, own := session.subscribe(t, "", ""), nobody.subscribe(t, "", "")
	eventually(t, 10*time.Second, "end", func() bool { return other.get(t, id).terminal() })
	nobody.start(t, `true`)
	require.Empty(t, events.quiet(t, session), "unowned tasks notify nobody")
	own.await(t, 5*time.Second, 1, "tasks.changed")
	require.Empty(t, own.all("task.done"))
	require.Equal(t, "open\n", session.read(t, id, "").Text)
	live := nobody.start(t, `sleep 615`).ID
	require.Equal(t, "requested", session.kill(t, live).Outcome)
}

func TestH4ReportedEndsMakeNoNotice(t *testing.T) {
	t.Parallel()
	d := serve(t, "AFOOT_MAX_TASKS_PER_OWNER=20")
	for name, report := range map[string]func(t *testing.T, c *client, id string){
		"wait": func(t *testing.T, c *client, id string) {
			t.Helper()
			o := c.read(t, id, "wait=true&timeout_ms=10000")
			require.True(t, o.EOF)
			require.True(t, o.Snapshot.Reported, "the answer shows the state that it brings about")
		},
		"wait as text": func(t *testing.T, c *client, id string) {
			t.Helper()
			a := c.do(t, http.MethodGet, "/tasks/"+id+"/output?wait=true", nil, "Accept: text/plain")
			require.Equal(t, "(no new output)\n[status: completed, exit code: 0]", string(a.body))
		},
		"read after the end": func(t *testing.T, c *client, id string) {
			t.Helper()
			c.finish(t, id)
			require.True(t, c.read(t, id, "").Snapshot.Reported)
		},
		"kill": func(t *testing.T, c *client, id string) {
			t.Helper()
			require.True(t, c.kill(t, id).Snapshot.Reported)
		},
		"wait with ack": func(t *testing.T, c *client, id string) {
			t.Helper()
			o := c.read(t, id, "wait=true&timeout_ms=10000", "Afoot-Ack: explicit")
			require.False(t, c.get(t, id).Reported)
			a := c.do(t, http.MethodPost, "/tasks/"+id+"/ack", fields{"nextOffset": o.NextOffset})
			require.Equal(t, http.StatusNoContent, a.status, "%s", a)
			require.True(t, c.get(t, id).Reported)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := d.as("h4-" + hexText(4))
			id := c.start(t, `sleep .2`).ID
			report(t, c, id)
			eventually(t, 5*time.Second, "over and reported", func() bool {
				s := c.get(t, id)
				return s.terminal() && s.Reported
			})
			events := c.subscribe(t, "", "")
			require.Empty(t, events.quiet(t, c))
			mark := events.all("task.done")
			events.cut()
			again := c.subscribe(t, "", mark[0].id)
			require.Empty(t, again.quiet(t, c), "nor on a reconnect")
		})
	}
}

// A consuming read while the task lives does not report it.
func TestH4LiveReadsReportNothing(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("h4")
	g := newGate(t)
	id := c.start(t, `echo first; `+g.wait()+`echo last`).ID
	c.says(t, id, "first")
	require.Equal(t, "first\n", c.read(t, id, "").Text)
	require.Empty(t, c.read(t, id, "wait=true&timeout_ms=50").Text)
	c.read(t, id, "offset=0&wait=true&timeout_ms=50")
	g.open(t)
	c.finish(t, id)
	require.False(t, c.get(t, id).Reported)
	events := c.subscribe(t, "", "")
	require.Equal(t, []string{id}, ids(t, events.done(t, 1)))
}

func TestH5NoticesTellEverything(t *testing.T) {
	t.Parallel()
	d := serve(t, "AFOOT_MAX_TASKS_PER_OWNER=30")
	for i, row := range []struct {
		command, label, status, detail string
		result                         map[string]any
	}{
		{`echo boom >&2; exit 9`, "my label — 界", "completed", "exit code: 9", map[string]any{"exitCode": 9.0}},
		{`kill -9 $$`, "x", "killed", "signal: SIGKILL", map[string]any{"signal": "SIGKILL"}},
		{`true`, `quotes " \ and <b>&amp;`, "completed", "exit code: 0", map[string]any{"exitCode": 0.0}},
	} {
		t.Run(row.command, func(t *testing.T) {
			t.Parallel()
			c := d.as(fmt.Sprintf("h5-%d", i))
			events := c.subscribe(t, "", "")
			s := c.start(t, row.command, fields{"label": row.label})
			e := events.done(t, 1)[0]
			require.NotContains(t, e.data, "\n", "data is one line of compact JSON")
			epoch, n := e.number(t)
			require.NotEmpty(t, epoch)
			require.Positive(t, n)
			told := e.notice(t)
			require.Equal(t, fmt.Sprintf("background task %s (bash: %s) finished [status: %s, %s]. Read its output with task_output.",
				s.ID, row.label, row.status, row.detail), told.Text)
			require.Equal(t, s.ID, told.Task.ID)
			require.Equal(t, "bash", told.Task.Kind)
			require.Equal(t, row.label, told.Task.Label)
			require.Equal(t, row.status, told.Task.Status)
			require.Equal(t, row.detail, told.Task.Detail)
			require.Equal(t, row.result, told.Task.Result)
			require.Equal(t, fmt.Sprintf("h5-%d", i), told.Task.OwnerSession)
			require.Equal(t, "default", told.Task.Agent)
			require.Equal(t, s.StartedAt, told.Task.StartedAt)
			require.NotNil(t, told.Task.FinishedAt)
			var raw struct {
				Task map[string]any `json:"task"`
			}
			require.NoError(t, json.Unmarshal([]byte(e.data), &raw))
			for _, name := range []string{"id", "kind", "label", "ownerSession", "agent", "status", "detail", "result", "startedAt", "finishedAt", "reported", "outputBytes", "droppedBytes"} {
				require.Contains(t, raw.Task, name)
			}
		})
	}
}

func TestH5LimitedNotices(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("h5")
	events := c.subscribe(t, "", "")
	label := strings.Repeat("x", 100)
	const (
		action = "\nDone; task_output."
		marker = "\n[notice truncated]"
	)
	for i, row := range []struct {
		limit int
		head  func(id string) string
		rest  string
	}{
		{80, func(id string) string { return "background task " + id + " (bash: xxxxxxxxxxxx" }, marker + action},
		{64, func(id string) string { return "background task " + id + " (ba" }, marker + action},
		{60, func(id string) string { return "background task " + id }, marker + action},
		{59, func(id string) string { return "background task " + id }, action},
		{41, func(id string) string { return "background task " + id }, action},
		{40, func(string) string { return "background task bash-" }, action},
		{32, func(string) string { return "background ta" }, action},
		{19, func(string) string { return "" }, action},
		{8, func(string) string { return "" }, "_output."},
	} {
		id := c.start(t, "true", fields{"label": label, "outputLimitBytes": row.limit}).ID
		require.Len(t, id, len("bash-1"))
		got := events.done(t, i+1)[i].notice(t)
		require.Equal(t, row.head(id)+row.rest, got.Text)
		require.LessOrEqual(t, len(got.Text), row.limit)
		require.Equal(t, label, got.Task.Label, "the fields are whole")
	}
}

func TestH6PendingNoticesComeOnce(t *testing.T) {
	t.Parallel()
	d := serve(t)
	for _, n := range []int{1, 5} {
		c := d.as(fmt.Sprintf("h6-%d", n))
		var want []string
		for range n {
			id := c.start(t, "true").ID
			c.finish(t, id)
			want = append(want, id)
		}
		events := c.subscribe(t, "", "")
		told := events.done(t, n)
		require.Equal(t, want, ids(t, told))
		events.leave(t, c)

		again := c.subscribe(t, "", told[n-1].id)
		require.Empty(t, again.quiet(t, c), "not again with its id")
		again.leave(t, c)
		fresh := c.subscribe(t, "", "")
		require.Empty(t, fresh.quiet(t, c), "written once: no longer pending")
		fresh.cut()
		replay := c.subscribe(t, "", told[0].id)
		back := ids(t, replay.done(t, n-1+2))
		require.Equal(t, want[1:], back[:n-1], "but still in the replay log")
		replay.cut()
	}
}

// A pending notice goes when its task is reported in another way before anybody
// listens.
func TestH6ReadingTakesThePendingNotice(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("h6")
	var told []string
	for i := range 6 {
		id := c.start(t, "true").ID
		c.finish(t, id)
		if i%2 == 0 {
			require.True(t, c.read(t, id, "").EOF)
			eventually(t, 5*time.Second, "reported", func() bool { return c.get(t, id).Reported })
		} else {
			told = append(told, id)
		}
	}
	events := c.subscribe(t, "", "")
	got := ids(t, events.quiet(t, c))
	require.True(t, slices.Equal(told, got), "want %v, got %v", told, got)
}

func TestH6ObserversTakeNothing(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("h6")
	readOnly := d.with(d.mint(map[string]any{"sid": "h6", "scope": "tasks:read"}))
	watchers := []*stream{c.subscribe(t, "observe=true", ""), readOnly.subscribe(t, "", "")}
	id := c.start(t, "true").ID
	for _, w := range watchers {
		require.Equal(t, []string{id}, ids(t, w.done(t, 1)))
	}
	events := c.subscribe(t, "", "")
	require.Equal(t, []string{id}, ids(t, events.done(t, 1)), "still pending for a delivering stream")
}
