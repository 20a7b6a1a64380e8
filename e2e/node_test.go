package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// oldestNode is the first version that the official client runs on.
const oldestNode = 20

// modules installs the packages of mcp/ once; the error says why they can't be had.
var modules = sync.OnceValue(func() error {
	lock, err := os.ReadFile("mcp/package-lock.json")
	if err != nil {
		return err
	}
	sum := sha256.Sum256(lock)
	want := hex.EncodeToString(sum[:])
	stamp := filepath.Join("mcp", "node_modules", ".installed")
	if have, err := os.ReadFile(stamp); err == nil && string(have) == want {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	install := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--loglevel=error")
	install.Dir = "mcp"
	if out, err := install.CombinedOutput(); err != nil {
		return &missing{what: "npm ci: " + err.Error() + "\n" + string(out)}
	}
	return os.WriteFile(stamp, []byte(want), 0o600)
})

// missing is something that this machine does not have.
type missing struct{ what string }

func (m *missing) Error() string { return m.what }

// needNode skips the test, and says why, where Node or the packages can't be had.
// With E2E_NODE=required that is a failure.
func needNode(t *testing.T) {
	t.Helper()
	lacks := func(why string) {
		t.Helper()
		if os.Getenv("E2E_NODE") == "required" {
			require.FailNow(t, why)
		}
		t.Skip("NOT TESTED: " + why)
	}
	out, err := exec.Command("node", "--version").Output()
	if err != nil {
		lacks("no Node here: " + err.Error())
	}
	major, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(string(out)), "v"), ".")
	if n, err := strconv.Atoi(major); err != nil || n < oldestNode {
		lacks("Node is too old: " + string(out))
	}
	if _, err := exec.LookPath("npm"); err != nil {
		lacks("no npm here: " + err.Error())
	}
	if err := modules(); err != nil {
		lacks(err.Error())
	}
}

// node runs a program of mcp/ and gives what it printed. Everything that it leaves
// is ended with the test.
func node(t *testing.T, args ...string) (out string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patient(60*time.Second))
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", args...)
	cmd.Dir = "mcp"
	cmd.WaitDelay = 5 * time.Second
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "AFOOT_") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	var both bytes.Buffer
	cmd.Stdout, cmd.Stderr = &both, &both
	err = cmd.Run()
	return both.String(), err
}
