package registry

import (
	"context"
	"encoding/json"
	"math"
	"time"
)

// Service is the authority over tasks. Every method is safe for concurrent use;
// none calls foreign code (producers, listeners) with a lock held.
//
// Ended tasks are kept within bounds of number, age and room, and evicted beyond
// them ([ChangeEvicted]): never a live one, one of which something still lives, or one
// whose answer or notice is on its way; an unreported one last. A start whose idempotency
// key names an evicted task is [CodeGone].
//
// Common refusals: [CodeUnknownTask] for an id that never was, [CodeGone] for one
// whose record was removed, [CodeForeignTask] for another session's task,
// [CodeUnknownAgent], [CodeForeignAgent] and [CodeGone] for the caller's agent.
type Service interface {
	Tasks
	Agents
	Attachments

	// Close cancels all live tasks, waits until they have settled or their
	// teardown bound is over, and announces nothing. It removes no record. Foreground
	// tasks become background ones, for their calls end too: what it ends is not
	// reported. It is idempotent; it returns ctx's error if that ends first, and goes on all the same.
	// Start is refused with [CodeUnavailable] from the moment it is called; blocked
	// waits return with what is. A wait that begins later ends with its task, or with the
	// closing.
	Close(ctx context.Context) error
}

// Tasks are the verbs on tasks.
type Tasks interface {
	// Start checks everything, then runs the producer's starter once and publishes
	// the task. If ctx is cancelled before the starter ran, nothing starts and ctx's
	// error is returned; afterwards cancelling changes nothing. While a task can't be
	// written down it is [CodeInsufficientStorage], and what had begun is taken back.
	Start(ctx context.Context, caller Caller, req StartRequest) (Started, error)
	// Get looks at one task and consumes nothing.
	Get(ctx context.Context, caller Caller, id ID) (Snapshot, error)
	// Describe is Get with the request and the number of blocked waits.
	Describe(ctx context.Context, caller Caller, id ID) (Description, error)
	// List gives the caller's own and unowned tasks in registration order.
	List(ctx context.Context, caller Caller, opts ListOptions) (List, error)
	// Read is the consuming read. It blocks while opts.Wait says so, and for its
	// turn among the reads of the task. Nothing moves before [Delivery.Confirm].
	// The caller must end the delivery, else further reads of the task starve.
	Read(ctx context.Context, caller Caller, id ID, opts ReadOptions) (*Delivery, error)
	// Look reads from an explicit offset, or [AtCursor]. It moves no cursor and marks
	// nothing; with opts.Wait it waits for bytes beyond the offset, or the end.
	Look(ctx context.Context, caller Caller, id ID, offset int64, opts LookOptions) (Read, error)
	// Ack commits what an explicit read handed out, up to nextOffset. Below the
	// cursor it changes nothing; beyond what was handed out it is [CodeInvalid];
	// with nothing outstanding it is [CodeConflict]. The nextOffset of a split task
	// counts standard output. The piece of standard error commits with it, once all
	// that was handed out is acked; of two reads with one nextOffset it is the lesser
	// piece, so that nothing is lost. An ended task stays for its ack for [AckHold] at
	// least; afterwards it may be evicted, and its ack is [CodeGone].
	Ack(ctx context.Context, caller Caller, id ID, nextOffset int64) error
	// OpenLog opens the raw output of one stream, as [LookOptions.Stream] names it.
	// [CodeConflict] for a final-output task.
	OpenLog(ctx context.Context, caller Caller, id ID, stream string) (RawLog, error)
	// Input writes to a live task and with last closes its input behind data: see
	// [Input.Input]. It blocks up to ctx, and returns when the task ends meanwhile.
	// [CodeConflict] for a task that has ended or takes no input.
	Input(ctx context.Context, caller Caller, id ID, data []byte, last bool) (InputResult, error)
	// Signal sends a signal to a live task: see [Signaller.Signal]. [CodeConflict] for
	// a task that has ended or takes no signals.
	Signal(ctx context.Context, caller Caller, id ID, name string) error
	// Answered reports whether the end of a task was delivered, and whether an answer
	// with it is on its way: what the events about them tell, but at once. Both are false
	// of a task that is not there. It does not block.
	Answered(id ID) (delivered, underway bool)
	// Kill asks the task to end and marks it reported at once. It consumes no output.
	Kill(ctx context.Context, caller Caller, id ID, reason string) (KillOutcome, Snapshot, error)
	// Purge removes the record and the stored output of a finished task;
	// [CodeConflict] for a live one.
	Purge(ctx context.Context, caller Caller, id ID) error
}

// Agents are the verbs on live owners.
type Agents interface {
	// OpenAgent makes a new agent in the caller's session. A caller without a
	// session is [CodeForbidden]; a full session is [CodeLimitReached].
	OpenAgent(ctx context.Context, caller Caller, opts AgentOptions) (Agent, error)
	// ListAgents gives the session's live agents in order of their making.
	ListAgents(ctx context.Context, caller Caller) ([]Agent, error)
	// Act proves that the caller's agent is live and holds its lease until release
	// is called, from which moment the lease runs anew. Release is idempotent.
	Act(ctx context.Context, caller Caller) (release func(), err error)
	// DisposeAgent ends an agent: its live tasks are cancelled and awaited, its
	// records and pending notices removed, observers told. It returns when that is
	// so, or with ctx's error while the disposal goes on. Who was told that the agent is
	// gone will not see it again: with a journal the next process goes on with its end.
	DisposeAgent(ctx context.Context, caller Caller, agent string) error
}

