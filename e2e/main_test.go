package e2e

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

// binary is the path of the daemon under test; TestMain sets it once.
var binary string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	// Tests mostly wait for daemons: more of them than processors may do so at once.
	if f := flag.Lookup("test.parallel"); f != nil && f.Value.String() == f.DefValue {
		if err := f.Value.Set("6"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	// A check of a property runs real processes: a few say as much as a minute allows.
	for name, value := range map[string]string{"rapid.checks": "25", "rapid.shrinktime": "10s"} {
		if f := flag.Lookup(name); f != nil && f.Value.String() == f.DefValue {
			if err := f.Value.Set(value); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
		}
	}
	binary = os.Getenv("AFOOT_E2E_BIN")
	if binary == "" {
		dir, err := os.MkdirTemp("", "afoot-e2e-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer func() { _ = os.RemoveAll(dir) }()
		binary = filepath.Join(dir, "afoot")
		build := exec.Command("go", "build", "-race", "-o", binary, "../cmd/afoot")
		build.Env = append(os.Environ(), "CGO_ENABLED=1")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
			return 1
		}
	}
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return code
}
