package e2e

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"
)

// blocks gives the blocks of a language on a page.
func blocks(t *testing.T, page, language string) []string {
	t.Helper()
	data, err := os.ReadFile(page)
	require.NoError(t, err)
	var found []string
	for _, match := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(string(data), -1) {
		found = append(found, match[1])
	}
	return found
}

// TestAgentsGuide pastes every line of docs/agents.md for a shell, block after block.
func TestAgentsGuide(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"bash", "curl", "go"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("NOT TESTED: " + err.Error())
		}
	}
	d := serve(t)
	says := []string{ // a new block needs a new line here
		``,
		`(?s)"function".*"run_in_background".*"input_schema".*Keep the ids`,
		`(?s)hello\\n\[exit code: 3\].*started\\n\[still running as background task bash-2\]`,
		`(?s)bash-2 \[bash\] running — the build\\nbash-3 \[bash\] running — the tests.*done\\n\[status: completed, exit code: 0\].*task bash-3 had already finished`,
		`(?s)system: Long work.*assistant: The tests are through: 42 tests passed\n`,
		`(?s)started background task bash-\d+.*"role":"user","content":\[\{"type":"text","text":"background task bash-\d+ \(bash: a nap\)`,
	}
	scripts := blocks(t, "../docs/agents.md", "sh")
	require.Len(t, scripts, len(says))
	const mark = "=== the next block ==="
	ctx, cancel := context.WithTimeout(t.Context(), patient(60*time.Second))
	defer cancel()
	script := strings.ReplaceAll(strings.Join(scripts, "\necho; echo '"+mark+"'\n"), "bin/afoot", binary)
	cmd := exec.CommandContext(ctx, "bash", "-c", script)
	cmd.Dir = ".."
	cmd.Env = slices.Concat(d.commandContext(ctx).Env, []string{"AFOOT_ADDR=" + d.addr})
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s\n%s", out, &stderr)
	for i, text := range strings.Split(string(out), mark) {
		require.Regexp(t, says[i], text, "%s\nafter\n%s\n%s", scripts[i], out, &stderr)
	}
	require.NotContains(t, string(out), `"code":"`, "no call was refused")
	for line := range strings.Lines(stderr.String()) {
		require.Contains(t, line, "timed out", "curl complains of the end of the stream's time and of nothing else")
	}
}

// TestAgentsGuideClients gives the configurations on the pages to a client.
func TestAgentsGuideClients(t *testing.T) {
	t.Parallel()
	needNode(t)
	d := serve(t)
	configs := append(blocks(t, "../docs/agents.md", "json"), blocks(t, "../README.md", "json")...)
	require.Len(t, configs, 3)
	for _, text := range configs {
		var config struct {
			MCPServers map[string]struct {
				Type    string            `json:"type"`
				URL     string            `json:"url"`
				Headers map[string]string `json:"headers"`
				Command string            `json:"command"`
				Args    []string          `json:"args"`
			} `json:"mcpServers"`
		}
		require.NoError(t, json.Unmarshal([]byte(text), &config), "%s", text)
		server, found := config.MCPServers["afoot"]
		require.True(t, found)
		want := map[string]any{"era": "legacy", "greet": true}
		switch {
		case server.Command != "":
			require.Equal(t, "afoot", server.Command)
			want["command"], want["args"], want["env"] = binary, server.Args, d.stdioEnv()
		default:
			require.Equal(t, "http", server.Type)
			require.Equal(t, "Bearer TOKEN", server.Headers["Authorization"])
			want["url"] = strings.Replace(server.URL, "127.0.0.1:7420", d.addr, 1)
			want["token"] = d.mint(jwt.MapClaims{"sid": "demo"})
		}
		spoken, err := json.Marshal(want)
		require.NoError(t, err)
		out, err := node(t, "client.mjs", string(spoken))
		require.NoError(t, err, "%s", out)
		require.Contains(t, out, "ok all\n")
	}
}
