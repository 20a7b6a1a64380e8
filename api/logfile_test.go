package api_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"afoot/api/wire"
	"afoot/auth"
	"afoot/registry"
	"afoot/registry/registrytest"
)

// fileLog is an ended log that lies in a file.
type fileLog struct {
	file        *os.File
	first, next int64
	// reads counts what was read past the file itself.
	reads *int
}

func (l fileLog) Bounds() (first, next int64, ended bool) { return l.first, l.next, true }
func (l fileLog) Close() error                            { return l.file.Close() }
func (l fileLog) File() *os.File                          { return l.file }
func (l fileLog) ReadAt(p []byte, at int64) (int, error) {
	*l.reads++
	return l.file.ReadAt(p, at)
}

func (l fileLog) Grown(int64) <-chan struct{} {
	ended := make(chan struct{})
	close(ended)
	return ended
}

// TestLogOfAFile: an ended log that is a file goes out piece by piece, by the
// system, byte for byte.
func TestLogOfAFile(t *testing.T) {
	w := newWorld(t)
	w.ended("")
	data := make([]byte, 3<<20+17)
	_, err := rand.Read(data)
	w.is.NoError(err)
	path := filepath.Join(t.TempDir(), "log")
	w.is.NoError(os.WriteFile(path, data, 0o600))
	reads := 0
	w.faulty.openLog = func(context.Context) (registry.RawLog, error) {
		file, err := os.Open(path)
		return fileLog{file: file, first: 5, next: int64(len(data)), reads: &reads}, err
	}
	for _, c := range []struct {
		rng        string
		begin, end int
	}{
		{"", 5, len(data)},
		{"bytes=5-", 5, len(data)},
		{"bytes=1000000-2999999", 1_000_000, 3_000_000},
		{fmt.Sprintf("bytes=%d-", len(data)-1), len(data) - 1, len(data)},
	} {
		a := w.get("/tasks/bash-1/log", "Range", c.rng, "Accept-Encoding", "identity")
		w.is.True(bytes.Equal(data[c.begin:c.end], a.body), c.rng)
		w.is.Equal(strconv.Itoa(c.end-c.begin), a.header.Get("Content-Length"), c.rng)
	}
	w.is.Zero(reads)
}

// TestStartedBeforeTheTokenEnded: the task is named although its wait is refused.
func TestStartedBeforeTheTokenEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	body := w.body(registrytest.Script{})
	w.token = w.mint(auth.Claims{Session: "alice", Scopes: auth.TasksWrite}, 3*time.Second)
	a := w.call(http.MethodPost, "/tasks?wait=true", body)
	a.refused(http.StatusUnauthorized, "unauthenticated")
	w.is.Equal("/tasks/bash-1", a.header.Get("Location"))
	w.token = w.mint(auth.Claims{Session: "alice", Scopes: auth.TasksWrite}, time.Hour)
	w.is.Equal(wire.Running, into[wire.TaskDescription](w.get("/tasks/bash-1")).Status)
}
