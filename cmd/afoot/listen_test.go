package main

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

func unixAddr(path string) Address { return Address{Network: "unix", Address: path} }

func TestListenSocket(t *testing.T) {
	umask(t, 0)
	path := filepath.Join(t.TempDir(), "s")
	first, err := listen(t.Context(), unixAddr(path))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), modeOf(t, path))

	_, err = listen(t.Context(), unixAddr(path))
	require.ErrorContains(t, err, "another program listens there")

	first.(*net.UnixListener).SetUnlinkOnClose(false)
	require.NoError(t, first.Close())
	require.FileExists(t, path)
	second, err := listen(t.Context(), unixAddr(path))
	require.NoError(t, err, "a socket that was left behind is replaced")
	require.NoError(t, second.Close())

	require.NoError(t, os.WriteFile(path, []byte("precious"), 0o600))
	_, err = listen(t.Context(), unixAddr(path))
	require.ErrorContains(t, err, "not a socket")
	require.FileExists(t, path)
}

func TestURLOfTheDaemon(t *testing.T) {
	for addr, want := range map[string]string{
		"127.0.0.1:0": "http://127.0.0.1:",
		"0.0.0.0:0":   "http://127.0.0.1:",
		":0":          "http://127.0.0.1:",
		"[::]:0":      "http://[::1]:",
	} {
		at := Address{Network: "tcp", Address: addr}
		listener, err := listen(t.Context(), at)
		if err != nil && addr == "[::]:0" {
			continue // no IPv6 here
		}
		require.NoError(t, err)
		d := newDaemon(&Config{Addr: at}, nil, nil, listener)
		require.Regexp(t, `^`+regexp.QuoteMeta(want)+`\d+$`, d.url(), addr)
		require.NoError(t, d.listener.Close())
	}
}

func TestListenTakenPort(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, taken.Close()) }()
	_, err = listen(t.Context(), Address{Network: "tcp", Address: taken.Addr().String()})
	require.ErrorContains(t, err, "another program listens there")
	require.ErrorContains(t, err, "AFOOT_ADDR")
}
