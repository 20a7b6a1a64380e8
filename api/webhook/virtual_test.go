package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// wire takes the place of the network where time is virtual.
type wire struct {
	mu sync.Mutex
	// posts has the message ids, and at when they came.
	posts []string
	at    []time.Time
	// answer, unless nil, answers.
	answer func(r *http.Request) (status int, err error)
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	w.posts = append(w.posts, strings.TrimPrefix(r.Header.Get("webhook-id"), "msg_")+r.URL.Path)
	w.at = append(w.at, time.Now())
	answer := w.answer
	w.mu.Unlock()
	status := http.StatusNoContent
	if answer != nil {
		var err error
		if status, err = answer(r); err != nil {
			return nil, err
		}
	}
	return &http.Response{StatusCode: status, Body: http.NoBody, Request: r}, nil
}

func (w *wire) took() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	took := w.posts
	w.posts = nil
	return took
}

func (w *wire) answers(status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer = func(*http.Request) (int, error) { return status, nil }
}

// virtual runs a case in virtual time; nobody is left behind.
func virtual(t *testing.T, cfg Config, test func(t *testing.T, p *Poster, w *wire)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cfg.Hosts = []string{"localhost"}
		p, err := Open(t.Context(), cfg)
		require.NoError(t, err)
		w := &wire{}
		p.client.Transport = w
		p.Resume()
		defer p.Close(over())
		test(t, p, w)
	})
}

func TestRetriesBackOffForEver(t *testing.T) {
	virtual(t, Config{}, func(t *testing.T, p *Poster, w *wire) {
		w.answers(http.StatusInternalServerError)
		added(t, p, alice, "http://localhost/")
		p.Notice(alice, about("a"))
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		least, most := 24*12, 24*24+12 // between every 5 min and every 2.5 min
		require.GreaterOrEqual(t, len(w.at), least)
		require.LessOrEqual(t, len(w.at), most)
		for i, wait := 1, time.Second; i < 12; i++ {
			gap := w.at[i].Sub(w.at[i-1])
			require.LessOrEqual(t, gap, wait)
			require.GreaterOrEqual(t, gap, wait/2)
			wait = min(2*wait, 5*time.Minute)
		}
		h := p.List(alice)[0]
		require.Equal(t, "answered 500", h.LastError)
		require.Equal(t, 1, h.Pending)
		require.False(t, h.Waiting, "repeated posts are free")
		w.answers(http.StatusOK)
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		h = p.List(alice)[0]
		require.Zero(t, h.Pending)
		require.Empty(t, h.LastError)
		w.took()
		time.Sleep(24 * time.Hour)
		require.Empty(t, w.took(), "once is enough")
	})
}

func TestOnly2xxIsSuccess(t *testing.T) {
	for _, status := range []int{100, 199, 300, 301, 302, 304, 307, 400, 404, 410, 429, 500, 503} {
		virtual(t, Config{}, func(t *testing.T, p *Poster, w *wire) {
			w.answers(status)
			added(t, p, alice, "http://localhost/")
			p.Notice(alice, about("a"))
			synctest.Wait()
			require.Equal(t, fmt.Sprintf("answered %d", status), p.List(alice)[0].LastError)
			require.Equal(t, 1, p.Pending())
		})
	}
}

func TestReportedIsNotPostedAgain(t *testing.T) {
	virtual(t, Config{}, func(t *testing.T, p *Poster, w *wire) {
		w.answers(http.StatusInternalServerError)
		added(t, p, alice, "http://localhost/")
		p.Notice(alice, about("a"))
		synctest.Wait()
		require.Equal(t, []string{"a/"}, w.took())
		p.Withdraw(alice, "a")
		require.Zero(t, p.Pending())
		time.Sleep(time.Hour)
		require.Empty(t, w.took())
	})
}

func TestHeldWaits(t *testing.T) {
	virtual(t, Config{}, func(t *testing.T, p *Poster, w *wire) {
		w.answers(http.StatusInternalServerError)
		added(t, p, alice, "http://localhost/")
		p.Notice(alice, about("a"))
		synctest.Wait()
		p.Hold(alice, "a")
		w.took()
		time.Sleep(time.Hour)
		require.Empty(t, w.took())
		require.False(t, p.List(alice)[0].Waiting, "it does not wait for the budget")
		w.answers(http.StatusOK)
		p.Due(alice, "a")
		synctest.Wait()
		require.Equal(t, []string{"a/"}, w.took())
		require.Zero(t, p.Pending())
		p.Due(alice, "a")
		synctest.Wait()
		require.Empty(t, w.took(), "what was answered is not due again")
	})
}

