package output

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// lendAll sends what a log has, by reference, to a client who does not read it yet.
func lendAll(t *testing.T, log *Log, reader *Reader) (conn *net.TCPConn, client net.Conn) {
	t.Helper()
	conn, client = connect(t)
	t.Cleanup(func() { _ = conn.Close() })
	socket, err := conn.SyscallConn()
	require.NoError(t, err)
	_, next, _ := reader.Bounds()
	for at := int64(0); at < next; {
		n, err := reader.SendTo(socket, at, next-at)
		require.NoError(t, err)
		at += n
	}
	require.Equal(t, next, log.lent.Load(), "it was sent by reference")
	return conn, client
}

// What a client has not read yet is what was sent, however often the log is written
// round meanwhile, and readers go on in the log's new file.
func TestWhatWasLentIsNotWrittenOver(t *testing.T) {
	for _, copies := range []bool{false, true} {
		store := newStore(t, 256<<10)
		log := newLog(t, store)
		data := numbered(200_000)
		const sent = 150_000
		feedBy(t, log, copies, data[:sent])
		reader, err := log.Open()
		require.NoError(t, err)
		conn, client := lendAll(t, log, reader)

		for at := sent; at < len(data); at += 50_000 {
			feedBy(t, log, copies, data[at:min(at+50_000, len(data))])
			first, next, _ := reader.Bounds()
			got := make([]byte, next-first)
			_, err := reader.ReadAt(got, first)
			require.NoError(t, err)
			require.Equal(t, string(data[first:next]), string(got))
		}
		socket, err := conn.SyscallConn()
		require.NoError(t, err)
		_, err = reader.SendTo(socket, sent, 1)
		require.ErrorIs(t, err, ErrDropped)
		first, _, _ := reader.Bounds()
		n, err := reader.SendTo(socket, first, 1000)
		require.NoError(t, err)
		require.Zero(t, log.lent.Load(), "behind a drop nothing is lent")
		require.NoError(t, conn.CloseWrite())
		got, err := io.ReadAll(client)
		require.NoError(t, err)
		require.Equal(t, string(data[:sent])+string(data[first:first+n]), string(got))

		log.End()
		require.NoError(t, reader.Close())
		_, dropped := log.Size()
		require.Equal(t, string(data[dropped:]), text(t, log, 8<<20))
		require.Empty(t, log.Loss())
		entries, err := os.ReadDir(store.path)
		require.NoError(t, err)
		for _, entry := range entries { // the others are empty ones, made ahead
			info, err := entry.Info()
			require.NoError(t, err)
			require.True(t, info.Size() == 0 || entry.Name() == filepath.Base(path(log)) || strings.HasSuffix(entry.Name(), slotsSuffix), entry.Name())
		}
	}
}

// On a full disk the newest is kept, and what was lent is what it was.
func TestWhatWasLentStaysOnAFullDisk(t *testing.T) {
	dir := fullDisk(t, 2<<20)
	store, err := NewStore(Config{Dir: filepath.Join(dir, "output"), MaxBytes: 512 << 10})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	log := newLog(t, store)
	data := numbered(200_000)
	const sent = 300_000
	feed(t, log, data[:sent])
	reader, err := log.Open()
	require.NoError(t, err)
	defer func() { require.NoError(t, reader.Close()) }()
	conn, client := lendAll(t, log, reader)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ballast"), make([]byte, 1<<20), 0o600))

	feed(t, log, data[sent:])
	require.NoError(t, conn.CloseWrite())
	got, err := io.ReadAll(client)
	require.NoError(t, err)
	require.Equal(t, string(data[:sent]), string(got))
	written, dropped := log.Size()
	require.EqualValues(t, len(data), written)
	kept := text(t, log, 8<<20)
	require.NotEmpty(t, kept)
	require.Equal(t, string(data[dropped:]), kept)
	log.End()
	require.Equal(t, kept, text(t, log, 8<<20))
}

// Where no new file can be made, new bytes are lost and said to be, until one can.
func TestWhatWasLentStaysWithoutANewFile(t *testing.T) {
	store := newStore(t, 256<<10)
	log := newLog(t, store)
	data := numbered(100_000)
	const sent = 200_000
	feed(t, log, data[:sent])
	reader, err := log.Open()
	require.NoError(t, err)
	defer func() { require.NoError(t, reader.Close()) }()
	conn, client := lendAll(t, log, reader)
	next := store.seq.Load() + 1
	for n := range uint64(5) {
		require.NoError(t, os.WriteFile(filepath.Join(store.path, store.name(next+n, logSuffix)), nil, 0o600))
	}

	feed(t, log, data[sent:])
	require.NoError(t, conn.CloseWrite())
	got, err := io.ReadAll(client)
	require.NoError(t, err)
	require.Equal(t, string(data[:sent]), string(got))
	written, dropped := log.Size()
	require.EqualValues(t, len(data), written)
	require.Contains(t, log.Loss(), "exists")
	kept := text(t, log, 8<<20)
	require.NotEmpty(t, kept)
	require.Equal(t, string(data[dropped:]), kept)
}
