package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"
)

// snapshot is a task as the wire tells it.
type snapshot struct {
	ID               string         `json:"id"`
	Kind             string         `json:"kind"`
	Label            string         `json:"label"`
	OutputLimitBytes *int64         `json:"outputLimitBytes"`
	OwnerSession     string         `json:"ownerSession"`
	Agent            string         `json:"agent"`
	Status           string         `json:"status"`
	Detail           string         `json:"detail"`
	Result           map[string]any `json:"result"`
	StartedAt        int64          `json:"startedAt"`
	FinishedAt       *int64         `json:"finishedAt"`
	Reported         bool           `json:"reported"`
	OutputBytes      int64          `json:"outputBytes"`
	DroppedBytes     int64          `json:"droppedBytes"`
	Waiters          int            `json:"waiters"`
	Request          map[string]any `json:"request"`
}

func (s snapshot) terminal() bool {
	return s.Status == "completed" || s.Status == "killed" || s.Status == "failed"
}

// lasted is how long the task ran by the daemon's own clock.
func (s snapshot) lasted(t *testing.T) time.Duration {
	t.Helper()
	require.NotNil(t, s.FinishedAt, "finishedAt of %+v", s)
	return time.Duration(*s.FinishedAt-s.StartedAt) * time.Millisecond
}

// exitCode gives the number in the result, or -1.
func (s snapshot) exitCode() int {
	if n, ok := s.Result["exitCode"].(float64); ok {
		return int(n)
	}
	return -1
}

// output is the answer to a read.
type output struct {
	Text         string   `json:"text"`
	Snapshot     snapshot `json:"snapshot"`
	Offset       int64    `json:"offset"`
	NextOffset   int64    `json:"nextOffset"`
	EOF          bool     `json:"eof"`
	DroppedBytes int64    `json:"droppedBytes"`
	TimeoutMs    *int64   `json:"timeoutMs"`
}

// killed is the answer to a kill.
type killed struct {
	Outcome  string   `json:"outcome"`
	Snapshot snapshot `json:"snapshot"`
}

// answer is one whole HTTP answer.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (a *answer) String() string {
	return fmt.Sprintf("%d %s\n%.2000s", a.status, a.header.Get("Content-Type"), a.body)
}

// into decodes the body, which must be valid JSON.
func (a *answer) into(t *testing.T, v any) {
	t.Helper()
	require.Contains(t, a.header.Get("Content-Type"), "application/json", "%s", a)
	require.NoError(t, json.Unmarshal(a.body, v), "%s", a)
}

// refused checks an error answer: status, stable code, media type.
func (a *answer) refused(t *testing.T, status int, code string) string {
	t.Helper()
	require.Equal(t, status, a.status, "%s", a)
	require.Equal(t, "application/problem+json", a.header.Get("Content-Type"), "%s", a)
	var problem struct {
		Status int    `json:"status"`
		Code   string `json:"code"`
		Title  string `json:"title"`
		Detail string `json:"detail"`
	}
	require.NoError(t, json.Unmarshal(a.body, &problem), "%s", a)
	require.Equal(t, code, problem.Code, "%s", a)
	require.Equal(t, status, problem.Status, "%s", a)
	return problem.Title + "\n" + problem.Detail
}

// client calls one daemon with one token, and as one agent if it names one.
type client struct {
	d     *daemon
	token string
	agent string
	http  *http.Client
}

// mint signs claims with the daemon's secret; exp and both task scopes are filled
// in unless the claims name them.
func (d *daemon) mint(claims jwt.MapClaims) string {
	d.t.Helper()
	all := jwt.MapClaims{"exp": time.Now().Add(time.Hour).Unix(), "scope": "tasks:read tasks:write", "sub": "e2e"}
	maps.Copy(all, claims)
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, all).SignedString(d.secret)
	require.NoError(d.t, err)
	return token
}

// as gives a client for a session.
func (d *daemon) as(session string) *client {
	d.t.Helper()
	return d.with(d.mint(jwt.MapClaims{"sid": session}))
}

// anyone gives a client without a session.
func (d *daemon) anyone() *client {
	d.t.Helper()
	return d.with(d.mint(jwt.MapClaims{}))
}

func (d *daemon) with(token string) *client { return &client{d: d, token: token, http: d.http} }

// acting gives the same caller acting as an agent.
func (c *client) acting(agent string) *client {
	other := *c
	other.agent = agent
	return &other
}

// request makes a request. A body that is a string or bytes goes as it is,
// anything else as JSON. Headers are "Name: value"; an empty value removes it.
func (c *client) request(ctx context.Context, method, path string, body any, headers ...string) (*http.Request, error) {
	var reader io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		reader = strings.NewReader(b)
	case []byte:
		reader = bytes.NewReader(b)
	default:
		data, err := json.Marshal(b)
		if err != nil {
			return nil, err
		}
		reader = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+c.d.addr+path, reader)
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	if c.agent != "" {
		req.Header.Set("Afoot-Agent", c.agent)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ":")
		value = strings.TrimSpace(value)
		switch {
		case strings.EqualFold(name, "Host"):
			req.Host = value
		case value == "":
			req.Header.Del(name)
		default:
			req.Header.Set(name, value)
		}
	}
	return req, nil
}

