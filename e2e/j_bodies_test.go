package e2e

import (
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
