package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"afoot/api/wire"
	"afoot/registry"
)

// TestMCPExplicitAck: nothing moves until a read over MCP was acknowledged, and the
// notice is held meanwhile.
func TestMCPExplicitAck(t *testing.T) {
	w := newWorld(t)
	headers := w.older(sessionful)
	explicit := slices.Concat(headers, []string{"Afoot-Ack", "explicit"})
	held := w.ended("one\n")
	for range 2 {
		got := w.call(http.MethodPost, "/mcp", readOf(`1`, held.ID), explicit...).ok(http.StatusOK)
		w.is.Contains(string(got.body), `"text":"one\n[status: completed`)
	}
	w.is.False(w.snapshot(held.ID).Reported)
	w.call(http.MethodPost, "/mcp", readOf(`1`, held.ID), slices.Concat(headers, []string{"Afoot-Ack", "nonsense"})...).refused(http.StatusBadRequest, "invalid")
	due := w.ended("two\n")
	s := w.subscribe("")
	w.is.Contains(s.next("task.done", "gap").data, `"id":"`+string(due.ID)+`"`)
	s.stop()
	w.ack(held.ID, 4)
	w.is.True(w.snapshot(held.ID).Reported)
}

func (w *world) ack(id registry.ID, next int) {
	w.t.Helper()
	w.is.False(w.snapshot(id).Reported)
	w.call(http.MethodPost, "/tasks/"+string(id)+"/ack", fmt.Sprintf(`{"nextOffset":%d}`, next)).ok(http.StatusNoContent)
}

func TestMCPExplicitAckOfForeground(t *testing.T) {
	w := newWorld(t)
	explicit := append(w.older(sessionful), "Afoot-Ack", "explicit")
	answers := make(chan answer, 1)
	go func() {
		answers <- w.call(http.MethodPost, "/mcp", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"bash","arguments":{"command":%q,"description":"x"}}}`, w.command()), explicit...)
	}()
	w.waiters("bash-1", 1)
	work := w.jobs.Work("bash-1")
	work.Output.Append("out\n")
	work.Complete("exit code: 0")
	w.is.Contains(string((<-answers).ok(http.StatusOK).body), `"nextOffset":4`)
	w.is.Equal("out\n", into[wire.TaskRead](w.get("/tasks/bash-1/output", "Afoot-Ack", "explicit")).Text)
	w.call(http.MethodPost, "/tasks/bash-1/ack", `{"nextOffset":4}`).ok(http.StatusNoContent)
}

// Each call of a batch is held by itself.
func TestMCPExplicitAckOfBatch(t *testing.T) {
	w := newWorld(t)
	explicit := append(w.older("2025-03-26"), "Afoot-Ack", "explicit")
	w.ended("a")
	w.ended("bc")
	w.call(http.MethodPost, "/mcp", "["+readOf(`1`, "bash-1")+","+readOf(`2`, "bash-2")+"]", explicit...).ok(http.StatusOK)
	w.ack("bash-2", 2)
	w.is.True(w.snapshot("bash-2").Reported)
	w.ack("bash-1", 1)
	w.is.True(w.snapshot("bash-1").Reported)
}

func TestMCPExplicitAckOfTask(t *testing.T) {
	w := newWorld(t, withBackground, withKey)
	created := w.bashTask()
	work := w.jobs.Work("bash-1")
	work.Output.Append("out\n")
	work.Complete("exit code: 0")
	w.eventually(func() bool { return w.snapshot("bash-1").Status.Terminal() }, "ended")
	for range 2 {
		done := w.task("tasks/get", byID(created), "Afoot-Ack", "explicit")
		w.is.Equal("out\n", done.Result.StructuredContent["text"])
		w.is.EqualValues(4, done.Result.StructuredContent["nextOffset"])
	}
	w.ack("bash-1", 4)
	w.is.True(w.snapshot("bash-1").Reported)
}

// TestMCPBatchAsksForATaskOnce: the result of a task is a read of it too.
func TestMCPBatchAsksForATaskOnce(t *testing.T) {
	w := newWorld(t, withBackground, withKey)
	headers := w.older("2025-03-26")
	created := w.bashTask()
	w.jobs.Work("bash-1").Complete("exit code: 0")
	w.eventually(func() bool { return w.snapshot("bash-1").Status.Terminal() }, "ended")
	get := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{%s"_meta":{"io.modelcontextprotocol/clientCapabilities":{"extensions":{%q:{}}}}}}`, byID(created), tasksName)
	got := w.call(http.MethodPost, "/mcp", "["+get+","+readOf(`2`, "bash-1")+"]", headers...).ok(http.StatusOK)
	w.is.Contains(string(got.body), "-32602")
	w.eventually(func() bool { return w.snapshot("bash-1").Reported }, "reported")
}
