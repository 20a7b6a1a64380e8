package api_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"afoot/registry/registrytest"
)

// TestForegroundEndsBehindMore: a command ends when its caller has left, also when that
// one had sent more behind its request, where net/http does not look.
func TestForegroundEndsBehindMore(t *testing.T) {
	w := newWorld(t)
	conn, err := net.Dial("tcp", w.server.Listener.Addr().String())
	w.is.NoError(err)
	defer conn.Close()
	w.is.NoError(w.request(context.Background(), http.MethodPost, "/tools/bash", w.bash(registrytest.Script{}, "")).Write(conn))
	w.eventually(func() bool { return w.jobs.Work("bash-1") != nil }, "the command runs")
	w.waiters("bash-1", 1)
	_, err = io.WriteString(conn, "GET /tools HTTP/1.1\r\n"+strings.Repeat("x", 1<<13))
	w.is.NoError(err)
	w.is.Empty(w.jobs.Work("bash-1").Cancels())
	w.is.NoError(conn.Close())
	w.eventually(func() bool { return len(w.jobs.Work("bash-1").Cancels()) > 0 }, "the command is stopped")
}
