package main

import (
	"bufio"
	"context"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestOrderThatComesWhileControlPauses: its line stays where another image of the program
// finds it, and if none comes, this one reads it.
func TestOrderThatComesWhileControlPauses(t *testing.T) {
	dir := t.TempDir()
	obeyed := make(chan order, 1)
	c, err := openControl(dir, func(_ context.Context, o order) verdict {
		obeyed <- o
		return verdict{}
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.close()) }()
	open := func(n int) {
		t.Helper()
		require.Eventually(t, func() bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			return len(c.conns) == n
		}, 20*time.Second, time.Millisecond)
	}
	for range 20 {
		conn, err := net.Dial("unix", filepath.Join(dir, controlName))
		require.NoError(t, err)
		open(1)
		reloads, fresh := c.pause()
		require.Empty(t, reloads)
		require.Len(t, fresh, 1)
		_, err = conn.Write([]byte("{\"do\":\"backup\",\"file\":\"f\"}\n"))
		require.NoError(t, err)
		select {
		case <-obeyed:
			require.Fail(t, "it is taken by who pauses")
		case <-time.After(5 * time.Millisecond):
		}
		file, err := fresh[0].(*net.UnixConn).File()
		require.NoError(t, err)
		n, _, err := unix.Recvfrom(int(file.Fd()), make([]byte, 100), unix.MSG_PEEK|unix.MSG_DONTWAIT)
		require.NoError(t, err)
		require.Positive(t, n)
		c.resume()
		require.Equal(t, order{Do: "backup", File: "f"}, <-obeyed)
		_, err = bufio.NewReader(conn).ReadString('\n')
		require.NoError(t, err)
		require.NoError(t, file.Close())
		require.NoError(t, conn.Close())
		open(0)
	}
}
