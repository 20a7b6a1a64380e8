package journal

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// posterJournal is how who posts asks for its part, without this package.
type posterJournal interface {
	Load(ctx context.Context) (hooks []struct {
		ID             string
		Seq            uint64
		Session, Agent string
		URL, Secret    string
		Created        time.Time
	}, posts []struct {
		Hook, Key      string
		Seq            uint64
		Exact, Message string
		Body           []byte
		Charged        bool
	}, budgets []struct {
		Session, Agent string
		Spent          int
	}, err error)
	HookGone(id string)
	PostGone(hook, key string)
	Sync(ctx context.Context) error
}

var _ posterJournal = (*Webhooks)(nil)

func TestWebhooksSurvive(t *testing.T) {
	path := at(t)
	j, err := Open(Config{Path: path})
	require.NoError(t, err)
	w := j.Webhooks()
	hook := func(id string, seq uint64) HookRow {
		return HookRow{ID: id, Seq: seq, Session: "alice", Agent: "default", URL: "http://localhost/", Secret: "whsec_x", Created: time.Unix(7, 9).UTC()}
	}
	post := func(hook, key string, seq uint64) PostRow {
		return PostRow{Hook: hook, Key: key, Seq: seq, Exact: "alice\x00default\x001", Message: "m-" + key, Body: []byte(`{"type":"task.done"}`)}
	}
	w.PutHook(hook("b", 2))
	w.PutHook(hook("a", 1))
	w.PutHook(hook("c", 3))
	w.PutPosts(post("b", "bash-2", 6), post("b", "bash-1", 5), post("a", "bash-1", 4))
	w.Budget(BudgetRow{Session: "alice", Agent: "default", Spent: 2})
	w.Budget(BudgetRow{Session: "bob", Agent: "agent-1", Spent: 1})
	require.NoError(t, w.Sync(t.Context()))
	charged := post("b", "bash-1", 5)
	charged.Charged = true
	w.PutPosts(charged)
	w.PostGone("a", "bash-1")
	w.PostGone("a", "never")
	w.HookGone("c")
	w.Budget(BudgetRow{Session: "bob", Agent: "agent-1"})
	require.NoError(t, w.Sync(t.Context()))
	shut(t, j)

	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), "it has secrets")
	hooks, posts, budgets, err := opened(t, Config{Path: path}).Webhooks().Load(t.Context())
	require.NoError(t, err)
	require.Equal(t, []HookRow{hook("a", 1), hook("b", 2)}, hooks)
	require.Equal(t, []PostRow{charged, post("b", "bash-2", 6)}, posts)
	require.Equal(t, []BudgetRow{{Session: "alice", Agent: "default", Spent: 2}}, budgets)
}

// A journal from before there were webhooks gets room for them.
func TestOlderJournalsGetWebhooks(t *testing.T) {
	path := at(t)
	j, err := open(Config{Path: path}, nil, []string{version1, version2})
	require.NoError(t, err)
	synced(t, j, task(1))
	shut(t, j)
	j = opened(t, Config{Path: path})
	j.Webhooks().PutHook(HookRow{ID: "a", Created: time.Unix(1, 0)})
	require.NoError(t, j.Webhooks().Sync(t.Context()))
	hooks, _, _, err := j.Webhooks().Load(t.Context())
	require.NoError(t, err)
	require.Len(t, hooks, 1)
	require.Len(t, memory(t, j).Tasks, 1)
}
