package output

import (
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
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

			conn, client := connect(t)
			socket, err := conn.SyscallConn()
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
			require.NoError(t, conn.CloseWrite())
			require.Equal(t, string(data[first:next]), string(<-got))
			require.NoError(t, client.Close())
			require.NoError(t, conn.SetWriteDeadline(time.Now().Add(10*time.Millisecond)))
			require.Eventually(t, func() bool {
				_, err := reader.SendTo(socket, first, next-first)
				return err != nil && !errors.Is(err, io.EOF)
			}, 20*time.Second, time.Millisecond, "a client that left is an error")
			require.NoError(t, conn.Close())
		})
	}
}

// connect gives both ends of a connection. The first is the test's to close.
func connect(t *testing.T) (conn *net.TCPConn, client net.Conn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, listener.Close()) }()
	client, err = net.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	accepted, err := listener.Accept()
	require.NoError(t, err)
	return accepted.(*net.TCPConn), client
}

// A socket that takes nothing holds its own reader, and nobody else who reads the log.
func TestSendToAFullSocketHoldsNobody(t *testing.T) {
	log := newLog(t, newStore(t, 1<<20))
	data := numbered(10_000)
	feed(t, log, data)
	log.End()
	reader, err := log.Open()
	require.NoError(t, err)
	defer func() { require.NoError(t, reader.Close()) }()
	conn, _ := connect(t)
	socket, err := conn.SyscallConn()
	require.NoError(t, err)
	fill(t, socket)
	stalled := make(chan error, 1)
	waits := &waiting{RawConn: socket, full: make(chan struct{})}
	go func() {
		_, err := reader.SendTo(waits, 0, int64(len(data)))
		stalled <- err
	}()
	<-waits.full

	read := make(chan error, 1)
	go func() {
		other, err := log.Open()
		if err == nil {
			err = other.Close()
		}
		read <- err
	}()
	select {
	case err := <-read:
		require.NoError(t, err)
	case <-time.After(20 * time.Second):
		t.Error("another reader waits for the socket")
	}
	require.NoError(t, conn.Close())
	require.Error(t, <-stalled)
}

// fill writes until the socket takes no more.
func fill(t *testing.T, socket syscall.RawConn) {
	t.Helper()
	junk := make([]byte, 1<<20)
	require.NoError(t, socket.Write(func(fd uintptr) bool {
		for {
			if _, err := unix.Write(int(fd), junk); err != nil {
				require.ErrorIs(t, err, unix.EAGAIN)
				return true
			}
		}
	}))
}

// waiting tells when its socket has refused for the first time.
type waiting struct {
	syscall.RawConn
	full chan struct{}
	once sync.Once
}

func (w *waiting) Write(try func(fd uintptr) bool) error {
	return w.RawConn.Write(func(fd uintptr) bool {
		done := try(fd)
		if !done {
			w.once.Do(func() { close(w.full) })
		}
		return done
	})
}