// Attachments are the parts that are plugged into a service. Each returned
// detach is idempotent. Listeners run one event at a time, in the order of the
// events and with no lock held; they must not block, and may call the service.
// A panic is logged and starves no other listener.
type Attachments interface {
	// AttachController says that somebody can read and stop the tasks of scope.
	// Start refuses owners that no attached controller serves.
	AttachController(name string, scope Scope) (detach func())
	// AttachProducer makes a kind known, or replaces its producer; running tasks are
	// untouched. Detaching leaves a later replacement alone.
	AttachProducer(kind Kind, producer Producer) (detach func())
	// OnDone hears of each end that is due as a notice, at most once per task, after
	// every change listener has heard of the settlement. Who heard of it just before
	// the daemon died may hear of it again from the next one.
	OnDone(scope Scope, listener func(Notice)) (detach func())
	// OnChange hears of every change to a task's record.
	OnChange(scope Scope, listener func(Change)) (detach func())
}

// Scope chooses owners: all, or those of one session. The zero Scope chooses
// the unowned bucket alone.
type Scope struct {
	all     bool
	session string
}

// AllOwners is the scope of every owner and of unowned work.
func AllOwners() Scope { return Scope{all: true} }

// SessionScope is the scope of one session's owners.
func SessionScope(session string) Scope { return Scope{session: session} }

// Covers reports whether the scope holds an owner.
func (s Scope) Covers(o Owner) bool { return s.all || s.session == o.Session }

// StartRequest is what a caller asks to start.
type StartRequest struct {
	Spec Spec
	// Await promises the end to the caller from the first moment, as a read that
	// waits does: no notice is due before [Started.Release], nor after it if a read
	// has delivered the end by then.
	Await bool
	// Foreground starts the task as one that its caller waits for in the same call. It
	// counts for the limits as any other; its end is reported from the moment it is
	// recorded and is never a notice, unless [ReadOptions.Promote] let go of it before, or
	// the daemon ended or was replaced: then no call waits for it any more.
	Foreground bool
	// IdempotencyKey, when not empty, makes a repeated start answer with the first
	// one's task. It is remembered for 24 h per session; without a session per
	// Subject.
	IdempotencyKey string
	Subject        string
	// Fingerprint stands for the whole request body and the agent; the same key
	// with another fingerprint is [CodeIdempotencyMismatch].
	Fingerprint [32]byte
}

// Started is the answer to Start.
type Started struct {
	// Release, when not nil, ends the promise that [StartRequest.Await] asked for. It
	// is idempotent and must be called.
	Release func()

	Snapshot Snapshot
	// Replayed says that an earlier start with the same key made this task.
	Replayed bool
}

// Description is a snapshot with what only a single look-up gives.
type Description struct {
	Snapshot Snapshot
	Request  json.RawMessage
	// Waiters counts reads that are blocked on the task now.
	Waiters int
}

// ListOptions filters and pages a list. Zero values filter nothing.
type ListOptions struct {
	Status Status
	Kind   Kind
	// Limit is the size of a page; 0 means all.
	Limit int
	// After is the opaque Next of the page before; a foreign one is [CodeInvalid].
	After string
}

// List is one page of tasks.
type List struct {
	Tasks []Snapshot
	// Next is empty on the last page.
	Next string
}

// The streams of a split task. A task that is not split has the first alone.
const (
	StreamStdout = "stdout"
	StreamStderr = "stderr"
)

// ReadOptions shape a consuming read.
type ReadOptions struct {
	// Stream chooses what is read. Empty is a whole read: of a split task it carries
	// both streams ([Read.Stderr]), and both cursors commit together. [StreamStdout]
	// and [StreamStderr] read that stream alone by its own cursor, with its fields in
	// the place of the main ones. [StreamStderr] of a task that is not split is
	// [CodeInvalid], and so is an explicit read of it: an ack counts standard output.
	Stream string
	// Wait, when positive, blocks until the task has settled or the time is over.
	// A time-out is no error. Bounds and defaults are the caller's affair.
	Wait time.Duration
	// LimitBytes bounds each page in raw bytes; 0 means [MaxPageBytes].
	LimitBytes int64
	// Tail, when positive, skips all but the last Tail raw bytes of what is unread, of
	// each stream: at most so many are shown, from the begin of a character on. The rest
	// is counted in [Read.Skipped], and confirming moves the cursor behind it too. A lower
	// LimitBytes bounds the page, and leaves what is behind it unread.
	Tail int64
	// Promote makes a foreground task that still lives when the read answers a
	// background task, in one step with the state that the answer tells: from then on
	// its end is due as a notice, unless it is read, and leaving the call changes
	// nothing. A read that fails, also because its ctx ended, has promoted nothing.
	Promote bool
	// Explicit holds cursor and notice until [Tasks.Ack], or the notice until
	// [AckHold] is over.
	Explicit bool
}

