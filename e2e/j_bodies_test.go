package e2e

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// pending are the ways to announce a body that then never comes.
var pending = map[string][]string{
	"with a length":        {"Content-Length: 1000"},
	"of a length, begun":   {"Content-Length: 1000", "", `{"kind":`},
	"chunked":              {"Transfer-Encoding: chunked"},
	"chunked, begun":       {"Transfer-Encoding: chunked", "", "5\r\n{\"kin"},
	"to be continued":      {"Content-Length: 1000", "Expect: 100-continue"},
	"chunked, to continue": {"Transfer-Encoding: chunked", "Expect: 100-continue"},
}

// announce sends a request whose body does not come, and gives the answer, which must
// come all the same and be the last on its connection.
func (d *daemon) announce(t *testing.T, first string, headers, body []string) *answer {
	t.Helper()
	w, err := d.dial()
	require.NoError(t, err)
	defer func() { _ = w.conn.Close() }()
	lines := append([]string{first}, headers...)
	rest := ""
	for i, line := range body {
		if line == "" {
			rest = strings.Join(body[i+1:], "")
			break
		}
		lines = append(lines, line)
	}
	begun := time.Now()
	_, err = io.WriteString(w.conn, bare(append(lines, "Content-Type: application/json")...)+rest)
	require.NoError(t, err)
	method, _, _ := strings.Cut(first, " ")
	res, err := http.ReadResponse(w.r, &http.Request{Method: method})
	require.NoError(t, err, first)
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err, first)
	require.Less(t, time.Since(begun), patient(3*time.Second), "the answer does not wait for the body")
	_, err = w.r.ReadByte()
	require.ErrorIs(t, err, io.EOF, "the connection is closed")
	require.Less(t, time.Since(begun), patient(5*time.Second), "it is closed soon")
	require.True(t, res.Close, "the answer says that the connection ends: %v", res.Header)
	return &answer{status: res.StatusCode, header: res.Header, body: text}
}

// A body where none belongs would stand between the daemon and the sight of its
// caller's leaving, so it is refused, and nothing happens.
func TestJ2BodyWhereNoneBelongs(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("j2")
	ended, live := c.start(t, `echo kept; exit 3`).ID, c.start(t, `echo kept; sleep 911`).ID
	c.finish(t, ended)
	c.says(t, live, "kept")
	headers := []string{"Host: " + d.addr, c.bearer()}
	for name, body := range pending {
		t.Run(name, func(t *testing.T) {
			for _, first := range []string{
				"GET /tasks", "GET /events", "HEAD /tasks",
				"GET /tasks/" + ended, "GET /tasks/" + ended + "/output", "GET /tasks/" + ended + "/output?wait=true",
				"GET /tasks/" + ended + "/log", "HEAD /tasks/" + ended + "/output", "DELETE /tasks/" + ended, "DELETE /tasks/" + ended + "?purge=true",
				"GET /tasks/" + live + "/output", "GET /tasks/" + live + "/output?wait=true&timeout_ms=60000",
				"DELETE /tasks/" + live, "DELETE /agents/default",
			} {
				a := d.announce(t, first+" HTTP/1.1", headers, body)
				if strings.HasPrefix(first, "HEAD ") {
					require.Equal(t, http.StatusBadRequest, a.status, first)
					continue
				}
				a.refused(t, http.StatusBadRequest, "invalid")
			}
		})
	}
	t.Run("that comes", func(t *testing.T) {
		text := startBody("true")
		for _, path := range []string{"/tasks", "/tasks/" + ended + "/output", "/tasks/" + live + "/output?wait=true&timeout_ms=60000"} {
			c.do(t, http.MethodGet, path, text).refused(t, http.StatusBadRequest, "invalid")
		}
		c.do(t, http.MethodDelete, "/tasks/"+live, text).refused(t, http.StatusBadRequest, "invalid")
	})
	t.Run("of no length", func(t *testing.T) {
		a := d.raw(t, bare("GET /tasks HTTP/1.1", "Host: "+d.addr, c.bearer(), "Content-Length: 0", "Connection: close"))
		require.Equal(t, http.StatusOK, a.status, "%s", a)
	})
	require.Len(t, c.list(t, ""), 2, "nothing ran and nothing went")
	require.Equal(t, "running", c.get(t, live).Status)
	require.Zero(t, c.get(t, live).Waiters)
	require.False(t, c.get(t, ended).Reported)
	require.Equal(t, []string{ended}, ids(t, c.subscribe(t, "", "").done(t, 1)))
	require.Equal(t, "kept\n", c.read(t, ended, "").Text)
	require.Equal(t, "kept\n", c.read(t, live, "").Text)
}

