package api_test

import (
	"context"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"afoot/registry/registrytest"
)

// TestMCPAnswerThatTakesItsTime begins with white space, and is an answer like any other.
func TestMCPAnswerThatTakesItsTime(t *testing.T) {
	w := newWorld(t, withBackground, func(s *setup) { s.api.Heartbeat = time.Millisecond })
	complaints := &logBuffer{}
	w.server.Config.ErrorLog = log.New(complaints, "", 0)
	id := w.hello()
	work := w.start(registrytest.Script{})
	// Its headers come before its end.
	res, err := w.post(context.Background(), readCall(2, `{"task_id":"bash-1","wait":true}`), "Mcp-Session-Id", id)
	w.is.NoError(err)
	defer res.Body.Close()
	w.is.Equal(http.StatusOK, res.StatusCode)
	w.is.Equal("application/json", res.Header.Get("Content-Type"))
	work.Output.Append("hello\n")
	work.Complete("exit code: 0")
	body, err := io.ReadAll(res.Body)
	w.is.NoError(err)
	w.is.True(strings.HasPrefix(string(body), "\n"), "%q", body)
	var answer struct{ Result sdk.CallToolResult }
	w.is.NoError(json.Unmarshal(body, &answer))
	w.is.Equal("hello\n[status: completed, exit code: 0]", text(&answer.Result))
	w.eventually(func() bool { return w.snapshot("bash-1").Reported }, "it counts")
	w.is.Empty(complaints.String())
}
