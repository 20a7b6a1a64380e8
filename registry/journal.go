package registry

import (
	"context"
	"encoding/json"
	"time"
)

// Journal keeps what must outlive the daemon: rows by key, of which the newest
// counts. It is safe for concurrent use.
type Journal interface {
	// Load gives all rows. It is called once, before the first Append.
	Load(ctx context.Context) (Memory, error)
	// Append hands rows over, to be written in this order and all of one call
	// together or not at all. It does not touch the disk and does not block, so that
	// it may be called with a lock held: what is known under the lock is written in
	// the order of the lock. Rows that can't be written stay in line until they can.
	Append(rows ...Row) Mark
	// Sync blocks until everything up to mark is written: it survives the end of the
	// process, and that of the machine if the journal was told to wait for the disk.
	// While the journal can't be written it returns at once with
	// [CodeInsufficientStorage] and the reason.
	Sync(ctx context.Context, mark Mark) error
	// Check says why nothing can be written now; nil if it can. In trouble it tries
	// first whether that is over, which may take a moment.
	Check() error
}

// Mark is a place in the order of rows. The zero Mark is always written.
type Mark uint64

// Row is one of [TaskRow], [AgentRow], [KeyRow], [CounterRow] and their ends,
// [TaskGone], [AgentGone], [KeyGone].
type Row interface{ row() }

// Memory is what a journal remembers: tasks and agents in order of Seq, keys in that of At.
type Memory struct {
	Tasks    []TaskRow
	Agents   []AgentRow
	Keys     []KeyRow
	Counters []CounterRow
}

// TaskRow is one task, under its id.
type TaskRow struct {
	// Seq is the order of registration, among tasks and agents.
	Seq uint64
	// Snapshot is the committed state; its sizes are those of the last commit.
	Snapshot Snapshot
	// Cursor and StderrCursor are where the next consuming read begins.
	Cursor, StderrCursor int64
	// Announced says that the listeners have heard the end as a notice: its row is
	// appended behind theirs.
	Announced bool
	// Output is the final output of a task without a stream.
	Output string
	// Handle is what the producer needs to give the run back; see [Kept]. Appended as nil
	// it stays as it was, in the row of this id that is there or before it in line; empty
	// and not nil there is none from then on.
	Handle json.RawMessage
}

// AgentRow is one live agent, under its owner.
type AgentRow struct {
	// Seq is also the Incarnation of the owner.
	Seq   uint64
	Owner Owner
	Label string
	Lease time.Duration
	// Ending says that its end has begun; [AgentGone] comes when it is over.
	Ending bool
}

// KeyRow is one remembered idempotency key, under session, subject and key.
type KeyRow struct {
	Session, Subject, Key string
	Fingerprint           [32]byte
	ID                    ID
	At                    time.Time
}

// CounterRow is the newest number that was shown, of a kind or of agents; without a
// kind, the highest Seq of what was removed.
type CounterRow struct {
	Kind Kind
	Last uint64
}

// TaskGone removes a task; one that is not there is no error.
type TaskGone struct{ ID ID }

// AgentGone removes an agent, as [TaskGone] does a task.
type AgentGone struct{ Owner Owner }

// KeyGone removes a key, as [TaskGone] does a task.
type KeyGone struct{ Session, Subject, Key string }

func (TaskRow) row()    {}
func (AgentRow) row()   {}
func (KeyRow) row()     {}
func (CounterRow) row() {}
func (TaskGone) row()   {}
func (AgentGone) row()  {}
func (KeyGone) row()    {}

// Kept is a [Run] that its producer can give back after the daemon's end.
type Kept interface {
	// Handle is asked at publication and again at the end. It does not block.
	Handle() (json.RawMessage, error)
}

// Restorer is a [Producer] whose runs are [Kept].
type Restorer interface {
	// Restore gives the run of a handle back as one that has ended: its output can be
	// read and discarded. An error means that nothing of it is left to read.
	Restore(handle json.RawMessage) (Run, error)
}

// Movable is a live, [Kept] Run that can go on under another image of this
// process: exec keeps its number, its children and the descriptors it is told to.
type Movable interface {
	Kept
	// HandOver stops attending to the run, as far as it takes a moment, and gives
	// what [Adopter] needs to go on. The descriptors that it names stay open across an
	// exec. No end is reported meanwhile, and none is lost: it waits for who attends next.
	HandOver() (json.RawMessage, error)
	// TakeBack undoes HandOver, because there was no exec.
	TakeBack()
}

// Adopter is a [Restorer] that goes on with runs that were handed over.
type Adopter interface {
	Restorer
	// Adopt goes on with a run under its id. It is called before anything is started,
	// once for each run that was handed over.
	Adopt(handle json.RawMessage, launch Launch) (Run, error)
}
