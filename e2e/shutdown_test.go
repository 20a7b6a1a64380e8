package e2e

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Whatever is open, SIGTERM ends the daemon in time, with a last event on every
// stream and nothing left behind; a second one changes nothing.
func TestK9ShutdownWithEverythingOpen(t *testing.T) {
	t.Parallel()
	for name, signals := range map[string][]os.Signal{
		"SIGTERM":       {syscall.SIGTERM},
		"SIGTERM twice": {syscall.SIGTERM, syscall.SIGTERM},
		"SIGINT":        {syscall.SIGINT},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if signal.Ignored(signals[0]) {
				t.Skip("the signal is ignored here, and so it is by the daemon")
			}
			d := serve(t)
			c := d.as("shutdown")
			stubborn := c.start(t, `trap "" TERM; echo up; sleep 841; sleep 843`).ID
			tree := c.start(t, `sleep 845 & echo up; wait`).ID
			left := c.start(t, `sleep 847 & echo up`).ID
			for _, id := range []string{stubborn, tree, left} {
				c.says(t, id, "up")
			}
			streams := []*stream{c.subscribe(t, "", ""), c.subscribe(t, "observe=true", ""), d.anyone().subscribe(t, "", "")}
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			var open sync.WaitGroup
			for _, path := range []string{
				"/tasks/" + tree + "/output?wait=true&timeout_ms=60000",
				"/tasks/" + stubborn + "/output?wait=true&timeout_ms=60000&offset=3",
				"/tasks/" + tree + "/log?follow=true",
			} {
				open.Go(func() { _, _ = c.call(ctx, http.MethodGet, path, nil) })
			}
			eventually(t, 5*time.Second, "blocked calls", func() bool {
				return c.get(t, tree).Waiters >= 1 && c.get(t, stubborn).Waiters >= 1
			})
			begun := time.Now()
			for _, s := range signals {
				require.NoError(t, d.cmd.Process.Signal(s))
			}
			require.True(t, d.waitExit(patient(grace+2*time.Second)), "still there after %v", time.Since(begun))
			require.Equal(t, 0, d.cmd.ProcessState.ExitCode())
			require.Empty(t, d.alive())
			for _, s := range streams {
				s.over(t, time.Second)
				all := s.all()
				require.NotEmpty(t, all)
				last := all[len(all)-1]
				require.Equal(t, "bye", last.name)
				require.JSONEq(t, `{"reason":"shutdown"}`, last.data)
				for _, e := range s.all("task.done") {
					require.Equal(t, left, e.notice(t).Task.ID, "it announces nothing on its way down")
				}
			}
			done := make(chan struct{})
			go func() { open.Wait(); close(done) }()
			select {
			case <-done:
			case <-time.After(patient(time.Second)):
				require.FailNow(t, "a call outlived the daemon")
			}
		})
	}
}

// No client can hold the daemon up, whatever it leaves undone.
func TestK9ShutdownWithStuckClients(t *testing.T) {
	t.Parallel()
	for name, request := range map[string]func(c *client, id string) string{
		"says nothing":  func(*client, string) string { return "" },
		"half a header": func(*client, string) string { return "GET /tasks HTTP/1.1\r\nHost: local" },
		"a body that stalls": func(c *client, _ string) string {
			return bare("POST /tasks HTTP/1.1", "Host: "+c.d.addr, c.bearer(), "Content-Type: application/json", "Content-Length: 1000") + `{"kind":`
		},
		"reads no log": func(c *client, id string) string {
			return bare("GET /tasks/"+id+"/log HTTP/1.1", "Host: "+c.d.addr, c.bearer())
		},
		"follows no log": func(c *client, id string) string {
			return bare("GET /tasks/"+id+"/log?follow=true HTTP/1.1", "Host: "+c.d.addr, c.bearer())
		},
		"reads no output": func(c *client, id string) string {
			return bare("GET /tasks/"+id+"/output?offset=0 HTTP/1.1", "Host: "+c.d.addr, c.bearer())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := serve(t)
			c := d.as("stuck")
			id := c.start(t, `head -c 30000000 /dev/zero; sleep 849`).ID
			eventually(t, 20*time.Second, "output", func() bool { return c.get(t, id).OutputBytes == 30000000 })
			w, err := d.dial()
			require.NoError(t, err)
			defer func() { _ = w.conn.Close() }()
			require.NoError(t, w.conn.SetReadBuffer(4096))
			_, err = w.conn.Write([]byte(request(c, id)))
			require.NoError(t, err)
			c.get(t, id) // the daemon has met the connection before this one
			begun := time.Now()
			require.NoError(t, d.cmd.Process.Signal(syscall.SIGTERM))
			require.True(t, d.waitExit(patient(grace+2*time.Second)), "still there after %v", time.Since(begun))
			require.Equal(t, 0, d.cmd.ProcessState.ExitCode())
			require.Empty(t, d.alive())
		})
	}
}

func TestShutdownAndStartAgain(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("again")
	c.finish(t, c.start(t, "echo x").ID)
	d.stop()
	for range 2 {
		d.launch()
		d.ready()
		s, text := c.finish(t, c.start(t, "echo y").ID)
		require.Equal(t, "y\n", text)
		require.Equal(t, 0, s.exitCode())
		d.stop()
	}
}

func TestUnixSocket(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "afoot-") //nolint:usetesting // names of sockets are short, those of t.TempDir are not
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "sock")
	d := prepare(t, "AFOOT_ADDR=unix:"+path)
	d.http.Transport.(*http.Transport).DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		var dialer net.Dialer
		return dialer.DialContext(ctx, "unix", path)
	}
	d.launch()
	d.ready()
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Zero(t, info.Mode().Perm()&0o077, "closed to others: %v", info.Mode())
	c := d.as("unix")
	a := c.do(t, http.MethodPost, "/tasks?wait=true", startBody("echo hi"), "Host: localhost")
	require.Equal(t, http.StatusCreated, a.status, "%s", a)
	var o output
	require.NoError(t, json.Unmarshal(a.body, &o))
	require.Equal(t, "hi\n", o.Text)
	c.do(t, http.MethodGet, "/tasks", nil, "Host: evil.example").refused(t, http.StatusMisdirectedRequest, "foreign_host")
	d.stop()
	d.launch()
	d.ready() // a socket left behind or removed: either way it starts again
}
