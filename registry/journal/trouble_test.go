package journal

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"afoot/registry"
)

// lines collects what is logged.
type lines struct {
	mu  sync.Mutex
	got []string
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.got = append(l.got, string(p))
	return len(p), nil
}

func (l *lines) count(word string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.got {
		if strings.Contains(line, word) {
			n++
		}
	}
	return n
}

// troubled gives a journal whose file layer can be told to fail, and its log.
func troubled(t *testing.T) (*Journal, *tampered, *lines) {
	t.Helper()
	log, layer := &lines{}, &tampered{}
	j, err := open(Config{Path: at(t), Logger: slog.New(slog.NewTextHandler(log, nil))}, layer.over, schema())
	require.NoError(t, err)
	t.Cleanup(func() { shut(t, j) })
	return j, layer, log
}

func failWith(err error, ops ...string) func(string, string) error {
	return func(op, path string) error {
		if slices.Contains(ops, op) {
			return &fs.PathError{Op: op, Path: path, Err: err}
		}
		return nil
	}
}

func TestTroubleIsToldAndHeals(t *testing.T) {
	for name, c := range map[string]struct {
		fail   func(string, string) error
		reason string
	}{
		"error of the device":  {failWith(syscall.EIO, "write"), "input/output error"},
		"nothing works":        {failWith(syscall.EIO, "write", "open", "cut", "sync"), "input/output error"},
		"read-only":            {failWith(syscall.EROFS, "write"), "read-only file system"},
		"read-only, all of it": {failWith(syscall.EROFS, "write", "open"), "read-only file system"},
		"quota":                {failWith(syscall.EDQUOT, "write"), "disk quota exceeded"},
		"full":                 {failWith(syscall.ENOSPC, "write"), "no space left on device"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j, layer, log := troubled(t)
				synced(t, j, task(1))
				require.NoError(t, j.Check())

				layer.set(c.fail)
				called := false
				j.Notices().Put("s", 1, NoticeRow{}, func() { called = true })
				err := j.Sync(t.Context(), j.Append(task(2)))
				require.Equal(t, registry.CodeInsufficientStorage, registry.CodeOf(err))
				require.ErrorContains(t, err, "the journal cannot be written: "+c.reason)
				require.ErrorContains(t, j.Check(), "the journal cannot be written: "+c.reason, "it was tried again")
				mark := j.Append(task(3), registry.TaskGone{ID: "bash-1"})
				require.ErrorContains(t, j.Sync(t.Context(), mark), c.reason, "at once")
				require.NoError(t, j.Sync(t.Context(), 1), "what is written stays so")
				require.True(t, j.Stats().InTrouble)
				time.Sleep(time.Minute) // many tries
				require.Equal(t, registry.CodeInsufficientStorage, registry.CodeOf(j.Sync(t.Context(), mark)))
				require.Equal(t, 1, log.count("journal in trouble"))
				require.False(t, called)

				layer.set(nil)
				time.Sleep(lastTry)
				synctest.Wait()
				require.NoError(t, j.Check())
				require.NoError(t, j.Sync(t.Context(), mark))
				require.True(t, called)
				require.Equal(t, []registry.TaskRow{task(2), task(3)}, memory(t, j).Tasks)
				require.Equal(t, 1, log.count("journal in trouble"))
				require.Equal(t, 1, log.count("journal healed"))
				require.Zero(t, j.Stats().Queue)
			})
		})
	}
}

func TestPokeHealsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, layer, _ := troubled(t)
		layer.set(failWith(syscall.EIO, "write"))
		mark := j.Append(task(1))
		require.Error(t, j.Sync(t.Context(), mark))
		time.Sleep(time.Minute) // so that the next try is far
		layer.set(nil)
		begun := time.Now()
		j.Poke()
		synctest.Wait()
		require.NoError(t, j.Sync(t.Context(), mark))
		require.NoError(t, j.Check())
		require.Zero(t, time.Since(begun))
	})
}

func TestWhoAsksHasTheTroubleTried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, layer, _ := troubled(t)
		layer.set(failWith(syscall.EIO, "write"))
		mark := j.Append(task(1))
		require.Error(t, j.Sync(t.Context(), mark))
		time.Sleep(time.Minute) // so that the next try is far
		layer.set(nil)
		begun := time.Now()
		require.NoError(t, j.Check())
		require.NoError(t, j.Sync(t.Context(), mark))
		require.Zero(t, time.Since(begun))
	})
}

