package journal

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"afoot/registry"
)

var _ registry.Journal = (*Journal)(nil)

// Config says where a journal lies and how it is kept.
type Config struct {
	// Path is the database file, made if it is not there. Its directory must exist
	// and belong to the daemon alone.
	Path string
	// Full makes each transaction wait for the disk.
	Full bool
	// Logger hears of trouble, once when it begins and once when it is over; nil for
	// none.
	Logger *slog.Logger
	// Observe, unless nil, is called from the writer's goroutine after each
	// transaction with what it took and how many rows it had, or its error. It must
	// not block.
	Observe func(took time.Duration, rows int, err error)
}

// Journal is an open journal. Its methods are safe for concurrent use. It must be
// closed.
type Journal struct {
	cfg    Config
	log    *slog.Logger
	line   line
	writer writer
	stats  stats

	// refusal, when it holds an error, is what Check says.
	refusal atomic.Pointer[error]

	settingsMu sync.Mutex
	settings   map[string]string

	poke chan struct{}
	jobs chan func()
	// quit carries the context of the first Close.
	quit      chan context.Context
	closeOnce sync.Once
	// back, while the journal is handed over, ends that.
	backMu sync.Mutex
	back   chan struct{}
	// done is closed when the writer has ended, after left is set.
	done chan struct{}
	left error
}

// Append implements [registry.Journal].
func (j *Journal) Append(rows ...registry.Row) registry.Mark {
	l := &j.line
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(rows) == 0 {
		return registry.Mark(l.last)
	}
	for _, row := range rows {
		l.addLocked(row, nil)
	}
	return registry.Mark(l.endLocked())
}

// Sync implements [registry.Journal]. A mark that was never given means the newest.
func (j *Journal) Sync(ctx context.Context, mark registry.Mark) error {
	if uint64(mark) <= j.line.written.Load() {
		return nil
	}
	r, err := j.line.await(uint64(mark))
	if r == nil {
		return err
	}
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Check implements [registry.Journal]. The trouble is tried for at most as long as
// a disk that does not answer may hold its callers up.
func (j *Journal) Check() error {
	if j.refusal.Load() == nil {
		return nil
	}
	tried, asked := make(chan struct{}), time.Now()
	bound := time.NewTimer(checkBound)
	defer bound.Stop()
	select {
	case j.jobs <- func() { j.retry(asked); close(tried) }:
		select {
		case <-tried:
		case <-bound.C:
		}
	case <-j.done:
	case <-bound.C:
	}
	if err := j.refusal.Load(); err != nil {
		return *err
	}
	return nil
}

// Poke makes a journal in trouble try again at once. It does not block.
func (j *Journal) Poke() {
	select {
	case j.poke <- struct{}{}:
	default:
	}
}

// Setting gives the value of a setting, and whether there is one. It does not
// block.
func (j *Journal) Setting(name string) (value string, found bool) {
	j.settingsMu.Lock()
	defer j.settingsMu.Unlock()
	value, found = j.settings[name]
	return value, found
}

// SetSetting sets a setting at once, and puts it in line to be written.
func (j *Journal) SetSetting(name, value string) registry.Mark {
	j.settingsMu.Lock()
	defer j.settingsMu.Unlock()
	j.settings[name] = value
	l := &j.line
	l.mu.Lock()
	defer l.mu.Unlock()
	l.addLocked(setting{name: name, value: value}, nil)
	return registry.Mark(l.endLocked())
}

// Close writes what is in line, moves the log into the database and ends the
// journal. While there is trouble it tries until ctx ends; the error says what was
// left. It returns when the writer has ended or, with ctx's error, when ctx has and
// the disk does not answer. Close is idempotent; what is appended later is lost.
func (j *Journal) Close(ctx context.Context) error {
	j.TakeBack()
	j.closeOnce.Do(func() { j.quit <- ctx })
	select {
	case <-j.done:
		return j.left
	case <-ctx.Done():
	}
	// The writer gives up at this moment too; it has ended unless the disk hangs.
	t := time.NewTimer(time.Second)
	defer t.Stop()
	select {
	case <-j.done:
		return j.left
	case <-t.C:
		return ctx.Err()
	}
}

// do runs a job on the database, from the writer's goroutine.
func (j *Journal) do(ctx context.Context, job func(*db) error) error {
	result := make(chan error, 1)
	task := func() {
		if err := ctx.Err(); err != nil {
			result <- err
			return
		}
		result <- j.withDB(job)
	}
	select {
	case j.jobs <- task:
	case <-j.done:
		return errClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
