package output

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// path is where a log's file lies.
func path(log *Log) string {
	return filepath.Join(log.store.path, log.store.name(log.seq, logSuffix))
}

// broken is a pump of a log whose file takes no writes until it is mended.
type broken struct {
	t    *testing.T
	pump *pump
	good *os.File
}

func breakFile(t *testing.T, log *Log) *broken {
	t.Helper()
	bad, err := os.Open(path(log)) // EBADF is to a write what EIO is
	require.NoError(t, err)
	t.Cleanup(func() { _ = bad.Close() })
	return &broken{t: t, pump: &pump{log: log, file: bad, left: -1}, good: log.file}
}

func (b *broken) mend() { b.pump.file = b.good }

func (b *broken) feed(data string) {
	b.t.Helper()
	r, w := newPipe(b.t)
	go func() { _, _ = w.WriteString(data); _ = w.Close() }()
	conn, err := r.SyscallConn()
	require.NoError(b.t, err)
	for b.pump.eof = false; !b.pump.eof; {
		require.NoError(b.t, conn.Read(b.pump.step))
	}
}

func TestAWriteErrorKeepsWhatWasKept(t *testing.T) {
	var lines bytes.Buffer
	store, err := NewStore(Config{Dir: t.TempDir(), Logger: slog.New(slog.NewTextHandler(&lines, nil))})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	log := newLog(t, store)
	feed(t, log, []byte("kept€"))
	reader, err := log.Open()
	require.NoError(t, err)
	defer func() { require.NoError(t, reader.Close()) }()

	b := breakFile(t, log)
	b.feed("lost")
	b.feed(strings.Repeat("lost too", 50_000))
	const lost = 4 + 400_000
	written, dropped := log.Size()
	require.Equal(t, []int64{7 + lost, lost}, []int64{written, dropped})
	require.EqualValues(t, 7, store.Total())
	require.Equal(t, "bad file descriptor", log.Loss())
	require.Equal(t, 1, strings.Count(lines.String(), "\n"), "one line a log: %s", lines.String())

	page, err := log.Page(0, 100)
	require.NoError(t, err)
	require.Equal(t, Page{Text: "kept€", NextOffset: 7, Dropped: lost}, page)
	page, err = log.Page(page.NextOffset, 100)
	require.NoError(t, err)
	require.Equal(t, Page{Offset: written, NextOffset: written, Dropped: lost}, page, "whoever comes to the end is told how much is gone")
	for _, behind := range []int64{8, written - 1, written} {
		page, err = log.Page(behind, 100)
		require.NoError(t, err)
		require.Equal(t, written, page.Offset)
	}
	_, err = log.Page(written+1, 100)
	require.ErrorIs(t, err, ErrBeyond)
	first, next, ended := reader.Bounds()
	require.Equal(t, []any{int64(0), int64(7), false}, []any{first, next, ended})
	waits := reader.Grown(7)
	select {
	case <-waits:
		t.Fatal("a follower of kept bytes waits until the disk takes them again")
	case <-log.Grown(7): // but the log has grown
	}

	b.mend()
	b.feed("again")
	<-waits
	first, next, _ = reader.Bounds()
	require.Equal(t, []int64{written, written + 5}, []int64{first, next})
	_, err = reader.ReadAt(make([]byte, 5), 7)
	require.ErrorIs(t, err, ErrDropped)
	require.Equal(t, "again", text(t, log, 100))
	after, dropped := log.Size()
	require.Equal(t, []int64{written + 5, written}, []int64{after, dropped})
	require.EqualValues(t, 5, store.Total())
	log.End()
	require.Equal(t, "again", text(t, log, 2))
}

func TestAnEndDuringAFaultKeepsWhatWasKept(t *testing.T) {
	log := newLog(t, newStore(t, 0))
	feed(t, log, []byte("kept\xe2\x82"))
	b := breakFile(t, log)
	b.feed("\xaclost")
	log.End()
	page, err := log.Page(0, 100)
	require.NoError(t, err)
	require.Equal(t, Page{Text: "kept\uFFFD", NextOffset: 11, Dropped: 5, End: true}, page, "the rest of the character is lost")
	page, err = log.Page(0, 4)
	require.NoError(t, err)
	require.Equal(t, Page{Text: "kept", NextOffset: 4, Dropped: 5}, page)
	page, err = log.Page(6, 100)
	require.NoError(t, err)
	require.Equal(t, Page{Offset: 11, NextOffset: 11, Dropped: 5, End: true}, page)
	reader, err := log.Open()
	require.NoError(t, err)
	defer func() { require.NoError(t, reader.Close()) }()
	all, err := io.ReadAll(io.NewSectionReader(reader, 0, 100))
	require.NoError(t, err)
	require.Equal(t, "kept\xe2\x82", string(all))
	require.NotNil(t, reader.File())
}

