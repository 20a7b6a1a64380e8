package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"afoot/api/webhook"
	"afoot/api/wire"
	"afoot/auth"
	"afoot/registry"
	"afoot/registry/journal"
	"afoot/registry/registrytest"
)

const hookSecret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

func hookBody(address string) string {
	return fmt.Sprintf(`{"url":%q,"secret":%q}`, address, hookSecret)
}

// posts gives a world a poster, which the test resumes.
func posts(t *testing.T, s *setup, cfg webhook.Config) *webhook.Poster {
	t.Helper()
	cfg.Logger = s.api.Logger
	p, err := webhook.Open(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		p.Close(ctx)
	})
	s.api.Webhooks = p
	return p
}

// hookJournal keeps nothing, and can be in trouble.
type hookJournal struct{ broken atomic.Bool }

func (*hookJournal) Load(context.Context) ([]webhook.HookRow, []webhook.PostRow, []webhook.BudgetRow, error) {
	return nil, nil, nil, nil
}
func (*hookJournal) PutHook(webhook.HookRow)     {}
func (*hookJournal) HookGone(string)             {}
func (*hookJournal) PutPosts(...webhook.PostRow) {}
func (*hookJournal) PostGone(string, string)     {}
func (*hookJournal) Budget(webhook.BudgetRow)    {}
func (j *hookJournal) Sync(context.Context) error {
	if j.broken.Load() {
		return registry.Errorf(registry.CodeInsufficientStorage, "full")
	}
	return nil
}

// inbox is a receiver that verifies.
type inbox struct {
	*httptest.Server
	came   chan post
	status atomic.Int64
}

type post struct {
	id   string
	body struct {
		Type      string        `json:"type"`
		Timestamp time.Time     `json:"timestamp"`
		Data      wire.TaskDone `json:"data"`
	}
}

func newInbox(t *testing.T) *inbox {
	t.Helper()
	in := &inbox{came: make(chan post, 100)}
	in.status.Store(http.StatusOK)
	verifier, err := standardwebhooks.NewWebhook(hookSecret)
	require.NoError(t, err)
	in.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		p := post{id: r.Header.Get("webhook-id")}
		if verifier.Verify(body, r.Header) != nil || json.Unmarshal(body, &p.body) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.WriteHeader(int(in.status.Load()))
		in.came <- p
	}))
	t.Cleanup(in.Close)
	return in
}

func (in *inbox) next(t *testing.T) post {
	t.Helper()
	select {
	case p := <-in.came:
		return p
	case <-time.After(20 * time.Second):
		require.FailNow(t, "no post came")
		return post{}
	}
}

func (w *world) hook(address string, headers ...string) wire.Webhook {
	w.t.Helper()
	return into[wire.Webhook](w.call("POST", "/webhooks", hookBody(address), headers...).ok(http.StatusCreated))
}

func (w *world) hooks(headers ...string) []wire.Webhook {
	w.t.Helper()
	return into[wire.WebhookList](w.get("/webhooks", headers...).ok(http.StatusOK)).Webhooks
}

func postingWorld(t *testing.T, cfg webhook.Config) (*world, *webhook.Poster) {
	t.Helper()
	var p *webhook.Poster
	w := newWorld(t, func(s *setup) { p = posts(t, s, cfg) })
	p.Resume()
	return w, p
}

func TestNoticeIsPosted(t *testing.T) {
	in := newInbox(t)
	w, _ := postingWorld(t, webhook.Config{Hosts: []string{"127.0.0.1"}})
	made := w.call("POST", "/webhooks", hookBody(in.URL+"/x")).ok(http.StatusCreated)
	hook := into[wire.Webhook](made)
	w.is.Equal("/webhooks/"+hook.Id, made.header.Get("Location"))
	w.is.Equal("default", *hook.Agent)
	w.is.WithinDuration(time.Now(), time.UnixMilli(hook.CreatedAt), time.Minute)
	w.is.NotContains(string(made.body), "whsec")

	s := w.subscribe("?observe=true")
	w.ended("a")
	got := in.next(t)
	w.is.Equal("msg_"+w.hub.Epoch()+"_bash-1", got.id)
	w.is.Equal("task.done", got.body.Type)
	w.is.Equal(got.body.Data.Task.FinishedAt, got.body.Timestamp.UnixMilli())
	var streamed wire.TaskDone
	w.is.NoError(json.Unmarshal([]byte(s.next("task.done").data), &streamed))
	w.is.Equal(streamed, got.body.Data, "the same as on the stream")
	w.eventually(func() bool { return w.hooks()[0].Pending == 0 }, "answered")
	w.is.Len(w.hub.Pending("alice", "default"), 1, "a post is no delivery on a stream")
	w.is.NotContains(w.log.String(), hookSecret[6:20])
	w.is.NotContains(string(w.get("/webhooks").body), "whsec")
}

