package webhook

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// secret is 32 bytes.
const secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

var alice = Owner{Session: "alice", Agent: "default"}

// running gives a poster that posts until the test ends.
func running(t *testing.T, cfg Config) *Poster {
	t.Helper()
	p := paused(t, cfg)
	p.Resume()
	return p
}

func paused(t *testing.T, cfg Config) *Poster {
	t.Helper()
	p, err := Open(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { p.Close(over()) })
	return p
}

// over is a context that has ended.
func over() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func added(t *testing.T, p *Poster, owner Owner, address string) Hook {
	t.Helper()
	h, err := p.Add(t.Context(), owner, address, secret, nil)
	require.NoError(t, err)
	return h
}

func about(key string) Notice {
	return Notice{Key: key, Exact: "alice\x00default\x001", ID: "msg_" + key, Body: []byte(`{"type":"task.done","data":{"task":"` + key + `"}}`)}
}

// letter is a post as it came, verified by the library.
type letter struct {
	id   string
	body string
	bad  error
}

// receiver is a real server that answers as it is told.
type receiver struct {
	*httptest.Server
	letters chan letter
	answer  http.HandlerFunc
}

func receive(t *testing.T, answer http.HandlerFunc) *receiver {
	t.Helper()
	r := &receiver{letters: make(chan letter, 100), answer: answer}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, _ := io.ReadAll(q.Body)
	verifier, err := standardwebhooks.NewWebhook(secret)
	if err == nil {
		err = verifier.Verify(body, q.Header)
	}
	r.letters <- letter{id: q.Header.Get("webhook-id"), body: string(body), bad: err}
	if r.answer != nil {
		r.answer(w, q)
	}
}

// host is the receiver as the list of hosts has it.
func (r *receiver) host() string {
	u, _ := url.Parse(r.URL)
	return u.Host
}

func (r *receiver) next(t *testing.T) letter {
	t.Helper()
	select {
	case l := <-r.letters:
		require.NoError(t, l.bad)
		return l
	case <-time.After(20 * time.Second):
		require.FailNow(t, "no post came")
		return letter{}
	}
}

// settled waits for a fact about the owner's only webhook.
func settled(t *testing.T, p *Poster, owner Owner, fact func(Hook) bool) Hook {
	t.Helper()
	var h Hook
	require.Eventually(t, func() bool {
		h = p.List(owner)[0]
		return fact(h)
	}, 20*time.Second, time.Millisecond)
	return h
}

// words takes a log.
type words struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (w *words) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

func (w *words) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}

func (w *words) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
}
