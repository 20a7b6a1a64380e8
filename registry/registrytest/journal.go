package registrytest

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"afoot/registry"
)

// Journal is a [registry.Journal] in memory under full control of its case: what is
// appended stays in line until a Sync, or [Journal.Write], writes it, and is lost when
// the case has the process die.
type Journal struct {
	mu      sync.Mutex
	disk    disk
	line    [][]registry.Row
	written registry.Mark
	loaded  bool
	dead    bool
	fault   error
	delay   time.Duration
	onSync  func()
	held    chan struct{} // not nil: Sync blocks until it is closed
	syncs   int
}

// NewJournal makes an empty journal.
func NewJournal() *Journal { return &Journal{disk: newDisk()} }

// Fail makes every write fail from now on; nil heals the journal and writes what is
// in line.
func (j *Journal) Fail(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.fault = err
	if err == nil {
		j.writeLocked(len(j.line))
	}
}

// Delay makes each write take so long.
func (j *Journal) Delay(d time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.delay = d
}

// OnSync is called at the begin of each Sync that has something to wait for.
func (j *Journal) OnSync(f func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.onSync = f
}

// Hold makes Sync block until release is called, which is idempotent.
func (j *Journal) Hold() (release func()) {
	held := make(chan struct{})
	j.mu.Lock()
	defer j.mu.Unlock()
	j.held = held
	return sync.OnceFunc(func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		close(held)
		if j.held == held {
			j.held = nil
		}
	})
}

// Write writes all that is in line, as a writer of its own would at any time.
func (j *Journal) Write() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.fault == nil {
		j.writeLocked(len(j.line))
	}
}

// InLine counts the calls of Append that are not written.
func (j *Journal) InLine() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.line)
}

// Die is the end of the process that uses this journal: what it still does reaches
// nobody. The result is what its successor finds: all that was written, and the first
// lucky calls of Append that were not.
func (j *Journal) Die(lucky int) *Journal {
	j.mu.Lock()
	defer j.mu.Unlock()
	next := &Journal{disk: j.disk.clone()}
	for _, rows := range j.line[:min(lucky, len(j.line))] {
		next.disk.put(rows)
	}
	j.dead = true
	if j.held != nil {
		close(j.held)
		j.held = nil
	}
	return next
}

// Stored is what a successor would load if the process died now.
func (j *Journal) Stored() registry.Memory {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.disk.memory()
}

// Load implements [registry.Journal].
func (j *Journal) Load(context.Context) (registry.Memory, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.loaded || len(j.line) > 0 || j.written > 0 {
		panic("registrytest: a journal is loaded once, before it is used")
	}
	j.loaded = true
	return j.disk.memory(), nil
}

// Append implements [registry.Journal].
func (j *Journal) Append(rows ...registry.Row) registry.Mark {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.loaded {
		panic("registrytest: append before the journal was loaded")
	}
	j.line = append(j.line, slices.Clone(rows))
	return j.written + registry.Mark(len(j.line))
}

// Sync implements [registry.Journal].
func (j *Journal) Sync(ctx context.Context, mark registry.Mark) error {
	j.mu.Lock()
	if mark <= j.written {
		j.mu.Unlock()
		return nil
	}
	j.syncs++
	onSync, delay, held, fault := j.onSync, j.delay, j.held, j.refusalLocked()
	j.mu.Unlock()
	if onSync != nil {
		onSync()
	}
	if fault != nil {
		return fault
	}
	if held != nil {
		select {
		case <-held:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if delay > 0 {
		time.Sleep(delay)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if mark <= j.written {
		return nil
	}
	if fault := j.refusalLocked(); fault != nil {
		return fault
	}
	j.writeLocked(int(mark - j.written))
	return nil
}

// Check implements [registry.Journal].
func (j *Journal) Check() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.refusalLocked()
}

func (j *Journal) refusalLocked() error {
	switch {
	case j.dead:
		return registry.Errorf(registry.CodeUnavailable, "the process is dead")
	case j.fault != nil:
		return registry.Wrap(registry.CodeInsufficientStorage, j.fault, "the journal cannot be written: %v", j.fault)
	}
	return nil
}

func (j *Journal) writeLocked(calls int) {
	if j.dead {
		return
	}
	for _, rows := range j.line[:calls] {
		j.disk.put(rows)
	}
	j.line = j.line[calls:]
	j.written += registry.Mark(calls)
}

// disk is rows by key, of which the newest counts.
type disk struct {
	tasks    map[registry.ID]registry.TaskRow
	agents   map[registry.Owner]registry.AgentRow
	keys     map[[3]string]registry.KeyRow
	counters map[registry.Kind]registry.CounterRow
}

func newDisk() disk {
	return disk{
		tasks: map[registry.ID]registry.TaskRow{}, agents: map[registry.Owner]registry.AgentRow{},
		keys: map[[3]string]registry.KeyRow{}, counters: map[registry.Kind]registry.CounterRow{},
	}
}

func (d disk) clone() disk {
	return disk{
		tasks: maps.Clone(d.tasks), agents: maps.Clone(d.agents),
		keys: maps.Clone(d.keys), counters: maps.Clone(d.counters),
	}
}

func (d disk) put(rows []registry.Row) {
	for _, row := range rows {
		switch r := row.(type) {
		case registry.TaskRow:
			d.tasks[r.Snapshot.ID] = r
		case registry.TaskGone:
			delete(d.tasks, r.ID)
		case registry.AgentRow:
			d.agents[r.Owner] = r
		case registry.AgentGone:
			delete(d.agents, r.Owner)
		case registry.KeyRow:
			d.keys[[3]string{r.Session, r.Subject, r.Key}] = r
		case registry.KeyGone:
			delete(d.keys, [3]string{r.Session, r.Subject, r.Key})
		case registry.CounterRow:
			d.counters[r.Kind] = r
		}
	}
}

func (d disk) memory() registry.Memory {
	return registry.Memory{
		Tasks:    slices.SortedFunc(maps.Values(d.tasks), func(a, b registry.TaskRow) int { return int(a.Seq) - int(b.Seq) }),
		Agents:   slices.SortedFunc(maps.Values(d.agents), func(a, b registry.AgentRow) int { return int(a.Seq) - int(b.Seq) }),
		Keys:     slices.SortedFunc(maps.Values(d.keys), func(a, b registry.KeyRow) int { return a.At.Compare(b.At) }),
		Counters: slices.Collect(maps.Values(d.counters)),
	}
}
