package e2e

import (
	"bytes"
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestExampleAgent compiles the scripted agent and runs its conversation.
func TestExampleAgent(t *testing.T) {
	t.Parallel()
	d := serve(t)
	path := filepath.Join(t.TempDir(), "agent")
	out, err := exec.Command("go", "build", "-o", path, "./examples/agent").CombinedOutput()
	require.NoError(t, err, "%s", out)
	c := d.as("example")
	ctx, cancel := context.WithTimeout(t.Context(), patient(30*time.Second))
	defer cancel()
	cmd := exec.CommandContext(ctx, path)
	cmd.Env = append(cmd.Environ(), "DAEMON_URL=http://"+d.addr, "AFOOT_TOKEN="+c.token)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	require.NoError(t, cmd.Run(), "%s%s", &stdout, &stderr)
	system, conversation, found := strings.Cut(stdout.String(), "\n")
	require.True(t, found)
	require.True(t, strings.HasPrefix(system, "system: "), "%s", system)
	require.Equal(t, `assistant: bash {"command":"sleep 1; echo 42 tests passed","description":"the tests","run_in_background":true}
tool: started background task bash-1
assistant: bash {"command":"while :; do sleep 1; done","description":"a watcher","run_in_background":true}
tool: started background task bash-2
assistant: bash {"command":"echo $((6 * 7))","description":"something else"}
tool: 42
user: background task bash-1 (bash: the tests) finished [status: completed, exit code: 0]. Read its output with task_output.
assistant: task_output {"task_id":"bash-1"}
tool: 42 tests passed
[status: completed, exit code: 0]
assistant: task_kill {"reason":"not needed any more","task_id":"bash-2"}
tool: requested cancellation of task bash-2
assistant: The tests are through: 42 tests passed
`, conversation)
	require.Equal(t, "killed", c.over(t, "bash-2").Status)
}