func TestJ2RefusalsDoNotWaitForABody(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("j2")
	host, forged := "Host: "+d.addr, "Authorization: Bearer forged"
	for name, body := range pending {
		t.Run(name, func(t *testing.T) {
			for _, row := range []struct {
				first   string
				headers []string
				status  int
				code    string
			}{
				{"POST /tasks", []string{host}, 401, "unauthenticated"},
				{"POST /tasks", []string{host, forged}, 401, "unauthenticated"},
				{"POST /agents", []string{host, forged}, 401, "unauthenticated"},
				{"POST /nowhere", []string{host, c.bearer()}, 404, ""},
				{"POST /tasks/bash-1/ack", []string{host, forged}, 401, "unauthenticated"},
				{"POST /tasks", []string{"Host: evil.example", c.bearer()}, 421, "foreign_host"},
				{"POST /tasks", []string{host, c.bearer(), "Origin: https://evil.example"}, 403, "foreign_origin"},
				{"GET /tasks", []string{"Host: evil.example", c.bearer()}, 421, "foreign_host"},
			} {
				a := d.announce(t, row.first+" HTTP/1.1", row.headers, body)
				require.Equal(t, row.status, a.status, "%s: %s", row.first, a)
				require.Contains(t, string(a.body), row.code)
			}
		})
	}
	require.Empty(t, c.list(t, ""))
}

func TestJ1OptionsOfTheServer(t *testing.T) {
	t.Parallel()
	d := serve(t)
	for _, host := range []string{"evil.example", "localhost.evil.example", ""} {
		for _, extra := range [][]string{nil, {"Origin: http://" + host, "Access-Control-Request-Method: POST"}, {"Content-Length: 10"}} {
			a := d.raw(t, bare(append([]string{"OPTIONS * HTTP/1.1", "Host: " + host, "Connection: close"}, extra...)...))
			require.Equal(t, http.StatusMisdirectedRequest, a.status, "%q %v: %s", host, extra, a)
			require.Empty(t, a.header.Get("Access-Control-Allow-Origin"))
		}
	}
	a := d.raw(t, bare("OPTIONS * HTTP/1.1", "Host: "+d.addr, "Connection: close"))
	require.NotEqual(t, http.StatusMisdirectedRequest, a.status)
}

// A HEAD looks and touches nothing, whatever goes on beside it.
func TestHeadBesideEnds(t *testing.T) {
	t.Parallel()
	const n = 12
	d := serve(t, "AFOOT_MAX_TASKS_PER_OWNER=50")
	c := d.as("head")
	early := c.start(t, `echo early; exit 2`).ID
	c.finish(t, early)
	events := c.subscribe(t, "", "")
	gates := newGates(t, n)
	want := map[string]bool{early: true}
	started := []string{early}
	for _, g := range gates {
		id := c.start(t, `echo out; `+g.wait()+`exit 3`).ID
		want[id], started = true, append(started, id)
	}
	for i, g := range gates {
		g.open(t)
		for range 20 {
			for _, id := range []string{early, started[i+1]} {
				for _, query := range []string{"", "?wait=true&timeout_ms=60000"} {
					a := c.do(t, http.MethodHead, "/tasks/"+id+"/output"+query, nil)
					require.Equal(t, http.StatusOK, a.status)
				}
			}
		}
	}
	events.done(t, n+1)
	numbers := map[string]string{}
	for _, e := range events.quiet(t, c) {
		id := e.notice(t).Task.ID
		require.NotEmpty(t, e.id)
		require.True(t, want[id], "a notice of %s", id)
		require.Empty(t, numbers[id], "%s was announced twice", id)
		numbers[id] = e.id
	}
	require.Len(t, numbers, n+1)
	for _, id := range started {
		a := c.do(t, http.MethodHead, "/tasks/"+id+"/output", nil)
		require.Equal(t, "0", a.header.Get("Afoot-Offset"), "the cursor is where it was")
		require.False(t, c.get(t, id).Reported)
	}
	again := c.subscribe(t, "", events.all("task.done")[0].id)
	for _, e := range again.done(t, n) {
		if number, ok := numbers[e.notice(t).Task.ID]; ok {
			require.Equal(t, number, e.id, "one end, one number")
		}
	}
}

