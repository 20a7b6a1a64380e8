package registry

import (
	"context"
	"encoding/json"
	"errors"
	"io"
)

// Spec is a start request as data, so that it can be stored and travel.
type Spec struct {
	Kind Kind
	// Label is one line for people and models, at most [MaxLabelBytes] and free
	// of control characters. Nil takes the producer's default; empty is invalid.
	Label *string
	// OutputLimitBytes, when present, is from 1 to [MaxSafeInteger].
	OutputLimitBytes *int64
	// Fields is the JSON object with the members of that kind alone.
	Fields json.RawMessage
}

// Bounds of a [Spec].
const (
	MaxLabelBytes  = 512
	MaxSafeInteger = 1<<53 - 1
)

// Producer turns start requests of one kind into running work.
type Producer interface {
	// Prepare resolves every default of spec and refuses, with an [Error],
	// everything that is wrong with it. It changes nothing and does not block on
	// other tasks. It may be called concurrently.
	Prepare(ctx context.Context, spec Spec) (Plan, error)
}

// Plan is a fully resolved start request that has not begun.
type Plan interface {
	// Label is the default label: valid by the rules of [Spec.Label].
	Label() string
	// Start begins the work and returns its hooks. It is called at most once, with
	// no lock held. On error nothing may be left behind: no process, no file.
	// The work outlives ctx, which only bounds the starting.
	Start(ctx context.Context, launch Launch) (Run, error)
}

// Launch is what a starting run gets to know and to use.
type Launch struct {
	// ID is the id under which the task will be published if Start succeeds.
	ID    ID
	Owner Owner
	// Settle reports the end, once the run has released its resources. It may be
	// called from any goroutine, also before Start returns, but with no lock of the
	// run held: it asks a [Stream] for its size. Only the first call counts. A
	// non-nil error is a broken promise and settles the task as failed with that
	// reason.
	Settle func(Outcome, error)
}

// ErrEnded is what a [Run.Cancel] that came too late returns: the caller is
// answered as for a finished task.
var ErrEnded = errors.New("the work has ended")

// Run is work that has begun. A run whose output arrives while it lives is also
// a [Stream]; any other one has final output only ([Outcome.Output]).
//
// The registry keeps the Run as long as the record: after its end a Run must
// hold no goroutine, no descriptor and no buffer.
type Run interface {
	// Cancel asks the work to end. It does not block on the work, is idempotent, and
	// must lead to Settle. An error means that nothing was changed and is given to
	// the caller who asked; [ErrEnded] means that the work had ended by itself, and
	// is returned after Settle.
	Cancel(reason string) error
	// Request is the request as started, for people to look at: defaults resolved,
	// of environment values only the names.
	Request() (json.RawMessage, error)
	// Discard gives everything stored for the run back, also its leftovers. It is
	// called once, after the end, when the record is removed. It does not wait for
	// leftovers: what has to be kept until they are gone goes then.
	Discard() error
}

// Leftovers is a [Run] whose work may outlive its end, such as processes that a
// shell left running.
type Leftovers interface {
	// StopLeftovers ends whatever outlived the run and does not block. The channel
	// is closed when nothing is left; nil means that nothing was.
	StopLeftovers(reason string) <-chan struct{}
	// Left reports whether something that outlived the run still lives. Until nothing
	// does, the record is not removed for the sake of room.
	Left() bool
}

// Input is a [Run] that can be written to while it lives.
type Input interface {
	// Input hands data to the work, in order with other calls, and with last closes
	// its input behind it. It blocks until all is taken or ctx ends, which is no
	// error: the result counts what was taken, and data that was not taken keeps
	// the input open. An input that is closed, by either side, or was never open, and
	// an ended run are [CodeConflict].
	Input(ctx context.Context, data []byte, last bool) (InputResult, error)
}

// InputResult says what became of an input.
type InputResult struct {
	// Written counts the bytes that were taken.
	Written int
	// Closed says that nothing more can be written.
	Closed bool
}

// Signaller is a [Run] that takes signals.
type Signaller interface {
	// Signal sends the signal of that name ("INT" or "SIGINT") to the work. It
	// does not block. An unknown name is [CodeInvalid], an ended run [CodeConflict].
	Signal(name string) error
}

// Split is a [Stream] run that may have a second stream. Its own methods are then
// those of standard output.
type Split interface {
	// Stderr gives the second stream; nil for a run with one stream. It is always
	// the same.
	Stderr() Stream
}

// Stream is output that can be read by offset while the work lives and after.
// All methods are safe for concurrent use.
type Stream interface {
	// Page gives at most limit raw bytes from offset on, as valid UTF-8 and by the
	// offset rules of [Page]. It never waits. An offset beyond the output is
	// [CodeInvalid].
	Page(offset, limit int64) (Page, error)
	// Size counts all raw bytes so far and those dropped from the head.
	Size() (written, dropped int64)
	// Grown gives a channel that is closed once more than offset bytes were written
	// or the output has ended; already closed if that is so now.
	Grown(offset int64) <-chan struct{}
	// Open gives the raw bytes. The caller closes it.
	Open() (RawLog, error)
}

// Page is a piece of output as text. Text is valid UTF-8: a character still cut
// at the end of what has arrived is left for the next page, bytes that can never
// become valid show as U+FFFD, one per maximal invalid subpart.
//
// Offset is where the page really begins: an offset inside a character moves
// back to its start, one below the first kept byte moves up to it. NextOffset
// never lies inside a character, and is beyond Offset whenever a whole character
// is there, also when it is longer than the limit.
type Page struct {
	Text               string
	Offset, NextOffset int64
	// Dropped counts raw bytes gone from the head of the output, in total.
	Dropped int64
	// End says that the output has ended and NextOffset is its end.
	End bool
}

// RawLog is one task's raw output, open for reading by offset.
type RawLog interface {
	// ReadAt refuses an offset below the first kept one. Bytes that are dropped while it
	// reads are given as they were, or refused: never zeros or others.
	io.ReaderAt
	io.Closer
	// Bounds gives the first kept offset, the offset behind the last byte, and
	// whether the output has ended.
	Bounds() (first, next int64, ended bool)
	// Grown is [Stream.Grown].
	Grown(offset int64) <-chan struct{}
}
