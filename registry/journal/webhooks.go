package journal

import (
	"context"
	"time"
)

// version3: notices that are posted.
const version3 = `
CREATE TABLE webhooks (
	id TEXT PRIMARY KEY, seq INTEGER NOT NULL, session TEXT NOT NULL, agent TEXT NOT NULL,
	url TEXT NOT NULL, secret TEXT NOT NULL, created_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE TABLE webhook_posts (
	webhook TEXT NOT NULL, key TEXT NOT NULL, seq INTEGER NOT NULL,
	exact TEXT NOT NULL, message TEXT NOT NULL, body BLOB, charged INTEGER NOT NULL,
	PRIMARY KEY (webhook, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE webhook_budgets (
	session TEXT NOT NULL, agent TEXT NOT NULL, spent INTEGER NOT NULL,
	PRIMARY KEY (session, agent)
) STRICT, WITHOUT ROWID;
`

// HookRow is one webhook. Like [PostRow] and [BudgetRow] it is a plain type, so that
// who posts can ask for it without knowing this package.
type HookRow = struct {
	ID             string
	Seq            uint64
	Session, Agent string
	URL, Secret    string
	Created        time.Time
}

// PostRow is a notice that is still to be posted to a webhook.
type PostRow = struct {
	Hook, Key      string
	Seq            uint64
	Exact, Message string
	Body           []byte
	Charged        bool
}

// BudgetRow is what an agent's webhooks have posted since its last call.
type BudgetRow = struct {
	Session, Agent string
	Spent          int
}

// The changes of webhooks.
type (
	hookPut  HookRow
	hookGone struct{ id string }
	postPut  PostRow
	postGone struct{ hook, key string }
	budget   BudgetRow
)

// Webhooks keeps what is posted, in one order with the rows of the registry. But for
// Load and Sync no method blocks or touches the disk; of one key the newest counts.
type Webhooks struct{ journal *Journal }

// Webhooks gives the journal's part for who posts notices.
func (j *Journal) Webhooks() *Webhooks { return &Webhooks{journal: j} }

// Load gives everything, in the order of Seq.
func (w *Webhooks) Load(ctx context.Context) (hooks []HookRow, posts []PostRow, budgets []BudgetRow, err error) {
	err = w.journal.do(ctx, func(c *db) (err error) {
		hooks, posts, budgets, err = c.webhooks()
		return err
	})
	return hooks, posts, budgets, err
}

// PutHook keeps a webhook under its id.
func (w *Webhooks) PutHook(row HookRow) { w.add(hookPut(row)) }

// HookGone removes a webhook; its posts are removed one by one.
func (w *Webhooks) HookGone(id string) { w.add(hookGone{id: id}) }

// PutPosts keeps posts under webhook and key.
func (w *Webhooks) PutPosts(rows ...PostRow) {
	for _, row := range rows {
		w.add(postPut(row))
	}
}

// PostGone removes a post; one that is not there is no error.
func (w *Webhooks) PostGone(hook, key string) { w.add(postGone{hook: hook, key: key}) }

// Budget keeps what is spent. Nothing spent is no row.
func (w *Webhooks) Budget(row BudgetRow) { w.add(budget(row)) }

// Sync is [Journal.Sync] of everything so far.
func (w *Webhooks) Sync(ctx context.Context) error {
	return w.journal.Sync(ctx, w.journal.Append())
}

func (w *Webhooks) add(row any) { w.journal.Notices().add(row) }

// webhookKey gives the key of a change of webhooks.
func webhookKey(row any) (k key, found bool) {
	switch r := row.(type) {
	case hookPut:
		return key{table: hooks, a: r.ID}, true
	case hookGone:
		return key{table: hooks, a: r.id}, true
	case postPut:
		return key{table: posts, a: r.Hook, b: r.Key}, true
	case postGone:
		return key{table: posts, a: r.hook, b: r.key}, true
	case budget:
		return key{table: budgets, a: r.Session, b: r.Agent}, true
	}
	return key{}, false
}

// putWebhook writes a change of webhooks.
func (c *db) putWebhook(row any) (found bool, err error) {
	switch r := row.(type) {
	case hookPut:
		return true, c.run("INSERT OR REPLACE INTO webhooks VALUES (?, ?, ?, ?, ?, ?, ?)",
			r.ID, r.Seq, r.Session, r.Agent, r.URL, r.Secret, r.Created)
	case hookGone:
		return true, c.run("DELETE FROM webhooks WHERE id = ?", r.id)
	case postPut:
		return true, c.run("INSERT OR REPLACE INTO webhook_posts VALUES (?, ?, ?, ?, ?, ?, ?)",
			r.Hook, r.Key, r.Seq, r.Exact, r.Message, r.Body, r.Charged)
	case postGone:
		return true, c.run("DELETE FROM webhook_posts WHERE webhook = ? AND key = ?", r.hook, r.key)
	case budget:
		if r.Spent == 0 {
			return true, c.run("DELETE FROM webhook_budgets WHERE session = ? AND agent = ?", r.Session, r.Agent)
		}
		return true, c.run("INSERT OR REPLACE INTO webhook_budgets VALUES (?, ?, ?)", r.Session, r.Agent, int64(r.Spent))
	}
	return false, nil
}

func (c *db) webhooks() (hooks []HookRow, posts []PostRow, budgets []BudgetRow, err error) {
	err = c.query("SELECT id, seq, session, agent, url, secret, created_at FROM webhooks ORDER BY seq", func(row *columns) {
		hooks = append(hooks, HookRow{
			ID: row.text(), Seq: row.uint(), Session: row.text(), Agent: row.text(),
			URL: row.text(), Secret: row.text(), Created: row.time(),
		})
	})
	if err != nil {
		return nil, nil, nil, err
	}
	err = c.query("SELECT webhook, key, seq, exact, message, body, charged FROM webhook_posts ORDER BY seq", func(row *columns) {
		posts = append(posts, PostRow{
			Hook: row.text(), Key: row.text(), Seq: row.uint(),
			Exact: row.text(), Message: row.text(), Body: row.bytes(), Charged: row.bool(),
		})
	})
	if err != nil {
		return nil, nil, nil, err
	}
	err = c.query("SELECT session, agent, spent FROM webhook_budgets", func(row *columns) {
		budgets = append(budgets, BudgetRow{Session: row.text(), Agent: row.text(), Spent: int(row.int())})
	})
	return hooks, posts, budgets, err
}
