package output

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// later is a store on the same directory, as another process would have it.
func later(t testing.TB, store *Store) *Store {
	t.Helper()
	dir, err := os.Open(store.path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = dir.Close() })
	s := &Store{dir: dir, path: store.path, max: store.max, era: &era{prefix: "later-"}, logger: slog.New(slog.DiscardHandler), closed: make(chan struct{})}
	close(s.closed)
	s.pieces.New = func() any { return new(piece) }
	s.budget.bound = DefaultTotalBytes
	t.Cleanup(s.closeEras)
	return s
}

func handleOf(t testing.TB, log *Log) json.RawMessage {
	t.Helper()
	data, err := log.Handle()
	require.NoError(t, err)
	return data
}

func reopen(t testing.TB, store *Store, handle json.RawMessage) *Log {
	t.Helper()
	log, err := store.Reopen(handle)
	require.NoError(t, err)
	return log
}

// What a live log has in its file is there after a crash, also what the pump had not
// counted yet.
func TestAReopenedLogHasAllThatIsInItsFile(t *testing.T) {
	store := newStore(t, 0)
	log := newLog(t, store)
	handle := handleOf(t, log)
	feed(t, log, []byte("counted"))
	file, err := os.OpenFile(path(log), os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	_, err = file.WriteString(", and moved")
	require.NoError(t, err)
	require.NoError(t, file.Close())

	next := later(t, store)
	again := reopen(t, next, handle)
	require.Equal(t, "counted, and moved", text(t, again, 100))
	require.EqualValues(t, 18, next.Total())
	select {
	case <-again.Grown(100):
	default:
		t.Fatal("it has ended")
	}
	require.Equal(t, "counted, and moved", text(t, reopen(t, later(t, store), handleOf(t, again)), 100), "a handle of it is as good")
	require.NoError(t, again.Remove())
	require.Zero(t, next.Total())
	require.NoFileExists(t, path(log))
}

// A file that was given back empty belongs to the next log, in whatever order handles
// are asked for, and however the process dies.
func TestAReopenedLogNeverHasAnothersBytes(t *testing.T) {
	store := newStore(t, 0)
	empty := newLog(t, store)
	handle := handleOf(t, empty)
	require.Empty(t, text(t, reopen(t, later(t, store), handle), 10))
	empty.End()
	require.Empty(t, text(t, reopen(t, later(t, store), handle), 10), "before another has it")

	next := newLog(t, store)
	for next.seq != seqOf(t, handle) {
		next = newLog(t, store)
	}
	feed(t, next, []byte("another's"))
	crashed := later(t, store)
	old := reopen(t, crashed, handle)
	require.Empty(t, text(t, old, 10), "the other had no handle yet")
	require.NoError(t, old.Remove())
	require.FileExists(t, path(next))
	require.Equal(t, "another's", text(t, reopen(t, crashed, handleOf(t, next)), 10))
	require.JSONEq(t, `{"ended":true}`, string(handleOf(t, empty)))
	require.Empty(t, text(t, reopen(t, crashed, handleOf(t, empty)), 10))
	next.End()
	require.Equal(t, "another's", text(t, reopen(t, later(t, store), handleOf(t, next)), 10))

	// Without what was noted there is no telling.
	require.NoError(t, os.Remove(filepath.Join(store.path, store.era.prefix+slotsSuffix)))
	live := strings.Replace(string(handleOf(t, next)), `"ended":true,`, "", 1)
	_, err := later(t, store).Reopen(json.RawMessage(live))
	require.ErrorContains(t, err, "not noted")
}

func seqOf(t *testing.T, data json.RawMessage) uint64 {
	t.Helper()
	l := &Log{}
	var h handle
	require.NoError(t, json.Unmarshal(data, &h))
	require.NoError(t, l.identify(&Store{era: &era{}, eras: eras{byName: map[string]*era{prefixOf(h.File): {}}}}, &h))
	return l.seq
}

func prefixOf(file string) string { return file[:strings.IndexByte(file, '-')+1] }

// Where nothing can be noted a long log is kept all the same, and after a crash nobody
// takes the bytes of its ring for what they are not.
func TestALogThatCouldNotNoteIsSealed(t *testing.T) {
	store := newStore(t, 1000)
	log := newLog(t, store)
	handle := handleOf(t, log)
	held := store.era.slots.file
	store.era.slots.file = nil
	feed(t, log, numbered(250))
	require.True(t, strings.HasSuffix(string(numbered(250)), text(t, log, 5000)))
	again := reopen(t, later(t, store), handle)
	written, gone := again.Size()
	require.Equal(t, written, gone)
	require.Empty(t, text(t, again, 5000))
	require.NotEmpty(t, again.Loss())

	store.era.slots.file = held
	feed(t, log, numbered(10))
	want := text(t, log, 5000)
	require.True(t, strings.HasSuffix(want, string(numbered(10))))
	require.Equal(t, want, text(t, reopen(t, later(t, store), handle), 5000), "noted as soon as that can be")
	log.End()
	require.Equal(t, want, text(t, reopen(t, later(t, store), handleOf(t, log)), 5000))
}

func TestHandlesThatNameNoLog(t *testing.T) {
	store := newStore(t, 0)
	for _, data := range []string{
		``, `[]`, `{"file":"../x-1","ring":4096}`, `{"file":"x","ring":4096}`, `{"file":"x-0","ring":4096}`, `{"file":"x-1"}`,
		`{"file":"x-1","ring":4096,"ended":true,"written":5,"gone":7}`, `{"file":"x-1","ring":4096,"ended":true,"written":-5}`,
		`{"file":"x-1","ring":4096,"ended":true,"written":5,"first":3}`, `{"file":"x-1","ring":4096,"use":3}`,
	} {
		log, err := store.Reopen(json.RawMessage(data))
		if data == `{"file":"x-1","ring":4096,"use":3}` {
			require.NoError(t, err)
			require.Empty(t, text(t, log, 10), "there is no such file")
			continue
		}
		require.Error(t, err, data)
	}
	require.Zero(t, store.Total())
}

// A sweep leaves what was reopened, what lies aside of it, what is made now, and what is
// nobody's.
func TestSweepRemovesWhatNobodyWasToldOf(t *testing.T) {
	dir := t.TempDir()
	first, err := NewStore(Config{Dir: dir, MaxBytes: 100})
	require.NoError(t, err)
	kept, lost := newLog(t, first), newLog(t, first)
	require.NoError(t, kept.WriteAside([]byte("aside")))
	require.NoError(t, lost.WriteAside([]byte("aside")))
	feed(t, kept, numbered(300))
	feed(t, lost, numbered(300))
	keptPath, lostPath := path(kept), path(lost)
	handle := handleOf(t, kept)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "strange"), nil, 0o600))

	second, err := NewStore(Config{Dir: dir, MaxBytes: 100})
	require.NoError(t, err)
	again := reopen(t, second, handle)
	own := newLog(t, second)
	feed(t, own, numbered(300))
	removed, err := second.Sweep()
	require.NoError(t, err)
	require.Equal(t, 1, removed, "logs, and not what was made ahead")
	require.FileExists(t, keptPath)
	require.NoFileExists(t, lostPath)
	require.NoFileExists(t, strings.TrimSuffix(lostPath, logSuffix)+asideSuffix)
	require.FileExists(t, filepath.Join(dir, "strange"))
	require.Equal(t, text(t, kept, 1000), text(t, again, 1000))
	require.Contains(t, text(t, own, 1000), "000000299")
	aside, err := again.ReadAside()
	require.NoError(t, err)
	require.Equal(t, "aside", string(aside))

	// The next one finds all that is still wanted, and what it is noted in.
	third, err := NewStore(Config{Dir: dir, MaxBytes: 100})
	require.NoError(t, err)
	require.Equal(t, text(t, kept, 1000), text(t, reopen(t, third, handle), 1000))
	require.NoError(t, again.Remove())
	require.NoFileExists(t, keptPath)
	own.End()
	require.NoError(t, own.Remove())
	kept.End()
	lost.End()
	for _, store := range []*Store{first, second, third} {
		require.NoError(t, store.Close())
	}
	fourth, err := NewStore(Config{Dir: dir})
	require.NoError(t, err)
	_, err = fourth.Sweep()
	require.NoError(t, err)
	require.NoError(t, fourth.Close())
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1, "only what is strange is left: %v", entries)
}

// What could not be reopened this time may be the next.
func TestSweepLeavesWhatCouldNotBeReopened(t *testing.T) {
	dir := t.TempDir()
	first, err := NewStore(Config{Dir: dir, MaxBytes: 1000})
	require.NoError(t, err)
	log := newLog(t, first)
	feed(t, log, numbered(300))
	log.End()
	handle, want := handleOf(t, log), text(t, log, 1000)
	slots := filepath.Join(dir, first.era.prefix+slotsSuffix)
	require.NoError(t, first.Close())

	second := later(t, first)
	require.NoError(t, os.Rename(slots, slots+"-"))
	require.NoError(t, os.Symlink("nowhere", slots)) // as good as any fault
	_, err = second.Reopen(handle)
	require.Error(t, err)
	require.NoError(t, os.Rename(slots+"-", slots))
	_, err = second.Sweep()
	require.NoError(t, err)
	require.Equal(t, want, text(t, reopen(t, later(t, second), handle), 1000))
}
