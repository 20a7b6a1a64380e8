package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// stdio is `afoot mcp` spoken to line by line.
type stdio struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	id  int
}

// stdio starts `afoot mcp` and opens an MCP session.
func (d *daemon) stdio(t *testing.T) *stdio {
	t.Helper()
	s := &stdio{cmd: d.commandContext(t.Context(), "mcp")}
	s.cmd.Env = append(s.cmd.Env, "HOME="+d.work)
	in, err := s.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := s.cmd.StdoutPipe()
	require.NoError(t, err)
	s.in, s.out = in, bufio.NewReader(out)
	require.NoError(t, s.cmd.Start())
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
	})
	s.ask(t, "initialize", fields{"protocolVersion": "2025-11-25", "capabilities": fields{}, "clientInfo": fields{"name": "e2e", "version": "1"}})
	s.say(t, fields{"jsonrpc": "2.0", "method": "notifications/initialized"})
	return s
}

func (s *stdio) say(t *testing.T, message any) {
	t.Helper()
	line, err := json.Marshal(message)
	require.NoError(t, err)
	_, err = s.in.Write(append(line, '\n'))
	require.NoError(t, err)
}

// ask makes a request and gives the line of its answer, whatever comes before.
func (s *stdio) ask(t *testing.T, method string, params any) string {
	t.Helper()
	s.id++
	s.say(t, fields{"jsonrpc": "2.0", "id": s.id, "method": method, "params": params})
	for {
		line, err := s.out.ReadString('\n')
		require.NoError(t, err)
		require.True(t, json.Valid([]byte(line)), "%q", line)
		if strings.Contains(line, fmt.Sprintf(`"id":%d`, s.id)) {
			return line
		}
	}
}

// start starts a background task that never ends, and gives what it was told.
func (s *stdio) start(t *testing.T) string {
	t.Helper()
	return s.ask(t, "tools/call", fields{"name": "bash", "arguments": shell("trap '' TERM; while :; do sleep 0.1; done", fields{"run_in_background": true})})
}

// TestMCPStdioEnds stops what was started when the client is gone, by whatever way.
func TestMCPStdioEnds(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*stdio) error{
		"input closed": func(s *stdio) error { return s.in.Close() },
		"killed":       func(s *stdio) error { return s.cmd.Process.Kill() },
	} {
		t.Run("daemon of its own, "+name, func(t *testing.T) {
			t.Parallel()
			d := prepare(t)
			s := d.stdio(t)
			require.Contains(t, s.start(t), "started background task bash-1")
			require.NotEmpty(t, d.aliveOf("bash-1"))
			require.NoError(t, end(s))
			eventually(t, grace+orphaned+5*time.Second, "nothing runs", func() bool { return len(d.alive()) == 0 })
			require.NoDirExists(t, d.state)
		})
	}
	t.Run("input closed", func(t *testing.T) {
		t.Parallel()
		d := serve(t)
		c := d.as("local")
		one, two := d.stdio(t), d.stdio(t)
		require.Contains(t, one.start(t), "started background task bash-1")
		require.Contains(t, two.start(t), "started background task bash-2")
		require.Len(t, c.list(t, ""), 2)
		require.NoError(t, one.in.Close())
		d.gone(t, "bash-1", grace+time.Second)
		require.NoError(t, one.cmd.Wait())
		require.NotEmpty(t, d.aliveOf("bash-2"), "another client's work goes on")
		require.Len(t, c.list(t, ""), 1)
	})
}
