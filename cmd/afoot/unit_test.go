package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The unit file is one that systemd takes without a word.
func TestUnitFile(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip(err)
	}
	text, err := os.ReadFile("../../docs/afoot.service")
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	const installed = "/usr/local/bin/afoot"
	require.Contains(t, string(text), installed)
	path := filepath.Join(t.TempDir(), "afoot.service")
	require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(string(text), installed, self)), 0o644))
	out, err := exec.Command("systemd-analyze", "verify", "--man=no", path).CombinedOutput()
	require.NoError(t, err, string(out))
	require.NotContains(t, string(out), "afoot.service", "no warnings")
}
