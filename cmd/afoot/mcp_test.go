package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// speaker is a client of `afoot mcp`.
type speaker struct {
	*rig
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string
	errs  *safeBuffer
	// told counts the messages that answer nothing, by method.
	told map[string]int
}

func (r *rig) speak() *speaker {
	r.t.Helper()
	s := &speaker{rig: r, cmd: r.command("mcp"), lines: make(chan string, 100), errs: &safeBuffer{}, told: map[string]int{}}
	s.cmd.Stderr = s.errs
	in, err := s.cmd.StdinPipe()
	require.NoError(r.t, err)
	out, err := s.cmd.StdoutPipe()
	require.NoError(r.t, err)
	s.in = in
	require.NoError(r.t, s.cmd.Start())
	go func() {
		defer close(s.lines)
		for scan := bufio.NewScanner(out); scan.Scan(); {
			s.lines <- scan.Text()
		}
	}()
	r.t.Cleanup(func() { _ = s.cmd.Process.Kill(); _ = s.cmd.Wait() })
	return s
}

func (s *speaker) send(format string, args ...any) {
	s.t.Helper()
	_, err := fmt.Fprintf(s.in, format+"\n", args...)
	require.NoError(s.t, err)
}

// hear gives the next message.
func (s *speaker) hear() map[string]any {
	s.t.Helper()
	select {
	case line, open := <-s.lines:
		require.True(s.t, open, "it ended: %s", s.errs)
		var message map[string]any
		require.NoError(s.t, json.Unmarshal([]byte(line), &message), line)
		require.Equal(s.t, "2.0", message["jsonrpc"])
		if method, ok := message["method"].(string); ok {
			s.told[method]++
		}
		return message
	case <-time.After(20 * time.Second):
		require.FailNow(s.t, "it says nothing", "%s", s.errs)
		return nil
	}
}

// answer gives the text of the result of the call with the id.
func (s *speaker) answer(id int) string {
	s.t.Helper()
	for {
		m := s.hear()
		if m["id"] != float64(id) {
			continue
		}
		if m["error"] != nil {
			return fmt.Sprint(m["error"])
		}
		result := m["result"].(map[string]any)
		if content, ok := result["content"].([]any); ok {
			return content[0].(map[string]any)["text"].(string)
		}
		return fmt.Sprint(result)
	}
}

