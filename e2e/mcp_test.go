package e2e

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"
)

// eras are the protocols that the official client speaks: with sessions, and without.
var eras = []string{"legacy", "2026-07-28"}

// walk has the official client take all its steps.
func walk(t *testing.T, want map[string]any) {
	t.Helper()
	config, err := json.Marshal(want)
	require.NoError(t, err)
	out, err := node(t, "client.mjs", string(config))
	require.NoError(t, err, "%s", out)
	require.True(t, strings.HasSuffix(out, "ok all\n"), "%s", out)
	require.NotContains(t, out, "client: ", "errors that the client reported")
	t.Logf("%s", out)
}

func TestMCPOverHTTP(t *testing.T) {
	t.Parallel()
	needNode(t)
	for _, era := range eras {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			d := serve(t)
			walk(t, map[string]any{
				"era": era, "url": "http://" + d.addr + "/mcp",
				"token": d.mint(jwt.MapClaims{"sid": "mine"}), "other": d.mint(jwt.MapClaims{"sid": "theirs"}),
			})
			require.Empty(t, d.as("theirs").list(t, ""), "nothing of it is seen by others")
			require.NotEmpty(t, d.as("mine").list(t, ""), "the same tasks over HTTP")
		})
	}
}

// TestMCPOverStdio lets `afoot mcp` find a daemon that runs.
func TestMCPOverStdio(t *testing.T) {
	t.Parallel()
	needNode(t)
	for _, era := range eras {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			d := serve(t)
			d.command("ls") // the session's first call, so that it is there to be looked at
			walk(t, map[string]any{"era": era, "command": binary, "args": []string{"mcp"}, "env": d.stdioEnv()})
			c := d.as("local")
			eventually(t, 10*time.Second, "the agent is disposed when its input has closed", func() bool {
				return !slices.ContainsFunc(c.agents(t), func(id string) bool { return id != "default" }) &&
					len(c.list(t, "")) == 0 && len(d.alive()) == 0
			})
		})
	}
}

// TestMCPOverStdioAlone has `afoot mcp` start a daemon of its own.
func TestMCPOverStdioAlone(t *testing.T) {
	t.Parallel()
	needNode(t)
	d := prepare(t)
	env := d.stdioEnv()
	env["HOME"] = d.work
	walk(t, map[string]any{"era": "2026-07-28", "command": binary, "args": []string{"mcp"}, "env": env})
	eventually(t, 10*time.Second, "everything ends with its input", func() bool { return len(d.alive()) == 0 })
	require.NoDirExists(t, d.state, "nothing is kept")
}

// stdioEnv is the environment of a client that starts `afoot mcp`: of the daemon it
// knows the state directory alone.
func (d *daemon) stdioEnv() map[string]string {
	env := make(map[string]string)
	for _, kv := range d.env {
		name, value, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, "AFOOT_") || name == "AFOOT_STATE_DIR" {
			env[name] = value
		}
	}
	return env
}
