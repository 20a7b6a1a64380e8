package output

import (
	"bytes"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// newSocket gives the two ends of a connection.
func newSocket(t *testing.T) (server, client *net.TCPConn) {
	t.Helper()
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	defer listener.Close()
	client, err = net.DialTCP("tcp", nil, listener.Addr().(*net.TCPAddr))
	require.NoError(t, err)
	server, err = listener.AcceptTCP()
	require.NoError(t, err)
	t.Cleanup(func() { server.Close(); client.Close() })
	return server, client
}

func TestSendToMovesWhatArrived(t *testing.T) {
	log := newLog(t, newStore(t, 0))
	data := bytes.Repeat([]byte("0123456789abcdef"), 200_000)
	feed(t, log, data)
	reader, err := log.Open()
	require.NoError(t, err)
	defer reader.Close()
	server, client := newSocket(t)
	raw, err := server.SyscallConn()
	require.NoError(t, err)
	got := make(chan []byte, 1)
	go func() {
		all, _ := io.ReadAll(client)
		got <- all
	}()
	for at := int64(7); at < int64(len(data)); {
		n, err := reader.SendTo(raw, at, 1<<30)
		require.NoError(t, err)
		require.Positive(t, n)
		at += n
	}
	_, err = reader.SendTo(raw, int64(len(data)), 1)
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, server.Close())
	require.True(t, bytes.Equal(data[7:], <-got))
}

// TestSendToNeverSendsAHole: while the socket is full the log goes on dropping, and
// what was dropped is not sent as zeros.
func TestSendToNeverSendsAHole(t *testing.T) {
	const size = 8 << 20
	log := newLog(t, newStore(t, size))
	full := bytes.Repeat([]byte("x"), size)
	feed(t, log, full)
	reader, err := log.Open()
	require.NoError(t, err)
	defer reader.Close()
	server, client := newSocket(t)
	require.NoError(t, client.SetReadBuffer(256<<10))
	raw, err := server.SyscallConn()
	require.NoError(t, err)
	require.NoError(t, server.SetWriteDeadline(time.Now().Add(100*time.Millisecond)))
	var at int64
	for err == nil {
		var n int64
		n, err = reader.SendTo(raw, at, 1<<30)
		at += n
	}
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "the socket is full")
	require.NoError(t, server.SetWriteDeadline(time.Now().Add(10*time.Second)))

	stuck := make(chan error, 1)
	go func() {
		var err error
		for err == nil {
			var n int64
			n, err = reader.SendTo(raw, at, 1<<30)
			at += n
		}
		stuck <- err
	}()
	feed(t, log, full) // is not held up by who is stuck
	got := make(chan []byte, 1)
	go func() {
		all, _ := io.ReadAll(client)
		got <- all
	}()
	require.ErrorIs(t, <-stuck, ErrDropped)
	require.NoError(t, server.Close())
	all := <-got
	require.Len(t, all, int(at))
	require.Zero(t, bytes.Count(all, []byte{0}))
}

func TestSendToAClosedConnection(t *testing.T) {
	log := newLog(t, newStore(t, 0))
	feed(t, log, []byte("hello"))
	reader, err := log.Open()
	require.NoError(t, err)
	defer reader.Close()
	server, _ := newSocket(t)
	raw, err := server.SyscallConn()
	require.NoError(t, err)
	require.NoError(t, server.Close())
	_, err = reader.SendTo(raw, 0, 5)
	require.Error(t, err)
}