func TestDeliveryOnAStreamChangesNothing(t *testing.T) {
	in := newInbox(t)
	in.status.Store(500)
	w, _ := postingWorld(t, webhook.Config{Hosts: []string{"127.0.0.1"}})
	w.hook(in.URL)
	s := w.subscribe("")
	w.ended("a")
	s.next("task.done")
	in.next(t)
	w.eventually(func() bool { h := w.hooks()[0]; return h.LastError != nil && *h.LastError == "answered 500" }, "refused")
	w.is.Equal(1, w.hooks()[0].Pending)
	in.status.Store(204)
	w.is.Equal("bash-1", in.next(t).body.Data.Task.Id)
	w.eventually(func() bool { return w.hooks()[0].Pending == 0 }, "answered")
}

// What was due before comes too; what was told or read does not.
func TestWebhookAfterTheEnd(t *testing.T) {
	in := newInbox(t)
	w, _ := postingWorld(t, webhook.Config{Hosts: []string{"127.0.0.1"}})
	w.ended("told")
	s := w.subscribe("")
	s.next("task.done")
	s.stop()
	w.eventually(func() bool { return w.hub.Streams() == 0 }, "no stream")
	w.ended("pending")
	w.ended("read")
	w.get("/tasks/bash-3/output").ok(200)
	w.eventually(func() bool { return w.snapshot("bash-3").Reported && len(w.hub.Pending("alice", "default")) == 1 }, "reported")
	w.hook(in.URL)
	got := in.next(t)
	w.is.Equal("bash-2", got.body.Data.Task.Id)
	w.is.Equal(got.body.Data.Task.FinishedAt, got.body.Timestamp.UnixMilli())
	w.ended("new")
	w.is.Equal("bash-4", in.next(t).body.Data.Task.Id)
}

func TestReportedIsNotPosted(t *testing.T) {
	in := newInbox(t)
	in.status.Store(500)
	w, p := postingWorld(t, webhook.Config{Hosts: []string{"127.0.0.1"}})
	w.hook(in.URL)
	w.ended("a")
	in.next(t)
	// An answer on its way holds it, an ack ends it.
	w.get("/tasks/bash-1/output", "Afoot-Ack", "explicit").ok(200)
	w.is.Equal(1, p.Pending())
	w.call("POST", "/tasks/bash-1/ack", `{"nextOffset":1}`).ok(204)
	w.eventually(func() bool { return p.Pending() == 0 }, "withdrawn")
}

func TestWakeBudgetOverHTTP(t *testing.T) {
	in := newInbox(t)
	w, p := postingWorld(t, webhook.Config{Hosts: []string{"127.0.0.1"}, Budget: 1})
	agent := into[wire.Agent](w.call("POST", "/agents", "{}").ok(201)).Id
	as := []string{"Afoot-Agent", agent}
	w.hook(in.URL, as...)
	a, b := w.start(registrytest.Script{}, as...), w.start(registrytest.Script{}, as...)
	a.Complete("exit code: 0")
	w.is.Equal(string(a.ID), in.next(t).body.Data.Task.Id)
	b.Complete("exit code: 0")
	w.eventually(func() bool { return w.snapshot(b.ID).Status.Terminal() }, "ended")
	w.get("/tasks").ok(200) // another agent's call
	owner := webhook.Owner{Session: "alice", Agent: agent}
	w.eventually(func() bool { h := p.List(owner)[0]; return h.Waiting && h.Pending == 1 }, "waits")
	w.is.Empty(in.came)
	// The list shows how it was, and is a call.
	shown := w.hooks(as...)[0]
	w.is.Equal(1, shown.Pending)
	w.is.True(*shown.Waiting)
	w.is.Equal(string(b.ID), in.next(t).body.Data.Task.Id)
}