// TestAFaultAtTheBound: tries that fail cost the kept bytes no more than once.
func TestAFaultAtTheBound(t *testing.T) {
	log := newLog(t, newStore(t, 64<<10))
	data := numbered(10_000)
	feed(t, log, data)
	b := breakFile(t, log)
	for range 100 {
		b.feed("lost")
	}
	kept := text(t, log, 1<<20)
	require.Greater(t, len(kept), 60<<10)
	require.True(t, strings.HasSuffix(string(data), kept))
	b.mend()
	b.feed(string(data))
	kept = text(t, log, 1<<20)
	require.Greater(t, len(kept), 60<<10)
	require.True(t, strings.HasSuffix(string(data), kept), "the newest, in its place")
}

// TestWhereNothingIsTakenBack fills a disk whose file system refuses holes: the log
// goes on in the room that it has.
func TestWhereNothingIsTakenBack(t *testing.T) {
	for _, copies := range []bool{false, true} {
		store, err := NewStore(Config{Dir: fullDisk(t, 1<<20)})
		require.NoError(t, err)
		store.punch = func(int, int64, int64) error { return unix.EOPNOTSUPP }
		log, err := store.Create()
		require.NoError(t, err)
		data := numbered(300_000)
		feedBy(t, log, copies, data)
		written, dropped := log.Size()
		require.EqualValues(t, len(data), written)
		require.Equal(t, "no space left on device", log.Loss())
		kept := text(t, log, 8<<20)
		require.Greater(t, len(kept), 512<<10)
		require.Equal(t, string(data[dropped:]), kept)
		log.End()
		require.Equal(t, string(data[dropped:]), text(t, log, 8<<20))
		require.NoError(t, store.Close())
	}
}

func TestBoundWithoutHoles(t *testing.T) {
	dir := t.TempDir()
	if err := mountRAM(dir); err != nil {
		t.Skipf("no file system without holes to be had: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, unmount(dir)) })
	require.ErrorIs(t, func() error {
		file, err := os.Create(filepath.Join(dir, "probe"))
		require.NoError(t, err)
		defer func() { _ = file.Close() }()
		return punch(int(file.Fd()), 0, 4096)
	}(), unix.EOPNOTSUPP)
	store, err := NewStore(Config{Dir: dir, MaxBytes: 1 << 20})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	log := newLog(t, store)
	data := numbered(1_000_000)
	feed(t, log, data)
	written, dropped := log.Size()
	require.EqualValues(t, len(data), written)
	require.LessOrEqual(t, written-dropped, int64(1<<20))
	require.Equal(t, string(data[dropped:]), text(t, log, 8<<20))
	info, err := os.Stat(path(log))
	require.NoError(t, err)
	require.LessOrEqual(t, info.Size(), int64(1<<20))
	require.Empty(t, log.Loss())
}

// TestK6 is a state directory of 4 MB.
func TestK6(t *testing.T) {
	dir := fullDisk(t, 4<<20)
	store, err := NewStore(Config{Dir: filepath.Join(dir, "output")})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	log := newLog(t, store)
	feed(t, log, make([]byte, 5_000_000), []byte("rc=0\n")) // the work neither blocks nor dies
	log.End()
	written, dropped := log.Size()
	require.EqualValues(t, 5_000_005, written)
	require.Positive(t, dropped)
	require.Equal(t, "no space left on device", log.Loss())
	require.True(t, strings.HasSuffix(text(t, log, 8<<20), "rc=0\n"))

	ballast := filepath.Join(dir, "ballast")
	_ = os.WriteFile(ballast, make([]byte, 4<<20), 0o600) // as much as fits
	for range 2 * spareCount {
		if _, err = store.Create(); err != nil {
			break
		}
	}
	require.ErrorIs(t, err, unix.ENOSPC)

	require.NoError(t, os.Remove(ballast))
	next := newLog(t, store)
	feed(t, next, []byte("again\n"))
	next.End()
	require.Equal(t, "again\n", text(t, next, 100))
	require.Empty(t, next.Loss())
}

// TestAFullDiskIsSharedAndHeals: who meets a full disk leaves room for others, and
// keeps as much as before when there is room again.
func TestAFullDiskIsSharedAndHeals(t *testing.T) {
	dir := fullDisk(t, 4<<20)
	store, err := NewStore(Config{Dir: filepath.Join(dir, "output"), MaxBytes: 2 << 20})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	ballast := filepath.Join(dir, "ballast")
	require.NoError(t, os.WriteFile(ballast, make([]byte, 3<<20), 0o600))
	log, other := newLog(t, store), newLog(t, store)
	p := &pump{log: log, file: log.file, left: -1}
	b := &broken{t: t, pump: p, good: log.file}
	data := string(numbered(1_000_000))
	for range 5 {
		b.feed(data)
		feed(t, other, []byte("me too\n"))
	}
	require.NotEmpty(t, log.Loss())
	require.Empty(t, other.Loss())
	written, dropped := log.Size()
	require.Less(t, written-dropped, int64(1<<20))
	require.Greater(t, written-dropped, int64(1<<18))

	require.NoError(t, os.Remove(ballast))
	b.feed(data)
	written, dropped = log.Size()
	require.Greater(t, written-dropped, int64(2<<20-2<<20/16))
	require.True(t, strings.HasSuffix(data, text(t, log, 8<<20)))
}
