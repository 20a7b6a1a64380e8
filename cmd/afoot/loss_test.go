package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"afoot/registry/journal"
)

// What a part of the log has told is not undone in silence, and what was captured stays.
func TestDamagedLogOfTheJournal(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.serve()
	for range 8 {
		r.ok("run", "--", "echo a word that is kept")
	}
	require.NoError(t, r.daemon.Process.Kill())
	require.Error(t, r.ended(r.soon()))
	log := journalPath(r.state) + "-wal"
	text, err := os.ReadFile(log)
	require.NoError(t, err)
	copy(text[len(text)/2:], bytes.Repeat([]byte{0xff}, 16))
	require.NoError(t, os.WriteFile(log, text, 0o600))
	captured := r.captured(outputName)
	require.Len(t, captured, 8)

	for _, args := range [][]string{{"serve"}, {"serve", "--check"}} {
		_, stderr, code := r.afoot(args...)
		require.Equal(t, exitFailed, code)
		require.Contains(t, stderr, "its log is damaged")
		require.Contains(t, stderr, "afoot doctor --accept-loss")
	}
	_, stderr, code := r.afoot("doctor", "--dry-run", "--accept-loss")
	require.Equal(t, exitUsage, code, stderr)
	for _, args := range [][]string{{"--dry-run"}, nil} {
		require.Contains(t, saidOf(r.doctor(exitFailed, args...)[findingWrong]), "its log is damaged")
	}
	after, err := os.ReadFile(log)
	require.NoError(t, err)
	require.True(t, bytes.Equal(text, after), "nothing is changed without being asked for")
	require.Equal(t, captured, r.captured(outputName))

	before, err := journal.Inspect(journalPath(r.state))
	require.Error(t, err)
	require.Empty(t, before.Rows)
	said := r.doctor(exitOK, "--accept-loss")
	require.Contains(t, saidOf(said[findingRepaired]), journalName+"-lost")
	kept := append(r.captured(outputName), r.captured(lostOutputName)...)
	require.ElementsMatch(t, captured, kept)
	require.NotEmpty(t, r.captured(lostOutputName))
	require.Empty(t, r.doctor(exitOK, "--accept-loss")[findingRepaired])

	r.serve()
	known := r.tasks()
	require.NotEmpty(t, known)
	require.Less(t, len(known), 8)
	for _, task := range known {
		require.Equal(t, "a word that is kept\n", r.ok("logs", task.Id))
	}
	id := strings.TrimSpace(r.ok("run", "-d", "--", "true"))
	n, err := strconv.Atoi(strings.TrimPrefix(id, "bash-"))
	require.NoError(t, err)
	require.Greater(t, n, 8, "no id is given again")
	require.NotEmpty(t, r.captured(lostOutputName))
}

// captured lists the logs with something in them in a directory of the state.
func (r *rig) captured(dir string) (names []string) {
	r.t.Helper()
	paths, err := filepath.Glob(filepath.Join(r.state, dir, "*.log"))
	require.NoError(r.t, err)
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil && info.Size() > 0 {
			names = append(names, filepath.Base(path))
		}
	}
	return names
}