func TestWebhooksBelongToTheirAgent(t *testing.T) {
	w, p := postingWorld(t, webhook.Config{Hosts: []string{"localhost"}, MaxPerOwner: 2})
	one := into[wire.Agent](w.call("POST", "/agents", "{}").ok(201)).Id
	two := into[wire.Agent](w.call("POST", "/agents", "{}").ok(201)).Id
	bob := w.as(auth.Claims{Session: "bob", Scopes: auth.TasksRead | auth.TasksWrite})
	nobody := w.as(auth.Claims{Scopes: auth.TasksRead | auth.TasksWrite})
	looks := w.as(auth.Claims{Session: "alice", Agent: one, Scopes: auth.TasksRead})

	first, second := w.hook("http://localhost/1", "Afoot-Agent", one), w.hook("http://localhost/2", "Afoot-Agent", one)
	limit := w.call("POST", "/webhooks", hookBody("http://localhost/3"), "Afoot-Agent", one).refused(429, "limit_reached")
	w.is.Equal("AFOOT_MAX_WEBHOOKS_PER_AGENT", limit.Limit)
	w.is.Contains(limit.Detail, "AFOOT_MAX_WEBHOOKS_PER_AGENT")
	w.is.Equal([]string{first.Id, second.Id}, []string{looks.hooks()[0].Id, looks.hooks()[1].Id}, "in order")
	w.is.Empty(w.hooks())
	w.is.Empty(w.hooks("Afoot-Agent", two))
	w.is.Empty(bob.hooks())
	w.call("DELETE", "/webhooks/"+first.Id, "").refused(404, "not_found")
	w.call("DELETE", "/webhooks/"+first.Id, "", "Afoot-Agent", two).refused(404, "not_found")
	bob.call("DELETE", "/webhooks/"+first.Id, "").refused(404, "not_found")
	bob.call("DELETE", "/webhooks/"+first.Id, "", "Afoot-Agent", one).refused(403, "foreign_agent")
	looks.call("POST", "/webhooks", hookBody("http://localhost/3")).refused(403, "forbidden")
	looks.call("DELETE", "/webhooks/"+first.Id, "").refused(403, "forbidden")
	nobody.call("POST", "/webhooks", hookBody("http://localhost/3")).refused(403, "forbidden")
	nobody.get("/webhooks").refused(403, "forbidden")
	w.call("DELETE", "/webhooks/"+first.Id, "", "Afoot-Agent", one).ok(204)
	w.call("DELETE", "/webhooks/"+first.Id, "", "Afoot-Agent", one).refused(404, "not_found")

	w.call("DELETE", "/agents/"+one, "").ok(204)
	w.is.Empty(p.List(webhook.Owner{Session: "alice", Agent: one}), "they go with the agent")
	w.call("POST", "/webhooks", hookBody("http://localhost/3"), "Afoot-Agent", one).refused(410, "gone")

	// The default agent has some before it has begun, and they end with it.
	w.hook("http://localhost/4")
	w.call("DELETE", "/agents/default", "").ok(204)
	w.is.Empty(w.hooks())
	w.hook("http://localhost/5")
	w.start(registrytest.Script{Cancel: func(work *registrytest.Work, _ string) error {
		w.hook("http://localhost/6") // the successor's, while the predecessor ends
		work.Complete("exit code: 0")
		return nil
	}})
	w.call("DELETE", "/agents/default", "").ok(204)
	w.is.Len(w.hooks(), 1)
	w.is.Equal("http://localhost/6", w.hooks()[0].Url)
}

// A lease that runs out is an end like any other.
func TestWebhooksEndWithTheLease(t *testing.T) {
	t.Parallel()
	w, p := postingWorld(t, webhook.Config{Hosts: []string{"localhost"}})
	agent := into[wire.Agent](w.call("POST", "/agents", `{"leaseMs":3000}`).ok(201)).Id
	w.hook("http://localhost/", "Afoot-Agent", agent)
	w.eventually(func() bool { return !p.Has(webhook.Owner{Session: "alice", Agent: agent}) }, "gone")
}

