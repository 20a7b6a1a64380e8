package e2e

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"
)

// TestWebhookPosts posts each notice until it is answered well, and nothing that was
// reported.
func TestWebhookPosts(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	d := serve(t, hosts(r), "AFOOT_WAKE_BUDGET=100")
	c := d.as("hooks")
	h := c.hooked(t, r)
	require.Equal(t, []hook{{ID: h.ID, URL: r.URL + "/hook", Agent: "default"}}, c.hooks(t))
	require.Empty(t, d.as("others").hooks(t))

	s := c.start(t, "exit 3", fields{"label": "told"})
	p := r.await(t, 1)[0]
	require.Equal(t, s.ID, p.task)
	require.Equal(t, "background task "+s.ID+" (bash: told) finished [status: completed, exit code: 3]. Read its output with task_output.", p.text)

	// A refusal and a redirect are tried again, with the same id, and followed never.
	answers := []int{http.StatusInternalServerError, http.StatusFound, http.StatusOK}
	r.answers(func(posted) int {
		next := answers[0]
		answers = answers[1:]
		return next
	})
	s = c.start(t, "true")
	posts := r.await(t, 4)
	for _, p := range posts[1:] {
		require.Equal(t, s.ID, p.task)
		require.Equal(t, posts[1].id, p.id)
		require.Equal(t, posts[1].body, p.body)
	}
	require.NotEqual(t, posts[0].id, posts[1].id)
	eventually(t, 10*time.Second, "nothing is pending", func() bool { return c.hooks(t)[0].Pending == 0 })

	// What is collected while its post is refused is posted no more; a stream changes nothing.
	r.answers(func(posted) int { return http.StatusServiceUnavailable })
	s = c.start(t, "true")
	r.await(t, 5)
	eventually(t, 10*time.Second, "the refusal is seen", func() bool { return c.hooks(t)[0].LastError != "" })
	require.Equal(t, 1, c.hooks(t)[0].Pending)
	require.Equal(t, s.ID, c.subscribe(t, "", "").done(t, 3)[2].notice(t).Task.ID, "delivery does not depend on streams, nor theirs on it")
	require.Equal(t, 1, c.hooks(t)[0].Pending)
	c.good(t, "task_output", fields{"task_id": s.ID, "wait": true})
	eventually(t, 10*time.Second, "nothing is pending", func() bool { return c.hooks(t)[0].Pending == 0 })
	r.answers(nil)
	s = c.start(t, "true")
	before := len(r.all())
	eventually(t, 20*time.Second, "the next", func() bool {
		all := r.all()
		return all[len(all)-1].task == s.ID && len(all) <= before+1
	})

	// What somebody waited for is posted to nobody.
	waited := c.good(t, "bash", shell("true")).Value.Task.ID
	c.do(t, http.MethodDelete, "/webhooks/"+h.ID, nil).empty(t, http.StatusNoContent)
	posts = r.all()
	c.start(t, "true")
	c.subscribe(t, "", "").quiet(t, c)
	require.Equal(t, posts, r.all(), "and nothing to a webhook that is gone")
	for _, p := range posts {
		require.NotEqual(t, waited, p.task)
	}
	require.Empty(t, c.hooks(t))
}

// empty checks an answer without a body.
func (a *answer) empty(t *testing.T, status int) {
	t.Helper()
	require.Equal(t, status, a.status, "%s", a)
	require.Empty(t, a.body)
}

// TestWebhookRefusals are webhooks that nobody may add.
func TestWebhookRefusals(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	secret := "whsec_" + base64.StdEncoding.EncodeToString(r.secret)
	d := serve(t)
	c := d.as("hooks")
	add := func(c *client, url, secret string) *answer {
		return c.do(t, http.MethodPost, "/webhooks", fields{"url": url, "secret": secret})
	}
	require.Contains(t, add(c, r.URL, secret).refused(t, http.StatusBadRequest, "invalid"), "AFOOT_WEBHOOK_HOSTS")
	d.stop()
	d.env = append(d.env, hosts(r), "AFOOT_MAX_WEBHOOKS_PER_AGENT=2")
	d.again()
	u, err := url.Parse(r.URL)
	require.NoError(t, err)
	for _, bad := range []string{
		"", "nonsense", "ftp://" + u.Host, "http://127.0.0.1:1/", "http://localhost:" + u.Port(), "http://[::ffff:127.0.0.1]:1/",
		"http://user:pass@" + u.Host, "http://169.254.169.254/", "http://example.com/", "http://127.1:" + u.Port(), "http://2130706433:" + u.Port(),
	} {
		add(c, bad, secret).refused(t, http.StatusBadRequest, "invalid")
	}
	for _, bad := range []string{"", "nonsense", "whsec_", "whsec_AAAA", "whsec_****"} {
		add(c, r.URL, bad).refused(t, http.StatusBadRequest, "invalid")
	}
	add(d.anyone(), r.URL, secret).refused(t, http.StatusForbidden, "forbidden")
	add(d.with(d.mint(jwt.MapClaims{"sid": "hooks", "scope": "tasks:read"})), r.URL, secret).refused(t, http.StatusForbidden, "forbidden")
	c.hooked(t, r)
	h := c.hooked(t, r)
	add(c, r.URL, secret).refused(t, http.StatusTooManyRequests, "limit_reached")
	d.as("others").do(t, http.MethodDelete, "/webhooks/"+h.ID, nil).refused(t, http.StatusNotFound, "not_found")
	c.open(t, fields{}).do(t, http.MethodDelete, "/webhooks/"+h.ID, nil).refused(t, http.StatusNotFound, "not_found")
	require.Len(t, c.hooks(t), 2)
}

