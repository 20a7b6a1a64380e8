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
	held    bool
	changed chan struct{} // closed when something has changed for a Sync that waits
}

// NewJournal makes an empty journal.
func NewJournal() *Journal { return &Journal{disk: newDisk(), changed: make(chan struct{})} }

// Fail makes every write fail from now on; nil heals the journal and writes what is
// in line.
func (j *Journal) Fail(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.fault = err
	if err == nil {
		j.writeLocked(len(j.line))
	}
	j.changeLocked()
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

// Hold makes Sync block on what is not written; nothing is, but by Write, until Release.
func (j *Journal) Hold() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.held = true
}

// Release ends a Hold.
func (j *Journal) Release() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.held = false
	j.changeLocked()
}

// Write writes the first calls of Append that are in line, at most so many.
func (j *Journal) Write(calls int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.fault == nil {
		j.writeLocked(min(calls, len(j.line)))
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
	next := NewJournal()
	next.disk = j.disk.clone()
	for _, rows := range j.line[:min(lucky, len(j.line))] {
		next.disk.put(rows)
	}
	j.dead = true
	j.changeLocked()
	return next
}

// Stored is what a successor would load if the process died now.
func (j *Journal) Stored() registry.Memory {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.disk.memory()
}

// Notes counts the written notes of each task.
func (j *Journal) Notes() map[registry.ID]int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return maps.Clone(j.disk.notes)
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
	defer j.mu.Unlock()
	if f := j.onSync; f != nil && mark > j.written {
		j.mu.Unlock()
		f()
		j.mu.Lock()
	}
	for slow := j.delay; mark > j.written; {
		if fault := j.refusalLocked(); fault != nil {
			return fault
		}
		var wait <-chan struct{}
		var pause <-chan time.Time
		switch {
		case j.held:
			wait = j.changed
		case slow > 0:
			pause = time.After(slow)
			slow = 0
		default:
			j.writeLocked(int(mark - j.written))
			continue
		}
		j.mu.Unlock()
		select {
		case <-wait:
		case <-pause:
		case <-ctx.Done():
			j.mu.Lock()
			return ctx.Err()
		}
		j.mu.Lock()
	}
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
	j.changeLocked()
}

func (j *Journal) changeLocked() {
	close(j.changed)
	j.changed = make(chan struct{})
}

// disk is rows by key, of which the newest counts.
type disk struct {
	tasks    map[registry.ID]registry.TaskRow
	agents   map[registry.Owner]registry.AgentRow
	keys     map[[3]string]registry.KeyRow
	counters map[registry.Kind]registry.CounterRow
	notes    map[registry.ID]int
}

// Note is a row that a listener may append for an end it heard of, as one does that
// keeps its notices in the same journal.
type Note struct {
	registry.TaskGone // for what makes it a row
}

func newDisk() disk {
	return disk{
		tasks: map[registry.ID]registry.TaskRow{}, agents: map[registry.Owner]registry.AgentRow{},
		keys: map[[3]string]registry.KeyRow{}, counters: map[registry.Kind]registry.CounterRow{},
		notes: map[registry.ID]int{},
	}
}

func (d disk) clone() disk {
	return disk{
		tasks: maps.Clone(d.tasks), agents: maps.Clone(d.agents),
		keys: maps.Clone(d.keys), counters: maps.Clone(d.counters),
		notes: maps.Clone(d.notes),
	}
}

func (d disk) put(rows []registry.Row) {
	for _, row := range rows {
		switch r := row.(type) {
		case registry.TaskRow:
			if r.Handle == nil {
				r.Handle = d.tasks[r.Snapshot.ID].Handle
			}
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
		case Note:
			d.notes[r.ID]++
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
