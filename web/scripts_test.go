package web_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func scripts(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("page/*.js")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	names := make([]string, 0, len(paths))
	for _, path := range paths {
		names = append(names, filepath.Base(path))
	}
	return names
}

// The pure parts of the page, tested where they run: in a JavaScript engine.
func TestScripts(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("SKIPPED: node is not installed, so the page's scripts were not tested")
	}
	// Modules without a package file need node 20.19 or later.
	if err := exec.CommandContext(t.Context(), node, "--eval", "process.exit(process.features.require_module ? 0 : 1)").Run(); err != nil {
		t.Skip("SKIPPED: node is older than 20.19, so the page's scripts were not tested")
	}
	cmd := exec.CommandContext(t.Context(), node, "--test", "app.test.mjs")
	cmd.Env = append(os.Environ(), "NO_COLOR=1", "NODE_NO_WARNINGS=1")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}
