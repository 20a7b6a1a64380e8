package e2e

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// gate is a FIFO at which a task waits until the test lets it pass, so that tests
// choose the moment of an end.
type gate struct{ path string }

// newGate makes a gate and the first line of a command that waits at it.
func newGate(t *testing.T) *gate {
	t.Helper()
	g := &gate{path: filepath.Join(t.TempDir(), "gate")}
	require.NoError(t, unix.Mkfifo(g.path, 0o600))
	return g
}

// newGates makes many, for use from other goroutines.
func newGates(t *testing.T, n int) []*gate {
	t.Helper()
	gates := make([]*gate, n)
	for i := range gates {
		gates[i] = newGate(t)
	}
	return gates
}

// wait is the shell text that waits at the gate without another process.
func (g *gate) wait() string { return "read -r _ <'" + g.path + "'; " }

// pass waits until the task stands at the gate, and lets it pass.
func (g *gate) pass() error {
	deadline := time.Now().Add(20 * time.Second)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		fd, err := syscall.Open(g.path, syscall.O_WRONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
		if err == nil {
			_, err = syscall.Write(fd, []byte("\n"))
			return errors.Join(err, syscall.Close(fd))
		}
		if !errors.Is(err, syscall.ENXIO) || time.Now().After(deadline) {
			return err
		}
		<-tick.C
	}
}

func (g *gate) open(t *testing.T) {
	t.Helper()
	require.NoError(t, g.pass())
}
