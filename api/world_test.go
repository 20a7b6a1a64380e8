package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"afoot/api"
	"afoot/api/wire"
	"afoot/auth"
	"afoot/registry"
	"afoot/registry/inmem"
	"afoot/registry/registrytest"
	"afoot/sse"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a whole daemon but for its processes: scripted work stands for them
// under the kind bash.
type world struct {
	t       *testing.T
	is      *require.Assertions
	service *inmem.Service
	// faulty is the service as the API sees it.
	faulty    *faulty
	jobs      *registrytest.Producer
	authority *auth.Authority
	hub       *sse.Hub
	api       *api.API
	server    *httptest.Server
	log       *logBuffer
	// seen has every documented exchange that took place.
	seen *sync.Map
	// token is used when a request names none.
	token string
}

type ctx = context.Context

type setup struct {
	api   api.Config
	inmem inmem.Config
	sse   sse.Config
	auth  auth.Config
}

func newWorld(t *testing.T, change ...func(*setup)) *world {
	t.Helper()
	w := &world{t: t, is: require.New(t), jobs: registrytest.NewProducer(), log: &logBuffer{}, seen: &sync.Map{}}
	var s setup
	s.auth.SecretFile = filepath.Join(t.TempDir(), "state", "secret")
	s.sse.Coalesce = time.Millisecond
	s.api.Tools.Background = true
	s.api.Logger = slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	for _, c := range change {
		c(&s)
	}
	_, err := auth.EnsureSecret(s.auth.SecretFile)
	w.is.NoError(err)
	w.authority, err = auth.New(s.auth)
	w.is.NoError(err)
	w.hub, err = sse.OpenHub(t.Context(), s.sse)
	w.is.NoError(err)
	w.service = inmem.New(s.inmem)
	w.service.AttachController("api", registry.AllOwners())
	w.service.AttachProducer("bash", scripted{w.jobs})
	w.faulty = &faulty{Service: w.service}
	s.api.Service = w.faulty
	s.api.Authority, s.api.Hub, s.api.Counts = w.authority, w.hub, w.service.Counts
	a, err := api.New(s.api)
	w.is.NoError(err)
	w.api = a
	w.is.NoError(w.service.Load(t.Context()))
	w.is.NoError(a.Reconcile(t.Context()))
	w.server = httptest.NewUnstartedServer(a.Handler())
	w.server.Config.ConnContext = api.ConnContext
	w.server.Start()
	w.token = w.mint(auth.Claims{Session: "alice", Scopes: auth.TasksRead | auth.TasksWrite}, time.Hour)
	t.Cleanup(func() {
		w.jobs.Retire()
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		w.is.NoError(w.hub.Close(ctx, sse.ByeShutdown))
		w.is.NoError(w.service.Close(ctx))
		w.server.Close()
		a.Close()
		w.is.NoError(w.authority.Close())
	})
	return w
}

func (w *world) mint(claims auth.Claims, ttl time.Duration) string {
	w.t.Helper()
	token, _, err := w.authority.Mint(claims, ttl)
	w.is.NoError(err)
	return token
}

// as gives the same world, seen by the holder of another token.
func (w *world) as(claims auth.Claims) *world {
	other := *w
	other.token = w.mint(claims, time.Hour)
	return &other
}

// answer is a whole answer.
type answer struct {
	w      *world
	status int
	header http.Header
	body   []byte
}

// request makes a request. Headers are pairs of name and value; an empty value
// takes the header away.
func (w *world) request(ctx context.Context, method, path, body string, headers ...string) *http.Request {
	w.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, w.server.URL+path, strings.NewReader(body))
	w.is.NoError(err)
	r.Header.Set("Authorization", "Bearer "+w.token)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		switch {
		case headers[i] == "Host":
			r.Host = headers[i+1]
		case headers[i+1] == "":
			r.Header.Del(headers[i])
		default:
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	return r
}

func (w *world) call(method, path, body string, headers ...string) answer {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	r := w.request(ctx, method, path, body, headers...)
	res, err := w.server.Client().Do(r)
	w.is.NoError(err)
	defer res.Body.Close()
	a := w.answered(res)
	w.check(exchange{request: r, sent: body, status: a.status, header: a.header, body: a.body})
	return a
}