// LookOptions shape a read by offset.
type LookOptions struct {
	// Stream chooses what is shown: empty and [StreamStdout] mean the main stream,
	// [StreamStderr] the second one of a split task, [CodeInvalid] for any other. A look
	// at [AtCursor] with none shows both, as a whole read would.
	Stream     string
	Wait       time.Duration
	LimitBytes int64
}

// AtCursor is the offset of a look that shows what the next consuming read would
// give.
const AtCursor = math.MinInt64

// Bounds of reads.
const (
	MaxPageBytes = 8 << 20
	AckHold      = 30 * time.Second
)

// Read is a piece of output with the state it belongs to. The snapshot already
// shows what delivering this answer brings about.
type Read struct {
	Snapshot           Snapshot
	Text               string
	Offset, NextOffset int64
	Dropped            int64
	// EOF is only true together with a terminal status.
	EOF bool
	// Skipped counts the bytes between the cursor and Offset: those that were dropped,
	// and those that [ReadOptions.Tail] left out.
	Skipped int64
	// Stderr is the second stream of a split task in a whole read; nil otherwise.
	Stderr *Piece
}

// Piece is a piece of a second stream. Its fields mean what those of [Read] mean.
type Piece struct {
	Text               string
	Offset, NextOffset int64
	Dropped            int64
	EOF                bool
	Skipped            int64
}

// Delivery is a consuming read on its way to the caller. Exactly one of Confirm
// and Abandon counts, the first; later calls do nothing.
type Delivery struct {
	Read
	confirm func() error
	abandon func()
}

// NewDelivery is for implementations of [Service]. Both functions are called at
// most once altogether.
func NewDelivery(read Read, confirm func() error, abandon func()) *Delivery {
	return &Delivery{Read: read, confirm: confirm, abandon: abandon}
}

// Confirm says that the answer was written while the caller was still there: the
// cursor moves, a terminal state becomes reported. With a journal that is being written
// when Confirm returns; nobody is told of it before it is. A process that dies in that
// moment has delivered without knowing: the next one delivers again. A Delivery belongs
// to one goroutine.
func (d *Delivery) Confirm() error {
	if d.confirm == nil {
		return nil
	}
	confirm := d.confirm
	d.confirm, d.abandon = nil, nil
	return confirm()
}

// Abandon says that the answer did not reach its caller: the text stays unread,
// and a notice that was held for this answer is due.
func (d *Delivery) Abandon() {
	if d.abandon == nil {
		return
	}
	abandon := d.abandon
	d.confirm, d.abandon = nil, nil
	abandon()
}

// KillOutcome says what a kill met.
type KillOutcome string

// The outcomes of a kill.
const (
	KillRequested       KillOutcome = "requested"
	KillAlreadyFinished KillOutcome = "already-finished"
)

// AgentOptions shape a new agent.
type AgentOptions struct {
	// Label obeys the rules of [Spec.Label]; nil means none.
	Label *string
	// Lease, when not nil, is from [MinLease] to [MaxLease]: an agent that is silent
	// for so long is disposed.
	Lease *time.Duration
}

// Bounds of a lease.
const (
	MinLease = time.Second
	MaxLease = 24 * time.Hour
)

// Agent is a live owner. Lease is zero when it has none.
type Agent struct {
	ID    string
	Label string
	Lease time.Duration
	// Incarnation is that of its [Owner].
	Incarnation uint64
}

// Notice is an end that must be announced to the owner who started the task.
type Notice struct {
	Snapshot Snapshot
}

// ChangeType says what happened to a record.
type ChangeType string

// The changes, in the order in which a task meets them. Held comes when an answer
// with the end of an already announced task is on its way, so that its notice
// waits; then Due if that answer was lost, or Reported. Reported comes when a
// delivery, an ack or a kill was recorded; a kill of live work gives stopping
// alone. Promoted comes when a live foreground task has become a background one; one
// that ends as such is reported when it settles, and nothing more comes of its end.
// OwnerGone comes once per disposed owner, behind the removal of its last task, and
// carries no task.
const (
	ChangeRegistered ChangeType = "registered"
	ChangePromoted   ChangeType = "promoted"
	ChangeStopping   ChangeType = "stopping"
	ChangeSettled    ChangeType = "settled"
	ChangeHeld       ChangeType = "held"
	ChangeDue        ChangeType = "due"
	ChangeReported   ChangeType = "reported"
	ChangeRemoved    ChangeType = "removed"
	// ChangeEvicted is a removal that nobody asked for: retention, or want of room.
	// A notice of the end that is pending stays so.
	ChangeEvicted   ChangeType = "evicted"
	ChangeOwnerGone ChangeType = "owner_gone"
)

// Visible reports whether the change alters what a list shows.
func (t ChangeType) Visible() bool { return t != ChangeHeld && t != ChangeDue }

// Change is one change to a record. Snapshot is the state right after it; for
// OwnerGone only its Owner is set.
type Change struct {
	Type     ChangeType
	Snapshot Snapshot
}