func (s *speaker) hello() {
	s.t.Helper()
	s.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	require.Contains(s.t, s.answer(0), "afoot")
	s.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

func (s *speaker) call(id int, tool, arguments string) {
	s.t.Helper()
	s.send(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, tool, arguments)
}

// end closes standard input and gives the exit code.
func (s *speaker) end() int {
	s.t.Helper()
	require.NoError(s.t, s.in.Close())
	for line := range s.lines {
		require.True(s.t, json.Valid([]byte(line)), line)
	}
	_ = s.cmd.Wait()
	return s.cmd.ProcessState.ExitCode()
}

func TestMCPBridge(t *testing.T) {
	r := newRig(t)
	r.serve()
	s := r.speak()
	s.hello()
	s.call(1, "bash", `{"command":"sleep 1000","description":"long","run_in_background":true}`)
	require.Equal(t, "started background task bash-1", s.answer(1))
	require.Contains(t, r.ok("agents", "ls"), "afoot mcp")
	s.send(`{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"afoot://tasks/bash-1/log"}}`)
	s.answer(2)
	s.call(3, "task_kill", `{"task_id":"bash-1"}`)
	require.Equal(t, "requested cancellation of task bash-1", s.answer(3))
	for s.told["notifications/resources/updated"] == 0 { // it may have come before the answer
		s.hear()
	}

	// A call that is cancelled ends its command, and is not answered.
	s.call(4, "bash", `{"command":"sleep 1000","description":"long"}`)
	r.eventually("it runs", func() bool { return strings.Contains(r.ok("ls"), "bash-2") })
	s.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4}}`)
	s.call(5, "task_output", `{"task_id":"bash-2","wait":true}`)
	require.Contains(t, s.answer(5), "[status: killed")
	s.send(`no message`)
	require.EqualValues(t, -32700, s.hear()["error"].(map[string]any)["code"])
	s.send(`{"jsonrpc":"2.0","id":50,"method":"ping","params":{"_meta":{"long":"%s"}}}`, strings.Repeat("x", 5<<20))
	require.Contains(t, s.answer(50), "larger than 2 MiB")

	s.call(6, "bash", `{"command":"sleep 1000","description":"long","run_in_background":true}`)
	require.Equal(t, "started background task bash-3", s.answer(6))
	require.Zero(t, s.end(), s.errs)
	require.Empty(t, s.errs.String())
	require.NotContains(t, r.ok("agents", "ls"), "afoot mcp")
	require.NotContains(t, r.ok("ls"), "bash-3")
}

// An answer has the id that was asked for, or nothing was done for it.
func TestMCPBridgeEchoesIDs(t *testing.T) {
	r := newRig(t)
	r.serve()
	s := r.speak()
	s.hello()
	call := `{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"bash","arguments":{"command":"echo ran >> ran","description":"x","workdir":%q}}}`
	id := func() string {
		t.Helper()
		select {
		case line := <-s.lines:
			var answer struct{ ID json.RawMessage }
			require.NoError(t, json.Unmarshal([]byte(line), &answer), line)
			return string(answer.ID)
		case <-time.After(20 * time.Second):
			require.FailNow(t, "it says nothing", "%s", s.errs)
			return ""
		}
	}
	for written, echo := range map[string]string{
		`9007199254740993`: `9007199254740993`, `9223372036854775807`: `9223372036854775807`, `1.5`: `1.5`, `1e3`: `1e3`,
		`null`: `null`, `1,"id":2`: `null`, `"\ud800"`: `null`,
	} {
		s.send(call, written, r.home)
		require.Equal(t, echo, id(), written)
	}
	require.NoFileExists(t, filepath.Join(r.home, "ran"))
	for written, echo := range map[string]string{`9007199254740991`: `9007199254740991`, `"a\/\u0062"`: `"a/b"`, `1,"ID":2`: `1`} {
		s.send(call, written, r.home)
		require.Equal(t, echo, id(), written)
	}
	require.FileExists(t, filepath.Join(r.home, "ran"))

	// However a cancel writes it, it is the same id.
	s.send(`{"jsonrpc":"2.0","id":"a\/b","method":"tools/call","params":{"name":"bash","arguments":{"command":"sleep 1000","description":"x"}}}`)
	r.eventually("it runs", func() bool { return strings.Contains(r.ok("ls"), "running") })
	s.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"\u0061/b"}}`)
	r.eventually("it is stopped", func() bool { return !strings.Contains(r.ok("ls"), "running") })
	require.Zero(t, s.end(), s.errs)
}

func TestMCPBridgeOfStatelessProtocol(t *testing.T) {
	r := newRig(t)
	r.serve()
	s := r.speak()
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`
	s.send(`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{%s}}`, meta)
	require.Contains(t, s.answer(1), "2026-07-28")
	s.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"bash","arguments":{"command":"exit 3","description":"x"},%s}}`, meta)
	created := s.hear()["result"].(map[string]any)
	require.Equal(t, "task", created["resultType"])
	r.eventually("the task is completed", func() bool {
		s.send(`{"jsonrpc":"2.0","id":3,"method":"tasks/get","params":{"taskId":%q,%s}}`, created["taskId"], meta)
		return s.hear()["result"].(map[string]any)["status"] == "completed"
	})
	s.send(`{"jsonrpc":"2.0","id":4,"method":"tasks/list","params":{%s}}`, meta)
	require.EqualValues(t, -32601, s.hear()["error"].(map[string]any)["code"])
	require.Zero(t, s.end(), s.errs)
}

func TestMCPBridgeSurvivesTheDaemon(t *testing.T) {
	r := newRig(t)
	r.serve()
	s := r.speak()
	s.hello()
	s.call(1, "bash", `{"command":"echo one","description":"x"}`)
	require.Equal(t, "one\n", s.answer(1))
	r.stop()
	r.launch(r.command("serve"))
	r.waitReady()
	s.call(2, "bash", `{"command":"echo two","description":"x"}`)
	require.Equal(t, "two\n", s.answer(2))
	require.Zero(t, s.end(), s.errs)
}