// The line holds one change per key, however long the trouble is.
func TestLineIsBoundedByKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // no time passes, so that nothing is tried meanwhile
		j, layer, _ := troubled(t)
		layer.set(failWith(syscall.EIO, "write"))
		require.Error(t, j.Sync(t.Context(), j.Append(task(1))))
		for n := range uint64(10_000) {
			r := task(1 + n%5)
			r.Cursor = int64(n)
			j.Append(r)
			j.Notices().Put("s", n+1, NoticeRow{}, nil)
			j.Notices().Gone("s", []uint64{n + 1}, nil)
		}
		require.Equal(t, 5+1, j.Stats().Queue, "five tasks and the mark of the session")
		layer.set(nil)
		require.NoError(t, j.Check())
		require.NoError(t, j.Sync(t.Context(), j.Append()))
		require.Equal(t, int64(9999), memory(t, j).Tasks[4].Cursor)
	})
}

// A log that cannot be moved into the database refuses starts; rows are still
// written.
func TestLogThatCannotBeMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, layer, log := troubled(t)
		synced(t, j, task(1))
		layer.set(failWith(syscall.EIO, "sync"))
		time.Sleep(restAfter)
		synctest.Wait()
		require.ErrorContains(t, j.Check(), "input/output error")
		synced(t, j, task(2))
		layer.set(nil)
		time.Sleep(lastTry)
		synctest.Wait()
		require.NoError(t, j.Check())
		require.Len(t, memory(t, j).Tasks, 2)
		require.Equal(t, 1, log.count("journal in trouble"))
		require.Equal(t, 1, log.count("journal healed"))
	})
}

func TestLogDoesNotGrowForEver(t *testing.T) {
	path := at(t)
	j := opened(t, Config{Path: path})
	r := task(1)
	for n := range 300 {
		r.Output = strings.Repeat(string(rune('a'+n%26)), 200_000) // 50 pages
		synced(t, j, r)
	}
	require.Less(t, stateSize(t, path+walSuffix), int64(2*muchWAL*4096))
	require.Less(t, stateSize(t, path), int64(4<<20))
}

func TestSyncEndsWithItsContext(t *testing.T) {
	j, layer, _ := troubled(t)
	hang := make(chan struct{})
	layer.set(func(string, string) error { <-hang; return nil })
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error)
	mark := j.Append(task(1))
	go func() { result <- j.Sync(ctx, mark) }()
	cancel()
	require.ErrorIs(t, <-result, context.Canceled)
	close(hang)
	layer.set(nil)
	require.NoError(t, j.Sync(t.Context(), mark))
}

func TestCloseInTroubleSaysWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		layer := &tampered{}
		path := at(t)
		j, err := open(Config{Path: path}, layer.over, schema())
		require.NoError(t, err)
		synced(t, j, task(1))
		layer.set(failWith(syscall.EIO, "write"))
		j.Append(task(2), task(3))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		err = j.Close(ctx)
		require.ErrorContains(t, err, "2 rows were not written")
		require.ErrorIs(t, err, syscall.EIO)
		require.Equal(t, []registry.TaskRow{task(1)}, memory(t, opened(t, Config{Path: path})).Tasks)
	})
}

func TestCloseWaitsForHealing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		layer := &tampered{}
		path := at(t)
		j, err := open(Config{Path: path}, layer.over, schema())
		require.NoError(t, err)
		layer.set(failWith(syscall.EIO, "write"))
		require.Error(t, j.Sync(t.Context(), j.Append(task(2))))
		time.AfterFunc(time.Second, func() { layer.set(nil) })
		require.NoError(t, j.Close(t.Context()))
		require.Len(t, memory(t, opened(t, Config{Path: path})).Tasks, 1)
	})
}

func TestStorageErrorNamesTheReasonAlone(t *testing.T) {
	err := storageError(errors.Join(errors.New("sqlite3: disk I/O error"), &fs.PathError{Op: "write", Path: "/secret", Err: syscall.EIO}))
	var e *registry.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, "the journal cannot be written: input/output error", e.Message)
}