// A failing notice holds no other up, and a hanging one only its own webhook.
func TestOneFailsOthersGo(t *testing.T) {
	virtual(t, Config{}, func(t *testing.T, p *Poster, w *wire) {
		w.answer = func(r *http.Request) (int, error) {
			switch {
			case r.URL.Path == "/hang":
				<-r.Context().Done()
				return 0, r.Context().Err()
			case r.Header.Get("webhook-id") == "msg_a":
				return 0, errors.New("no")
			}
			return 200, nil
		}
		added(t, p, alice, "http://localhost/hang")
		added(t, p, alice, "http://localhost/go")
		p.Notice(alice, about("a"))
		p.Notice(alice, about("b"))
		synctest.Wait()
		require.ElementsMatch(t, []string{"a/hang", "a/go", "b/go"}, w.took())
		time.Sleep(11 * time.Second)
		synctest.Wait()
		hooks := p.List(alice)
		require.Equal(t, "not answered in time", hooks[0].LastError)
		require.Equal(t, 2, hooks[0].Pending)
		require.Equal(t, 1, hooks[1].Pending)
	})
}

func TestSessionHasItsPartOfThePlaces(t *testing.T) {
	virtual(t, Config{}, func(t *testing.T, p *Poster, w *wire) {
		w.answer = func(r *http.Request) (int, error) {
			if r.URL.Path == "/hang" {
				<-r.Context().Done()
			}
			return 200, r.Context().Err()
		}
		for i := range 6 {
			agent := Owner{Session: "mallory", Agent: fmt.Sprint("agent-", i)}
			added(t, p, agent, "http://localhost/hang")
			p.Notice(agent, about("m"))
		}
		synctest.Wait()
		require.Len(t, w.took(), maxFlightsPerSession)
		added(t, p, alice, "http://localhost/")
		p.Notice(alice, about("a"))
		synctest.Wait()
		require.Equal(t, []string{"a/"}, w.took())
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.GreaterOrEqual(t, len(w.took()), 2, "the others had their turn")
	})
}

func TestBudget(t *testing.T) {
	virtual(t, Config{Budget: 2}, func(t *testing.T, p *Poster, w *wire) {
		added(t, p, alice, "http://localhost/1")
		added(t, p, alice, "http://localhost/2")
		for _, key := range []string{"a", "b", "c", "d", "e"} {
			p.Notice(alice, about(key))
			synctest.Wait()
		}
		require.ElementsMatch(t, []string{"a/1", "a/2", "b/1", "b/2"}, w.took(), "webhooks share it")
		time.Sleep(24 * time.Hour)
		require.Empty(t, w.took(), "time gives nothing back")
		for _, h := range p.List(alice) {
			require.Equal(t, 3, h.Pending)
			require.True(t, h.Waiting)
		}
		p.Called(Owner{Session: "alice", Agent: "agent-1"})
		p.Called(Owner{Session: "bob", Agent: "default"})
		synctest.Wait()
		require.Empty(t, w.took(), "somebody else's call")
		p.Called(alice)
		synctest.Wait()
		require.ElementsMatch(t, []string{"c/1", "c/2", "d/1", "d/2"}, w.took())
		p.Withdraw(alice, "e")
		p.Notice(alice, about("f"))
		synctest.Wait()
		require.Empty(t, w.took(), "what was not posted cost nothing, and gave nothing")
		require.NoError(t, p.SetLimits(Limits{Hosts: []string{"localhost"}, Budget: 3}))
		synctest.Wait()
		require.ElementsMatch(t, []string{"f/1", "f/2"}, w.took())
		require.Zero(t, p.Pending())
	})
}

// What was pending comes too, in whatever order it and its fate are heard of.
func TestJoining(t *testing.T) {
	virtual(t, Config{Budget: 100}, func(t *testing.T, p *Poster, w *wire) {
		gone := about("of another")
		gone.Exact = "alice\x00default\x007"
		_, err := p.Add(t.Context(), alice, "http://localhost/", secret, func() []Pending {
			p.Notice(alice, about("new"))
			p.Withdraw(alice, "reported")
			p.Hold(alice, "held now")
			p.Due(alice, "due now")
			p.DropNotices(alice, gone.Exact)
			synctest.Wait()
			require.Empty(t, w.took(), "nothing before it is known")
			return []Pending{
				{Notice: about("old")}, {Notice: about("new")}, {Notice: about("reported")}, {Notice: gone},
				{Notice: about("held now")}, {Notice: about("due now"), Held: true}, {Notice: about("held"), Held: true},
			}
		})
		require.NoError(t, err)
		synctest.Wait()
		require.ElementsMatch(t, []string{"old/", "new/", "due now/"}, w.took())
		require.Equal(t, 2, p.Pending())
		p.Due(alice, "held")
		p.Due(alice, "held now")
		synctest.Wait()
		require.ElementsMatch(t, []string{"held/", "held now/"}, w.took())
	})
}