// A second end of an agent answers when the first has done its work, not before.
func TestSecondDisposalWaitsToo(t *testing.T) {
	t.Parallel()
	d := serve(t)
	for _, which := range []string{"default", "numbered"} {
		t.Run(which, func(t *testing.T) {
			t.Parallel()
			session := d.as("twice-" + which)
			agent, name := session, "default"
			if which == "numbered" {
				agent = session.open(t, fields{})
				name = agent.agent
			}
			id := agent.start(t, `trap "" TERM; echo up; while :; do sleep 0.913; done`).ID
			session.says(t, id, "up")
			type result struct {
				status int
				alive  []process
				err    error
			}
			results := make(chan result, 3)
			dispose := func() {
				a, err := session.call(t.Context(), http.MethodDelete, "/agents/"+name, nil)
				if err != nil {
					results <- result{err: err}
					return
				}
				results <- result{a.status, d.aliveOf(id), nil}
			}
			go dispose()
			eventually(t, 5*time.Second, "the first is under way", func() bool {
				a := session.do(t, http.MethodGet, "/tasks/"+id, nil)
				return a.status != http.StatusOK || !strings.Contains(string(a.body), `"running"`)
			})
			require.NotEmpty(t, d.aliveOf(id), "the grace is not over")
			go dispose()
			go dispose()
			for range 3 {
				r := <-results
				require.NoError(t, r.err)
				require.Contains(t, []int{http.StatusNoContent, http.StatusGone}, r.status)
				require.Empty(t, r.alive, "answered %d while the work went on", r.status)
			}
			if which == "default" {
				require.Equal(t, "default", session.start(t, "true").Agent)
			}
		})
	}
}

// A wait keeps its bound also where it stands behind a reader that takes nothing.
func TestG3WaitBehindAStalledReader(t *testing.T) {
	t.Parallel()
	const size = 20000000
	d := serve(t)
	c := d.as("behind")
	id := c.start(t, fmt.Sprintf(`head -c %d /dev/zero | tr '\0' x; echo; sleep 915`, size-1)).ID
	eventually(t, 30*time.Second, "output", func() bool { return c.get(t, id).OutputBytes == size })
	w, err := d.dial()
	require.NoError(t, err)
	defer func() { _ = w.conn.Close() }()
	require.NoError(t, w.conn.SetReadBuffer(4096))
	require.NoError(t, w.ask(c, "/tasks/"+id+"/output"))
	_, err = w.r.ReadByte()
	require.NoError(t, err)
	for range 2 {
		begun := time.Now()
		o := c.read(t, id, "wait=true&timeout_ms=500")
		require.Less(t, time.Since(begun), patient(5*time.Second))
		require.Equal(t, "running", o.Snapshot.Status)
		require.False(t, o.EOF)
		require.False(t, o.Snapshot.Reported)
		require.Equal(t, int64(size), o.Snapshot.OutputBytes)
	}
	require.NoError(t, w.cut())
	o := c.read(t, id, "")
	require.Zero(t, o.Offset, "nothing was consumed")
	require.NotEmpty(t, o.Text)
}