func TestMCPBridgeWithPrivateDaemon(t *testing.T) {
	r := newRig(t, "TMPDIR="+t.TempDir())
	s := r.speak()
	s.hello()
	require.Contains(t, s.errs.String(), "no daemon runs with the state directory "+r.state)
	s.call(9, "bash", `{"command":"pwd","description":"x"}`)
	require.Equal(t, s.cmd.Dir+"\n", s.answer(9), "where the client is")
	pid := filepath.Join(r.home, "pid")
	s.call(1, "bash", fmt.Sprintf(`{"command":"echo $PPID > %s; sleep 1000","description":"x","run_in_background":true}`, pid))
	require.Equal(t, "started background task bash-2", s.answer(1))
	require.NoDirExists(t, r.state)
	require.Zero(t, s.end(), s.errs)
	left := func() []string {
		found, err := filepath.Glob(filepath.Join(envOf(r, "TMPDIR"), scratchPrefix+"*"))
		require.NoError(t, err)
		return found
	}
	require.Empty(t, left())

	// Whoever asks it to end gets the same.
	s = r.speak()
	s.hello()
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
	for range s.lines { // to the end
	}
	require.NoError(t, s.cmd.Wait(), s.errs)

	// Nothing is left of one that was killed either.
	s = r.speak()
	s.hello()
	require.NotEmpty(t, left())
	up, clean := filepath.Join(r.home, "up"), filepath.Join(r.home, "clean")
	s.call(1, "bash", fmt.Sprintf(`{"command":"trap 'sleep 0.3; echo >%s; exit' TERM; echo >%s; while :; do sleep 0.01; done","description":"x","run_in_background":true}`, clean, up))
	require.Equal(t, "started background task bash-1", s.answer(1))
	r.eventually("the task is up", func() bool { _, err := os.Stat(up); return err == nil })
	require.NoError(t, s.cmd.Process.Kill())
	r.eventually("all is gone", func() bool { return len(left()) == 0 })
	require.FileExists(t, clean, "its tasks had their grace")
}

// TestMCPBridgeCancelsAtOnce has the cancellation of a call come with it in one write.
func TestMCPBridgeCancelsAtOnce(t *testing.T) {
	r := newRig(t)
	r.serve()
	s := r.speak()
	s.hello()
	for id := 10; id < 19; id++ {
		s.send(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"bash","arguments":{"command":"sleep 1","description":"d"}}}`+"\n"+
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%[1]d}}`, id)
	}
	s.call(99, "bash", `{"command":"sleep 2","description":"d"}`)
	for m := s.hear(); m["id"] != float64(99); m = s.hear() {
		require.NotContains(t, m, "result", "an answer to a call that was cancelled")
	}
}

func TestMCPLines(t *testing.T) {
	in := bufio.NewReaderSize(strings.NewReader("one\n"+strings.Repeat("x", 100)+"\n\n"+strings.Repeat("y", 32)+"\n"+strings.Repeat("z", 33)), 16)
	for _, want := range []string{"one\n", "long", "\n", "long", ""} {
		line, err := mcpLine(in, 32)
		switch want {
		case "long":
			require.ErrorIs(t, err, errMCPLine)
		case "":
			require.ErrorIs(t, err, io.EOF)
			require.Empty(t, line)
		default:
			require.NoError(t, err)
			require.Equal(t, want, string(line))
		}
	}
}

func envOf(r *rig, name string) (value string) {
	for _, entry := range r.env {
		if key, v, _ := strings.Cut(entry, "="); key == name {
			value = v
		}
	}
	return value
}

func TestMCPBridgeSurvivesReload(t *testing.T) {
	r := newRig(t)
	r.serve()
	s := r.speak()
	s.hello()
	s.call(1, "bash", `{"command":"echo begun; sleep 1000","description":"x"}`)
	r.eventually("it runs", func() bool {
		log, _, _ := r.afoot("logs", "bash-1")
		return strings.Contains(log, "begun")
	})
	r.ok("reload")
	require.Equal(t, "begun\n[still running as background task bash-1]", s.answer(1))
	s.call(2, "task_kill", `{"task_id":"bash-1"}`)
	require.Equal(t, "requested cancellation of task bash-1", s.answer(2))
	require.Zero(t, s.end(), s.errs)
}