// TestWebhookBudget posts only so much to an agent that never calls.
func TestWebhookBudget(t *testing.T) {
	t.Parallel()
	r, mark := newReceiver(t), newReceiver(t)
	d := serve(t, hosts(r, mark), "AFOOT_WAKE_BUDGET=2")
	c := d.as("budget")
	agent := c.open(t, fields{})
	agent.hooked(t, r)
	marker := c.open(t, fields{})
	marker.hooked(t, mark)
	g := newGates(t, 5)
	for i := range g {
		agent.start(t, g[i].wait())
	}
	for i := range g {
		g[i].open(t)
		require.NoError(t, agent.acting("default").until(t.Context(), numbered(i+1), snapshot.terminal))
	}
	r.await(t, 2)
	// A later notice of another agent came through: nothing is on its way behind it.
	last := marker.start(t, "true")
	require.Equal(t, last.ID, mark.await(t, 1)[0].task)
	require.Len(t, r.all(), 2)

	// Its next call lets two more go, and each notice goes once.
	h := agent.hooks(t)
	require.Equal(t, 3, h[0].Pending)
	require.True(t, h[0].Waiting)
	r.await(t, 4)
	agent.good(t, "task_list", fields{})
	seen := map[string]bool{}
	for _, p := range r.await(t, 5) {
		require.False(t, seen[p.task], "%s twice", p.task)
		seen[p.task] = true
	}
	eventually(t, 10*time.Second, "nothing is pending", func() bool {
		h := agent.hooks(t)[0]
		return h.Pending == 0 && !h.Waiting
	})
}

// TestWebhookSurvives keeps what was not answered, and the rest is not posted again.
func TestWebhookSurvives(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	d := serve(t, hosts(r), "AFOOT_WAKE_BUDGET=100")
	c := d.as("survives")
	h := c.hooked(t, r)
	answered := c.start(t, "true")
	r.await(t, 1)
	eventually(t, 10*time.Second, "it is recorded", func() bool { return c.hooks(t)[0].Pending == 0 })
	r.answers(func(posted) int { return http.StatusBadGateway })
	refused := c.start(t, "true")
	first := r.await(t, 2)[1]
	require.Equal(t, refused.ID, first.task)
	d.die(t)
	r.answers(nil)
	before := len(r.all())
	d.again()
	posts := r.await(t, before+1)
	require.Equal(t, first.id, posts[before].id)
	require.Equal(t, first.body, posts[before].body)
	eventually(t, 10*time.Second, "nothing is pending", func() bool {
		list := c.hooks(t)
		return len(list) == 1 && list[0].ID == h.ID && list[0].Pending == 0
	})
	next := c.start(t, "true")
	eventually(t, 10*time.Second, "the next is posted", func() bool {
		all := r.all()
		return all[len(all)-1].task == next.ID
	})
	for _, p := range r.all()[before+1:] {
		require.Equal(t, next.ID, p.task, "what was answered is not posted again")
	}
	require.NotEqual(t, answered.ID, next.ID)

	// The end of an agent is the end of its webhooks.
	agent := c.open(t, fields{})
	agent.hooked(t, r)
	require.Equal(t, http.StatusNoContent, c.do(t, http.MethodDelete, "/agents/"+agent.agent, nil).status)
	agent.do(t, http.MethodGet, "/webhooks", nil).refused(t, http.StatusGone, "gone")
}

// TestEventsForConversation has messages ready for an API.
func TestEventsForConversation(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("messages")
	s := c.start(t, "true", fields{"label": "told"})
	text := "background task " + s.ID + " (bash: told) finished [status: completed, exit code: 0]. Read its output with task_output."
	for format, want := range map[string]string{
		"openai":    `{"role":"user","content":` + strconv.Quote(text) + `}`,
		"anthropic": `{"role":"user","content":[{"type":"text","text":` + strconv.Quote(text) + `}]}`,
	} {
		e := c.subscribe(t, "observe=true&format="+format, "").done(t, 1)[0]
		var data struct {
			Text    string          `json:"text"`
			Message json.RawMessage `json:"message"`
		}
		require.NoError(t, json.Unmarshal([]byte(e.data), &data))
		require.Equal(t, text, data.Text)
		require.JSONEq(t, want, string(data.Message))
	}
	_, a := c.trySubscribe(t, "format=nonsense", "")
	a.refused(t, http.StatusBadRequest, "invalid")
}