func TestWebhooksThatAreRefused(t *testing.T) {
	w, _ := postingWorld(t, webhook.Config{Hosts: []string{"localhost"}})
	for body, says := range map[string]string{
		`{}`:                               "url",
		`{"url":"http://localhost/"}`:      "secret",
		hookBody("http://evil.example/"):   "AFOOT_WEBHOOK_HOSTS",
		hookBody("http://127.0.0.1/"):      "AFOOT_WEBHOOK_HOSTS",
		hookBody("ftp://localhost/"):       "http or https",
		hookBody("http://u:pw@localhost/"): "user or password",
		`{"url":"http://localhost/","secret":"whsec_dG9vc2hvcnQ="}`:       "24 to 64 bytes",
		`{"url":"http://localhost/","secret":["` + hookSecret + `"]}`:     "wrong type",
		`{"url":"http://localhost/","secret":"` + hookSecret + `","x":1}`: "unknown",
		`{"url":"http://localhost/","secret":"` + hookSecret:              "ends",
	} {
		p := w.call("POST", "/webhooks", body).refused(400, "invalid")
		w.is.Contains(p.Detail, says, body)
		w.is.NotContains(p.Detail, "MDEy")
		w.is.NotContains(p.Detail, "dG9v")
	}
	w.is.NotContains(w.log.String(), "MDEy")
	none := newWorld(t)
	none.call("POST", "/webhooks", hookBody("http://localhost/")).refused(400, "invalid")
	none.is.Empty(none.hooks())
}

// TestWebhooksOutliveTheDaemon: over a real journal, and what the records know better
// is taken back.
func TestWebhooksOutliveTheDaemon(t *testing.T) {
	j, err := journal.Open(journal.Config{Path: filepath.Join(t.TempDir(), "journal")})
	require.NoError(t, err)
	defer func() { require.NoError(t, j.Close(context.Background())) }()
	in := newInbox(t)
	u, err := url.Parse(in.URL)
	require.NoError(t, err)
	kept := func(s *setup) { s.inmem.Journal, s.sse.Journal = j, j.Notices() }
	cfg := webhook.Config{Hosts: []string{u.Host}, Journal: j.Webhooks()}

	var first post
	t.Run("before", func(t *testing.T) {
		w := newWorld(t, kept, func(s *setup) { posts(t, s, cfg) }) // posts nothing
		w.hook(in.URL)
		w.ended("a")
		w.ended("b")
		w.start(registrytest.Script{}) // it ends with the world
		w.eventually(func() bool { return w.hooks()[0].Pending == 2 }, "pending")
		require.NoError(t, j.Sync(t.Context(), ^registry.Mark(0)))
	})
	// Rows of which the records know more.
	hooks, rows, _, err := j.Webhooks().Load(t.Context())
	require.NoError(t, err)
	require.Len(t, rows, 3)
	orphan := hooks[0]
	orphan.ID, orphan.Agent = "webhook-orphan", "agent-77"
	j.Webhooks().PutHook(orphan)
	t.Run("after", func(t *testing.T) {
		var p *webhook.Poster
		w := newWorld(t, kept, func(s *setup) { p = posts(t, s, cfg) })
		_, owners := p.Kept()
		w.is.Equal([]webhook.Owner{{Session: "alice", Agent: "default"}}, owners)
		w.eventually(func() bool { return p.Pending() == 3 }, "all is there")
		w.get("/tasks/bash-2/output").ok(200)
		w.eventually(func() bool { return p.Pending() == 2 }, "reported")
		p.Resume()
		first = in.next(t)
		w.is.Equal("bash-1", first.body.Data.Task.Id)
		w.is.Equal("bash-3", in.next(t).body.Data.Task.Id)
		w.is.Equal("msg_"+w.hub.Epoch()+"_bash-1", first.id)
		w.eventually(func() bool { return p.Pending() == 0 }, "answered")
	})
}

func TestEventsAsMessages(t *testing.T) {
	w := newWorld(t)
	w.get("/events?format=mcp").refused(400, "invalid")
	openai, anthropic, plain := w.subscribe("?format=openai&observe=true"), w.subscribe("?observe=true&format=anthropic"), w.subscribe("")
	w.ended("a")
	var bare, done wire.TaskDone
	data := plain.next("task.done").data
	w.is.NoError(json.Unmarshal([]byte(data), &bare))
	w.is.Nil(bare.Message)
	text, err := json.Marshal(bare.Text)
	w.is.NoError(err)
	for s, message := range map[*stream]string{
		openai:    `{"role":"user","content":` + string(text) + `}`,
		anthropic: `{"role":"user","content":[{"type":"text","text":` + string(text) + `}]}`,
	} {
		e := s.next("task.done")
		w.is.NotEmpty(e.id)
		w.is.NoError(json.Unmarshal([]byte(e.data), &done))
		w.is.JSONEq(data[:len(data)-1]+`,"message":`+message+"}", e.data)
	}
}
