package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"afoot/api/client"
)

// K1 and K2 after a sudden death: what was told is still true.
func TestRestartKeepsWhatWasTold(t *testing.T) {
	t.Parallel()
	for _, sync := range []Sync{SyncNormal, SyncFull} {
		t.Run(string(sync), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "AFOOT_SYNC="+string(sync))
			r.serve()
			_, _, code := r.afoot("run", "--", "echo done; exit 3")
			require.Equal(t, 3, code)
			id := strings.TrimSpace(r.ok("run", "-d", "--", "echo begun; sleep 371; true"))
			r.eventually("it is up", func() bool { return r.tasks()[1].OutputBytes > 0 })
			require.Equal(t, "bash-2", id)
			require.NoError(t, r.daemon.Process.Kill())
			require.Error(t, r.ended(r.soon()))

			r.serve()
			tasks := map[string]client.Snapshot{}
			for _, task := range r.tasks() {
				tasks[task.Id] = task
			}
			require.Len(t, tasks, 2)
			require.EqualValues(t, "completed", tasks["bash-1"].Status)
			require.EqualValues(t, "failed", tasks["bash-2"].Status)
			require.Equal(t, "daemon ended while the task ran", tasks["bash-2"].Detail)
			require.NotZero(t, tasks["bash-2"].FinishedAt)
			require.Equal(t, "done\n", r.ok("logs", "bash-1"))
			require.Equal(t, "begun\n", r.ok("logs", "bash-2"))
			require.Contains(t, r.ok("output", "bash-2"), "begun\n")
			require.Equal(t, "bash-3", strings.TrimSpace(r.ok("run", "-d", "--", "true")))

			r.stop()
			r.serve()
			require.Len(t, r.tasks(), 3)
		})
	}
}

func TestDamagedJournalStopsTheStart(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.serve()
	r.ok("run", "--", "true")
	r.stop()
	require.NoError(t, os.WriteFile(journalPath(r.state), bytes.Repeat([]byte("x"), 5000), 0o600))
	_, stderr, code := r.afoot("serve")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "damaged")
	require.Contains(t, stderr, "afoot doctor")
	text, err := os.ReadFile(journalPath(r.state))
	require.NoError(t, err)
	require.Len(t, text, 5000, "nothing was changed")
}

func TestMemoryKeepsNothing(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte(strings.Repeat("k", 32)), 0o600))
	tmp := t.TempDir()
	addr := "unix:" + filepath.Join(t.TempDir(), "s")
	r := newRig(t, "AFOOT_STATE_DIR=memory:", "TMPDIR="+tmp, "AFOOT_ADDR="+addr)
	require.NoError(t, os.MkdirAll(r.home, 0o700))
	r.serve()
	r.eventually("it says so", func() bool { return strings.Contains(r.out.String(), "the secret is in memory alone") })
	_, stderr, code := r.afoot("ls")
	require.Equal(t, exitNoDaemon, code)
	require.Contains(t, stderr, "--addr")
	_, stderr, code = r.afoot("token", "--session", "s")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "AFOOT_JWT_SECRET_FILE")
	r.stop()
	left, err := os.ReadDir(tmp)
	require.NoError(t, err)
	require.Empty(t, left)

	r.env = append(r.env, "AFOOT_JWT_SECRET_FILE="+secret)
	r.serve()
	r.env = append(r.env, "AFOOT_TOKEN="+strings.TrimSpace(r.ok("token", "--session", "s")))
	require.Equal(t, "x\n", r.ok("run", "--addr", addr, "--", "echo x"))
	require.NoError(t, r.daemon.Process.Kill())
	require.Error(t, r.ended(r.soon()))
	r.eventually("the watchdog has removed what was captured", func() bool {
		left, err := os.ReadDir(tmp)
		require.NoError(t, err)
		return len(left) == 0
	})
	entries, err := os.ReadDir(r.home)
	require.NoError(t, err)
	for _, entry := range entries {
		require.NotContains(t, entry.Name(), "memory", "nothing was made of that name")
	}
}
