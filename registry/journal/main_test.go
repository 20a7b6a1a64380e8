package journal

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"afoot/registry"
)

func TestMain(m *testing.M) {
	if path := os.Getenv("JOURNAL_TEST_VICTIM"); path != "" {
		victim(path)
	}
	goleak.VerifyTestMain(m)
}

// opened gives a journal that is closed, without an error, with the test.
func opened(t testing.TB, cfg Config) *Journal {
	t.Helper()
	j, err := Open(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { shut(t, j) })
	return j
}

func shut(t testing.TB, j *Journal) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	require.NoError(t, j.Close(ctx))
}

func at(t testing.TB) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "journal.db")
}

func synced(t testing.TB, j *Journal, rows ...registry.Row) {
	t.Helper()
	require.NoError(t, j.Sync(t.Context(), j.Append(rows...)))
}

func memory(t testing.TB, j *Journal) registry.Memory {
	t.Helper()
	m, err := j.Load(t.Context())
	require.NoError(t, err)
	return m
}

func task(n uint64) registry.TaskRow {
	return registry.TaskRow{Seq: n, Snapshot: registry.Snapshot{ID: registry.NewID("bash", n), Kind: "bash", Status: registry.StatusRunning}}
}

// typical is a row as a task of bash has it.
func typical(n uint64) registry.TaskRow {
	r := task(n)
	r.Snapshot.Label = "go test ./..."
	r.Snapshot.Owner = registry.Owner{Session: "0d1c7a0e6b", Agent: "default", Incarnation: 1}
	r.Snapshot.Detail = "exit code 0 after 1.2 s"
	r.Snapshot.Result = []byte(`{"exitCode":0,"durationMs":1200,"leftovers":0,"cpuMs":400,"maxRssBytes":123456789}`)
	r.Snapshot.StartedAt = time.Now()
	r.Handle = []byte(`{"log":"3f9a2c7e51","command":"go test ./...","workdir":"/home/me/project","env":["A","B"],"size":12345}`)
	return r
}