func (w *world) answered(res *http.Response) answer {
	w.t.Helper()
	data, err := io.ReadAll(res.Body)
	w.is.NoError(err)
	return answer{w: w, status: res.StatusCode, header: res.Header, body: data}
}

func (w *world) get(path string, headers ...string) answer {
	w.t.Helper()
	return w.call(http.MethodGet, path, "", headers...)
}

// ok asserts a status and gives the answer on.
func (a answer) ok(status int) answer {
	a.w.t.Helper()
	a.w.is.Equal(status, a.status, "%s", a.body)
	return a
}

// into decodes the body.
func into[T any](a answer) T {
	a.w.t.Helper()
	var v T
	d := json.NewDecoder(bytes.NewReader(a.body))
	d.DisallowUnknownFields()
	a.w.is.NoError(d.Decode(&v), "%s", a.body)
	return v
}

// refused asserts a problem with a status and code and gives it.
func (a answer) refused(status int, code string) wire.Problem {
	a.w.t.Helper()
	a.w.is.Equal(status, a.status, "%s", a.body)
	a.w.is.Equal("application/problem+json", a.header.Get("Content-Type"))
	p := into[wire.Problem](a)
	a.w.is.Equal(code, string(p.Code), "%s", a.body)
	a.w.is.Equal(status, p.Status)
	a.w.is.Equal("urn:afoot:problem:"+code, p.Type)
	a.w.is.NotEmpty(p.Title)
	a.w.is.NotEmpty(p.Detail)
	a.w.is.Equal(a.header.Get("X-Request-Id"), p.RequestId)
	return p
}

// start starts scripted work and gives its handle.
func (w *world) start(s registrytest.Script, headers ...string) *registrytest.Work {
	w.t.Helper()
	snap := into[wire.Snapshot](w.call(http.MethodPost, "/tasks", w.body(s), headers...).ok(http.StatusCreated))
	work := w.jobs.Work(registry.ID(snap.Id))
	w.is.NotNil(work)
	return work
}

// body is a request that starts scripted work: a command that names the script, so
// that it is a request as described.
func (w *world) body(s registrytest.Script) string {
	var fields struct{ Script int }
	w.is.NoError(json.Unmarshal(w.jobs.Fields(s), &fields))
	return fmt.Sprintf(`{"kind":"bash","command":"scripted %d"}`, fields.Script)
}

// scripted finds the script that a command names.
type scripted struct{ *registrytest.Producer }

func (p scripted) Prepare(ctx context.Context, spec registry.Spec) (registry.Plan, error) {
	var fields struct {
		Script  int    `json:"script"`
		Command string `json:"command"`
	}
	if err := json.Unmarshal(spec.Fields, &fields); err != nil {
		return nil, err
	}
	if _, err := fmt.Sscanf(fields.Command, "scripted %d", &fields.Script); err == nil {
		spec.Fields = fmt.Appendf(nil, `{"script":%d,"command":%q}`, fields.Script, fields.Command)
	}
	return p.Producer.Prepare(ctx, spec)
}

// ended starts work that has printed text and completed.
func (w *world) ended(text string) *registrytest.Work {
	w.t.Helper()
	work := w.start(registrytest.Script{})
	work.Output.Append(text)
	work.Complete("exit code: 0")
	return work
}

// snapshot looks at a task inside.
func (w *world) snapshot(id registry.ID) registry.Snapshot {
	w.t.Helper()
	s, err := w.service.Get(context.Background(), registry.Caller{Session: "alice"}, id)
	w.is.NoError(err)
	return s
}

// eventually waits for a fact.
func (w *world) eventually(fact func() bool, what string) {
	w.t.Helper()
	w.is.Eventually(fact, 20*time.Second, time.Millisecond, what)
}

// waiters waits until so many waits are blocked on a task.
func (w *world) waiters(id registry.ID, n int) {
	w.t.Helper()
	w.eventually(func() bool {
		d, err := w.service.Describe(context.Background(), registry.Caller{Session: "alice"}, id)
		return err == nil && d.Waiters == n
	}, "waiters")
}

// logBuffer is a log that can be read while it is written.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
