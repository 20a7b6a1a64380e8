package webhook

import (
	"context"
	"time"
)

// Journal keeps webhooks and what is to be posted beyond the end of the process. Its
// methods are safe for concurrent use. But for Load and Sync none blocks or touches the
// disk, so that it may be called with a lock held; of one key the newest row counts.
type Journal interface {
	// Load gives all rows, in the order of Seq. It is called once, before all else.
	Load(ctx context.Context) (hooks []HookRow, posts []PostRow, budgets []BudgetRow, err error)
	// PutHook keeps a webhook under its id, and HookGone removes it.
	PutHook(row HookRow)
	HookGone(id string)
	// PutPosts keeps posts under webhook and key, and PostGone removes one.
	PutPosts(rows ...PostRow)
	PostGone(hook, key string)
	// Budget keeps what is spent of an owner's; nothing need not be kept.
	Budget(row BudgetRow)
	// Sync blocks until everything so far is written. While that can't be it says why.
	Sync(ctx context.Context) error
}

// HookRow is a webhook as a journal keeps it. It is a plain type, as are [PostRow] and
// [BudgetRow], so that a journal need not know this package.
type HookRow = struct {
	ID             string
	Seq            uint64
	Session, Agent string
	URL, Secret    string
	Created        time.Time
}

// PostRow is a notice that is still to be posted to a webhook.
type PostRow = struct {
	Hook, Key string
	Seq       uint64
	// Exact and Message are Exact and ID of the [Notice].
	Exact, Message string
	Body           []byte
	// Charged says that the notice has taken its part of the budget.
	Charged bool
}

// BudgetRow is what an owner has spent of its budget.
type BudgetRow = struct {
	Session, Agent string
	Spent          int
}

// nowhere is the journal of a poster that keeps nothing.
type nowhere struct{}

func (nowhere) Load(context.Context) ([]HookRow, []PostRow, []BudgetRow, error) {
	return nil, nil, nil, nil
}
func (nowhere) PutHook(HookRow)            {}
func (nowhere) HookGone(string)            {}
func (nowhere) PutPosts(...PostRow)        {}
func (nowhere) PostGone(string, string)    {}
func (nowhere) Budget(BudgetRow)           {}
func (nowhere) Sync(context.Context) error { return nil }