func TestOwnership(t *testing.T) {
	virtual(t, Config{MaxPerOwner: 2}, func(t *testing.T, p *Poster, w *wire) {
		first := added(t, p, alice, "http://localhost/1")
		for _, other := range []Owner{{Session: "alice", Agent: "agent-1"}, {Session: "bob", Agent: "default"}} {
			require.Empty(t, p.List(other))
			require.False(t, p.Has(other))
			require.ErrorIs(t, p.Remove(t.Context(), other, first.ID), ErrUnknown)
			p.Notice(other, about("x"))
			p.DropOwner(other)
		}
		second := added(t, p, alice, "http://localhost/2")
		_, err := p.Add(t.Context(), alice, "http://localhost/3", secret, nil)
		require.ErrorIs(t, err, ErrTooMany)
		require.Equal(t, []Hook{first, second}, p.List(alice))
		require.NoError(t, p.Remove(t.Context(), alice, first.ID))
		require.ErrorIs(t, p.Remove(t.Context(), alice, first.ID), ErrUnknown)
		until := p.Newest()
		third := added(t, p, alice, "http://localhost/3")
		p.DropUpTo(alice, until)
		require.Equal(t, []Hook{third}, p.List(alice), "what came later is a successor's")
		p.DropOwner(alice)
		require.Empty(t, p.List(alice))
		p.Notice(alice, about("x"))
		synctest.Wait()
		require.Empty(t, w.took())
	})
}

// A webhook that is removed ends the post that is under way.
func TestRemovalUnderWay(t *testing.T) {
	virtual(t, Config{}, func(t *testing.T, p *Poster, w *wire) {
		ended := make(chan error, 1)
		w.answer = func(r *http.Request) (int, error) {
			<-r.Context().Done()
			ended <- r.Context().Err()
			return 0, r.Context().Err()
		}
		added(t, p, alice, "http://localhost/")
		p.Notice(alice, about("a"))
		synctest.Wait()
		p.DropOwner(alice)
		require.ErrorIs(t, <-ended, context.Canceled)
		synctest.Wait()
		require.Zero(t, p.Pending())
	})
}

// A pause waits for what is under way as long as it may, and nothing is lost by it.
func TestPause(t *testing.T) {
	virtual(t, Config{}, func(t *testing.T, p *Poster, w *wire) {
		w.answer = func(r *http.Request) (int, error) {
			select {
			case <-time.After(3 * time.Second):
				return 200, nil
			case <-r.Context().Done():
				return 0, r.Context().Err()
			}
		}
		added(t, p, alice, "http://localhost/")
		p.Notice(alice, about("a"))
		p.Notice(alice, about("b"))
		synctest.Wait()
		begun := time.Now()
		p.Pause(t.Context())
		require.Equal(t, 3*time.Second, time.Since(begun))
		require.Equal(t, []string{"a/"}, w.took())
		time.Sleep(time.Minute)
		require.Empty(t, w.took())
		p.Resume()
		p.Resume()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		p.Pause(ctx)
		require.Equal(t, []string{"b/"}, w.took())
		require.Equal(t, 1, p.Pending())
		require.Empty(t, p.List(alice)[0].LastError, "it did not fail")
		p.Resume()
		time.Sleep(3 * time.Second)
		synctest.Wait()
		require.Equal(t, []string{"b/"}, w.took())
		require.Zero(t, p.Pending())
		p.Close(over())
		p.Resume()
		_, err := p.Add(t.Context(), alice, "http://localhost/", secret, nil)
		require.ErrorIs(t, err, ErrClosed)
	})
}

// However many wait, none is given up.
func TestManyPending(t *testing.T) {
	virtual(t, Config{}, func(t *testing.T, p *Poster, w *wire) {
		w.answers(http.StatusInternalServerError)
		added(t, p, alice, "http://localhost/")
		const many = 3000
		for i := range many {
			p.Notice(alice, about(strconv.Itoa(i)))
		}
		require.Equal(t, many, p.Pending())
		p.Withdraw(alice, "0")
		p.Withdraw(alice, strconv.Itoa(many-1))
		require.Equal(t, many-2, p.Pending())
	})
}
