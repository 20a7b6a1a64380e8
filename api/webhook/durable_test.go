package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"afoot/registry/journal"
)

// The next poster on the same journal knows webhooks, posts and the budget.
func TestNextPosterGoesOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	life := func(test func(t *testing.T, p *Poster, w *wire)) {
		synctest.Test(t, func(t *testing.T) {
			j, err := journal.Open(journal.Config{Path: path})
			require.NoError(t, err)
			defer func() { require.NoError(t, j.Close(context.Background())) }()
			p, err := Open(t.Context(), Config{Hosts: []string{"localhost"}, Budget: 2, Journal: j.Webhooks()})
			require.NoError(t, err)
			w := &wire{}
			p.client.Transport = w
			defer p.Close(over())
			test(t, p, w)
			require.NoError(t, p.Sync(t.Context()))
		})
	}
	other := Owner{Session: "bob", Agent: "agent-3"}
	var first, second Hook
	life(func(t *testing.T, p *Poster, w *wire) {
		p.Resume()
		first = added(t, p, alice, "http://localhost/1")
		second = added(t, p, alice, "http://localhost/2")
		removed := added(t, p, alice, "http://localhost/3")
		added(t, p, other, "http://localhost/4")
		w.answer = func(r *http.Request) (int, error) {
			if r.URL.Path == "/2" {
				return 500, nil
			}
			return 200, nil
		}
		for i := range 4 {
			p.Notice(alice, about(fmt.Sprint("n", i)))
		}
		synctest.Wait()
		require.NoError(t, p.Remove(t.Context(), alice, removed.ID))
		p.DropOwner(other)
		p.Withdraw(alice, "n2")
	})
	life(func(t *testing.T, p *Poster, w *wire) {
		synctest.Wait()
		require.Empty(t, w.took(), "not before it resumes")
		notices, owners := p.Kept()
		require.Equal(t, []Owner{alice}, owners)
		require.Len(t, notices, 3)
		hooks := p.List(alice)
		require.Len(t, hooks, 2)
		require.Equal(t, first.ID, hooks[0].ID)
		require.Equal(t, second.ID, hooks[1].ID)
		require.True(t, first.Created.Equal(hooks[0].Created))
		require.Equal(t, 1, hooks[0].Pending)
		require.Equal(t, 3, hooks[1].Pending)
		require.True(t, hooks[0].Waiting)
		p.Notice(alice, about("n0")) // heard again after a death: the first has had it
		p.Resume()
		synctest.Wait()
		require.Equal(t, []string{"n0/2", "n1/2"}, w.took(), "they were paid for; n3 was not")
		p.Called(alice)
		synctest.Wait()
		require.ElementsMatch(t, []string{"n3/1", "n3/2"}, w.took())
		require.Zero(t, p.Pending())
		third := added(t, p, alice, "http://localhost/5")
		require.Equal(t, third.ID, p.List(alice)[2].ID)
	})
	life(func(t *testing.T, p *Poster, _ *wire) {
		require.Len(t, p.List(alice), 3)
		require.Zero(t, p.Pending())
		for _, h := range p.List(alice) {
			require.False(t, h.Waiting)
			require.WithinDuration(t, time.Now(), h.Created, 100*365*24*time.Hour)
		}
	})
}

// TestAddedIsKeptWithWhatWasPending: who was told of a webhook finds it after a sudden
// death as it was told, with the notices that were due before.
func TestAddedIsKeptWithWhatWasPending(t *testing.T) {
	kept := &rows{}
	p := paused(t, Config{Hosts: []string{"localhost"}, Journal: kept})
	h, err := p.Add(t.Context(), alice, "http://localhost/1", secret, func() []Pending {
		return []Pending{{Notice: about("n0")}}
	})
	require.NoError(t, err)
	require.Equal(t, 1, h.Pending)
	require.Equal(t, []string{h.ID + " n0"}, kept.synced)

	kept.full = errors.New("the disk is full")
	_, err = p.Add(t.Context(), alice, "http://localhost/2", secret, nil)
	require.ErrorIs(t, err, kept.full)
	require.Len(t, p.List(alice), 1)
}

// rows is a journal that tells which posts are sure to be kept.
type rows struct {
	nowhere

	put, synced []string
	full        error
}

func (r *rows) PutPosts(posts ...PostRow) {
	for _, row := range posts {
		r.put = append(r.put, row.Hook+" "+row.Key)
	}
}

func (r *rows) Sync(context.Context) error {
	if r.full == nil {
		r.synced = slices.Clone(r.put)
	}
	return r.full
}