// call makes a request and reads the whole answer. It may be used from any
// goroutine.
func (c *client) call(ctx context.Context, method, path string, body any, headers ...string) (*answer, error) {
	ctx, cancel := context.WithTimeout(ctx, 90*time.Second)
	defer cancel()
	req, err := c.request(ctx, method, path, body, headers...)
	if err != nil {
		return nil, err
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	return &answer{status: res.StatusCode, header: res.Header, body: data}, nil
}

// do is call from the goroutine of the test.
func (c *client) do(t *testing.T, method, path string, body any, headers ...string) *answer {
	t.Helper()
	a, err := c.call(context.Background(), method, path, body, headers...)
	require.NoError(t, err, "%s %s", method, path)
	return a
}

// fields are members of a start request beside kind and command.
type fields map[string]any

func startBody(command string, more ...fields) map[string]any {
	body := map[string]any{"kind": "bash", "command": command}
	for _, m := range more {
		maps.Copy(body, m)
	}
	return body
}

// collect starts a command and has its end in the same answer. It may be called beside the
// test's own goroutine.
func (c *client) collect(ctx context.Context, command string) (o output, err error) {
	a, err := c.call(ctx, http.MethodPost, "/tasks?wait=true&timeout_ms=60000", startBody(command))
	if err != nil {
		return o, err
	}
	if err := json.Unmarshal(a.body, &o); err != nil {
		return o, fmt.Errorf("%w: %s", err, a)
	}
	return o, nil
}

// start starts a bash task.
func (c *client) start(t *testing.T, command string, more ...fields) snapshot {
	t.Helper()
	a := c.do(t, http.MethodPost, "/tasks", startBody(command, more...))
	require.Equal(t, http.StatusCreated, a.status, "%s", a)
	var s snapshot
	a.into(t, &s)
	require.Equal(t, "/tasks/"+s.ID, a.header.Get("Location"))
	return s
}

// get looks at a task.
func (c *client) get(t *testing.T, id string) snapshot {
	t.Helper()
	a := c.do(t, http.MethodGet, "/tasks/"+id, nil)
	require.Equal(t, http.StatusOK, a.status, "%s", a)
	var s snapshot
	a.into(t, &s)
	return s
}

// list gives all tasks that the caller sees, page by page.
func (c *client) list(t *testing.T, query string) []snapshot {
	t.Helper()
	var all []snapshot
	after := ""
	for {
		path := "/tasks?" + query
		if after != "" {
			path += "&after=" + url.QueryEscape(after)
		}
		a := c.do(t, http.MethodGet, path, nil)
		require.Equal(t, http.StatusOK, a.status, "%s", a)
		var page struct {
			Tasks []snapshot `json:"tasks"`
			Next  string     `json:"next"`
		}
		a.into(t, &page)
		require.NotNil(t, page.Tasks, "tasks is a list, also when empty: %s", a)
		all = append(all, page.Tasks...)
		if page.Next == "" {
			return all
		}
		after = page.Next
	}
}

// find gives the task's entry in the list.
func (c *client) find(t *testing.T, id string) snapshot {
	t.Helper()
	for _, s := range c.list(t, "") {
		if s.ID == id {
			return s
		}
	}
	require.FailNow(t, "not in the list: "+id)
	return snapshot{}
}

// read is GET …/output with a query, JSON.
func (c *client) read(t *testing.T, id, query string, headers ...string) output {
	t.Helper()
	a := c.do(t, http.MethodGet, "/tasks/"+id+"/output?"+query, nil, headers...)
	require.Equal(t, http.StatusOK, a.status, "%s", a)
	var o output
	a.into(t, &o)
	return o
}

// finish waits for the end by offset, which consumes nothing, and gives the last
// snapshot with the whole text.
func (c *client) finish(t *testing.T, id string) (snapshot, string) {
	t.Helper()
	var text strings.Builder
	offset := int64(0)
	deadline := time.Now().Add(patient(60 * time.Second))
	for time.Now().Before(deadline) {
		o := c.read(t, id, fmt.Sprintf("offset=%d&wait=true&timeout_ms=5000", offset))
		text.WriteString(o.Text)
		offset = o.NextOffset
		if o.EOF {
			return o.Snapshot, text.String()
		}
	}
	require.FailNow(t, "task does not end: "+id)
	return snapshot{}, ""
}

// kill asks for the end of a task.
func (c *client) kill(t *testing.T, id string) killed {
	t.Helper()
	a := c.do(t, http.MethodDelete, "/tasks/"+id, nil)
	require.Contains(t, []int{http.StatusOK, http.StatusAccepted}, a.status, "%s", a)
	var k killed
	a.into(t, &k)
	want := http.StatusAccepted
	if k.Outcome == "already-finished" {
		want = http.StatusOK
	}
	require.Equal(t, want, a.status, "%s", a)
	return k
}

// purge removes the record of a finished task.
func (c *client) purge(t *testing.T, id string) {
	t.Helper()
	a := c.do(t, http.MethodDelete, "/tasks/"+id+"?purge=true", nil)
	require.Equal(t, http.StatusNoContent, a.status, "%s", a)
}

// log gives the raw bytes.
func (c *client) log(t *testing.T, id string) []byte {
	t.Helper()
	a := c.do(t, http.MethodGet, "/tasks/"+id+"/log", nil)
	require.Equal(t, http.StatusOK, a.status, "%s", a)
	return a.body
}

// agent opens an agent and gives a client that acts as it.
func (c *client) open(t *testing.T, body any) *client {
	t.Helper()
	a := c.do(t, http.MethodPost, "/agents", body)
	require.Equal(t, http.StatusCreated, a.status, "%s", a)
	var made struct {
		ID string `json:"id"`
	}
	a.into(t, &made)
	require.Regexp(t, `^agent-[1-9][0-9]*$`, made.ID)
	return c.acting(made.ID)
}

// says waits until a task's output holds a text.
func (c *client) says(t *testing.T, id, text string) {
	t.Helper()
	var o output
	eventually(t, 15*time.Second, id+" prints "+text, func() bool {
		o = c.read(t, id, "offset=0")
		return strings.Contains(o.Text, text)
	})
}
