package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"afoot/registry"
	"afoot/registry/registrytest"
)

// older opens an MCP session of a protocol version with sessions, and gives what
// requests of it have as headers.
func (w *world) older(version string) []string {
	w.t.Helper()
	accept := []string{"Accept", "application/json, text/event-stream"}
	begun := w.call(http.MethodPost, "/mcp", strings.Replace(hello, sessionful, version, 1), accept...).ok(http.StatusOK)
	return slices.Concat(accept, []string{"Mcp-Session-Id", begun.header.Get("Mcp-Session-Id"), "Mcp-Protocol-Version", version})
}

// answerID gives the id and the code of an answer, as they were written.
func answerID(a answer) (id string, code int) {
	a.w.t.Helper()
	var answer struct {
		ID    json.RawMessage
		Error struct{ Code int }
	}
	a.w.is.NoError(json.Unmarshal(a.body, &answer), "%s", a.body)
	return string(answer.ID), answer.Error.Code
}

// An answer has the id that was asked for, or there is none: under another one nobody
// would find the result, and it would count as delivered.
func TestMCPEchoesIDs(t *testing.T) {
	w := newWorld(t)
	headers := w.older(sessionful)
	for _, id := range []string{
		`0`, `-1`, `9007199254740991`, `-9007199254740991`,
		`""`, `"x"`, `"9007199254740993"`, `"\u0061\/\"\\\n\u0000\u2028"`, `"\ud83d\ude00 é <&>"`,
	} {
		work := w.ended("res\n")
		got := w.call(http.MethodPost, "/mcp", readOf(id, work.ID), headers...).ok(http.StatusOK)
		echo, _ := answerID(got)
		w.is.JSONEq(id, echo)
		w.is.NotContains(echo, ".")
		w.is.Contains(string(got.body), `res\n`)
		w.eventually(func() bool { return w.snapshot(work.ID).Reported }, id)
	}
	work := w.ended("res\n")
	for id, echo := range map[string]string{
		`1.5`: `1.5`, `9007199254740992`: `9007199254740992`, `9007199254740993`: `9007199254740993`,
		`-9007199254740993`: `-9007199254740993`, `9223372036854775807`: `9223372036854775807`,
		`18446744073709551616`: `18446744073709551616`, `1e3`: `1e3`, `1.0`: `1.0`, `-0`: `-0`, `1e400`: `1e400`,
		`null`: `null`, `true`: `null`, `{}`: `null`, `[1]`: `null`, `"\ud800"`: `null`, "\"\xff\"": `null`,
		`1,"id":2`: `null`, `2,"\u0069d":1`: `null`,
	} {
		for _, headers := range [][]string{headers, {"Accept", "application/json, text/event-stream", "Mcp-Protocol-Version", version2026}} {
			got := w.call(http.MethodPost, "/mcp", readOf(id, work.ID), headers...).ok(http.StatusBadRequest)
			w.is.Equal("application/json", got.header.Get("Content-Type"))
			answered, code := answerID(got)
			w.is.Equal(echo, answered, id)
			w.is.Equal(-32600, code, id)
		}
	}
	w.call(http.MethodPost, "/mcp", readOf(`1`, work.ID)+readOf(`2`, work.ID), headers...).refused(http.StatusBadRequest, "invalid")
	// What looks like an id is none.
	echo, code := answerID(w.call(http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":"a","ID":"b","method":"nothing/there"}`, headers...))
	w.is.Equal(`"a"`, echo)
	w.is.Equal(-32601, code)
	w.is.False(w.snapshot(work.ID).Reported)
	w.is.Equal("res\n[status: completed, exit code: 0]", w.use("task_output", fmt.Sprintf(`{"task_id":%q}`, work.ID)).text())
}

func readOf(id string, task registry.ID) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"task_output","arguments":{"task_id":%q}}}`, id, task)
}

func TestMCPBatchEchoesIDs(t *testing.T) {
	w := newWorld(t)
	headers := w.older("2025-03-26")
	w.ended("a")
	w.ended("b")
	batch := func(ids ...string) answer {
		return w.call(http.MethodPost, "/mcp", "["+readOf(ids[0], "bash-1")+","+readOf(ids[1], "bash-2")+"]", headers...)
	}
	for _, ids := range [][]string{{`1`, `1.5`}, {`9007199254740993`, `2`}, {`1`, `1`}, {`"a"`, `"\u0061"`}} {
		answered, code := answerID(batch(ids...).ok(http.StatusBadRequest))
		w.is.Equal(`null`, answered, ids)
		w.is.Equal(-32600, code, ids)
	}
	w.is.False(w.snapshot("bash-1").Reported || w.snapshot("bash-2").Reported)
	batch(`1`, `"1"`).ok(http.StatusOK)
	w.eventually(func() bool { return w.snapshot("bash-1").Reported && w.snapshot("bash-2").Reported }, "reported")
}

// A cancel ends the call that it names and no other.
func TestMCPCancelsByExactID(t *testing.T) {
	w := newWorld(t)
	headers := w.older(sessionful)
	cancel := func(id string) answer {
		return w.call(http.MethodPost, "/mcp", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`}}`, headers...)
	}
	work := w.start(registrytest.Script{})
	answers := make(chan answer, 1)
	go func() {
		answers <- w.call(http.MethodPost, "/mcp", readCall(1, `{"task_id":"bash-1","wait":true}`), headers...)
	}()
	w.waiters("bash-1", 1)
	for _, id := range []string{`1.5`, `1.0`, `9007199254740993`, `2,"requestId":1`, `null`, `2,"request\u0049d":1`} {
		_, code := answerID(cancel(id).ok(http.StatusBadRequest))
		w.is.Equal(-32600, code, id)
	}
	cancel(`"1"`).ok(http.StatusAccepted)
	work.Output.Append("res")
	work.Complete("exit code: 0")
	w.is.Contains(string((<-answers).body), "res\\n[status: completed")
}
