package output

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSendTo sends logs that grow and that have ended, as they lie in the file and
// written round in it.
func TestSendTo(t *testing.T) {
	for _, c := range []struct {
		name         string
		bound        int64
		ended, plain bool
	}{
		{"growing", 1 << 20, false, false}, {"ended", 1 << 20, true, true},
		{"growing, round", 64 << 10, false, false}, {"ended, round", 64 << 10, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			log := newLog(t, newStore(t, c.bound))
			data := numbered(10_000)
			feed(t, log, data)
			if c.ended {
				log.End()
			}
			reader, err := log.Open()
			require.NoError(t, err)
			defer func() { require.NoError(t, reader.Close()) }()
			require.Equal(t, c.plain, reader.File() != nil)
			first, next, _ := reader.Bounds()

			listener, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer func() { require.NoError(t, listener.Close()) }()
			client, err := net.Dial("tcp", listener.Addr().String())
			require.NoError(t, err)
			conn, err := listener.Accept()
			require.NoError(t, err)
			socket, err := conn.(*net.TCPConn).SyscallConn()
			require.NoError(t, err)
			got := make(chan []byte, 1)
			go func() {
				all, _ := io.ReadAll(client)
				got <- all
			}()
			for at := first; at < next; {
				n, err := reader.SendTo(socket, at, min(next-at, 10_001))
				require.NoError(t, err)
				require.Positive(t, n)
				at += n
			}
			_, err = reader.SendTo(socket, next, 1)
			require.ErrorIs(t, err, io.EOF)
			if first > 0 {
				_, err = reader.SendTo(socket, first-1, 1)
				require.ErrorIs(t, err, ErrDropped)
			}
			require.NoError(t, conn.(*net.TCPConn).CloseWrite())
			require.Equal(t, string(data[first:next]), string(<-got))
			require.NoError(t, client.Close())
			require.NoError(t, conn.SetWriteDeadline(time.Now().Add(10*time.Millisecond)))
			require.Eventually(t, func() bool {
				_, err := reader.SendTo(socket, first, next-first)
				return err != nil && !errors.Is(err, io.EOF)
			}, 5*time.Second, time.Millisecond, "a client that left is an error")
			require.NoError(t, conn.Close())
		})
	}
}
