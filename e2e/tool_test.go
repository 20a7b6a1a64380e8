package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// toolTask is a task as tools and, since it knows of foreground ones, the wire tell it.
type toolTask struct {
	snapshot
	Foreground bool `json:"foreground"`
}

// toolValue is the typed result of every tool: each fills in its own members.
type toolValue struct {
	Kind         string     `json:"kind"`
	TaskID       string     `json:"taskId"`
	Task         toolTask   `json:"task"`
	Tasks        []toolTask `json:"tasks"`
	Text         string     `json:"text"`
	Offset       int64      `json:"offset"`
	NextOffset   int64      `json:"nextOffset"`
	EOF          bool       `json:"eof"`
	DroppedBytes int64      `json:"droppedBytes"`
	TimeoutMs    int64      `json:"timeoutMs"`
	Outcome      string     `json:"outcome"`
}

// id is the task that the value of bash is about.
func (v toolValue) id() string {
	if v.TaskID != "" {
		return v.TaskID
	}
	return v.Task.ID
}

// toolResult is what a tool answers.
type toolResult struct {
	Content []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"content"`
	IsError bool      `json:"isError"`
	Value   toolValue `json:"value"`
	header  http.Header
}

func (r toolResult) text() string { return r.Content[0].Text }

// tryTool calls a tool, from any goroutine.
func (c *client) tryTool(ctx context.Context, name string, args any, headers ...string) (r toolResult, err error) {
	a, err := c.call(ctx, http.MethodPost, "/tools/"+name, args, headers...)
	if err != nil {
		return r, err
	}
	if a.status != http.StatusOK {
		return r, fmt.Errorf("%s: %s", name, a)
	}
	if err := json.Unmarshal(a.body, &r); err != nil {
		return r, fmt.Errorf("%s: %w: %s", name, err, a)
	}
	if len(r.Content) != 1 || r.Content[0].Type != "text" {
		return r, fmt.Errorf("%s: content: %s", name, a)
	}
	r.header = a.header
	return r, nil
}

// tool calls a tool whose answer is one text, of success or not.
func (c *client) tool(t *testing.T, name string, args any, headers ...string) toolResult {
	t.Helper()
	r, err := c.tryTool(t.Context(), name, args, headers...)
	require.NoError(t, err)
	return r
}

// good calls a tool that must succeed.
func (c *client) good(t *testing.T, name string, args any, headers ...string) toolResult {
	t.Helper()
	r := c.tool(t, name, args, headers...)
	require.False(t, r.IsError, "%s", r.text())
	return r
}

// bad calls a tool that must fail with a sentence that holds words.
func (c *client) bad(t *testing.T, name string, args any, words ...string) {
	t.Helper()
	r := c.tool(t, name, args)
	require.True(t, r.IsError, "%s %v: %s", name, args, r.text())
	for _, word := range words {
		require.Contains(t, r.text(), word)
	}
}

// shell are the arguments of bash.
func shell(command string, more ...fields) fields {
	args := fields{"command": command, "description": "e2e"}
	for _, m := range more {
		maps.Copy(args, m)
	}
	return args
}

// whole looks at a task with what tools add to it.
func (c *client) whole(ctx context.Context, id string) (s toolTask, err error) {
	a, err := c.call(ctx, http.MethodGet, "/tasks/"+id, nil)
	if err != nil {
		return s, err
	}
	if a.status != http.StatusOK {
		return s, fmt.Errorf("%s: %s", id, a)
	}
	return s, json.Unmarshal(a.body, &s)
}

// labelled gives the tasks of the list whose label begins so.
func (c *client) labelled(t *testing.T, prefix string) []toolTask {
	t.Helper()
	a := c.do(t, http.MethodGet, "/tasks?limit=1000", nil)
	require.Equal(t, http.StatusOK, a.status, "%s", a)
	var page struct {
		Tasks []toolTask `json:"tasks"`
		Next  string     `json:"next"`
	}
	a.into(t, &page)
	require.Empty(t, page.Next)
	var found []toolTask
	for _, s := range page.Tasks {
		if strings.HasPrefix(s.Label, prefix) {
			found = append(found, s)
		}
	}
	return found
}

// post sends a POST with the client's token and leaves the answer to be read.
func (w *wire) post(c *client, path, body string, headers ...string) error {
	_, err := io.WriteString(w.conn, bare(append([]string{
		"POST " + path + " HTTP/1.1", "Host: " + c.d.addr, c.bearer(),
		"Content-Type: application/json", fmt.Sprintf("Content-Length: %d", len(body)),
	}, headers...)...)+body)
	return err
}

// appears waits for a task by its label, and gives its id.
func (c *client) appears(ctx context.Context, label string, id *string) error {
	deadline := time.Now().Add(20 * time.Second)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for time.Now().Before(deadline) {
		a, err := c.call(ctx, http.MethodGet, "/tasks?limit=1000", nil)
		if err != nil {
			return err
		}
		var page struct {
			Tasks []snapshot `json:"tasks"`
		}
		if err := json.Unmarshal(a.body, &page); err != nil {
			return fmt.Errorf("%w: %s", err, a)
		}
		for _, s := range page.Tasks {
			if s.Label == label {
				*id = s.ID
				return nil
			}
		}
		<-tick.C
	}
	return fmt.Errorf("no task %q", label)
}
