package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"afoot/api/wire"
	"afoot/registry"
	"afoot/registry/journal"
	"afoot/sse"
)

var _ sse.Journal = (*journal.Notices)(nil)

// told reads the next notice.
func (s *stream) told() (id, task string) {
	s.w.t.Helper()
	e := s.next("task.done", "gap")
	var done wire.TaskDone
	s.w.is.NoError(json.Unmarshal([]byte(e.data), &done))
	return e.id, done.Task.Id
}

// TestNoticesOutliveTheDaemon: over a real journal.
func TestNoticesOutliveTheDaemon(t *testing.T) {
	j, err := journal.Open(journal.Config{Path: filepath.Join(t.TempDir(), "journal")})
	require.NoError(t, err)
	defer func() { require.NoError(t, j.Close(context.Background())) }()
	kept := func(s *setup) { s.inmem.Journal, s.sse.Journal = j, j.Notices() }
	synced := func() { require.NoError(t, j.Sync(t.Context(), ^registry.Mark(0))) }

	var first string
	t.Run("before", func(t *testing.T) {
		w := newWorld(t, kept)
		s := w.subscribe("")
		w.ended("a")
		var task string
		first, task = s.told()
		w.is.Equal("bash-1", task)
		w.ended("b")
		_, task = s.told()
		w.is.Equal("bash-2", task)
		s.stop()
		w.eventually(func() bool { return w.hub.Streams() == 0 }, "no stream")
		w.ended("c")
		w.ended("d")
		w.get("/tasks/bash-4/output").ok(http.StatusOK)
		w.eventually(func() bool { return w.snapshot("bash-4").Reported }, "reported")
		synced()
	})

	// Notices of which the records know more than the streams.
	rows, _, err := j.Notices().Load(t.Context())
	require.NoError(t, err)
	require.Len(t, rows, 3)
	stale := rows[2]
	require.Equal(t, "bash-3", stale.Key)
	for number, row := range map[uint64]journal.NoticeRow{
		100: {Key: "bash-4", Owner: stale.Owner, Agent: stale.Agent},              // reported
		101: {Key: "bash-77", Owner: "alice\x00agent-7\x009", Agent: "agent-7"},   // its owner is gone
		102: {Key: "bash-76", Owner: stale.Owner, Agent: stale.Agent},             // its record was evicted
		104: {Key: "bash-75", Owner: "alice\x00default\x000", Agent: stale.Agent}, // its owner is gone, and has a successor
		103: {Key: "bash-78", Owner: "alice\x00agent-7\x009", Agent: "agent-7", Written: time.Now()},
	} {
		row.Event, row.Data = "task.done", fmt.Appendf(nil, `{"task":{"id":%q}}`, row.Key)
		j.Notices().Move("alice", nil, number, row, nil)
	}

	t.Run("after", func(t *testing.T) {
		w := newWorld(t, kept)
		s := w.subscribe("?observe=true", "Last-Event-ID", first)
		for _, want := range []string{"bash-2", "bash-3", "bash-76", "bash-78"} {
			_, task := s.told()
			w.is.Equal(want, task)
		}
		s = w.subscribe("")
		for _, want := range []string{"bash-3", "bash-76"} {
			_, task := s.told()
			w.is.Equal(want, task)
		}
		w.ended("e")
		id, task := s.told()
		w.is.Equal("bash-5", task)
		w.is.Regexp("-105$", id)
	})
}
