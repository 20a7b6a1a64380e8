package e2e

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// posted is one post that a receiver got.
type posted struct {
	id, task, text string
	body           []byte
	status         int // the answer
}

// receiver is a real server that posts come to. It checks every signature by itself.
type receiver struct {
	*httptest.Server

	secret []byte
	mu     sync.Mutex
	posts  []posted
	answer func(posted) int
	bad    []string
}

// newReceiver answers 204 until told otherwise.
func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{secret: []byte(rand.Text())}
	r.Server = httptest.NewServer(r)
	t.Cleanup(func() {
		r.Close()
		r.mu.Lock()
		defer r.mu.Unlock()
		require.Empty(t, r.bad)
	})
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	p := posted{id: req.Header.Get("webhook-id"), body: body, status: http.StatusNoContent}
	var content struct {
		Type      string    `json:"type"`
		Timestamp time.Time `json:"timestamp"`
		Data      notice    `json:"data"`
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err != nil:
		r.bad = append(r.bad, err.Error())
	case json.Unmarshal(body, &content) != nil || content.Type != "task.done" || content.Timestamp.IsZero():
		r.bad = append(r.bad, fmt.Sprintf("body %s", body))
	case req.Method != http.MethodPost || req.Header.Get("Content-Type") != "application/json":
		r.bad = append(r.bad, fmt.Sprintf("%s %v", req.Method, req.Header))
	case !r.signed(req.Header, body):
		r.bad = append(r.bad, fmt.Sprintf("signature of %s", body))
	}
	p.task, p.text = content.Data.Task.ID, content.Data.Text
	if r.answer != nil {
		p.status = r.answer(p)
	}
	r.posts = append(r.posts, p)
	if p.status == http.StatusFound {
		w.Header().Set("Location", "/elsewhere")
	}
	w.WriteHeader(p.status)
}

// signed checks the Standard Webhooks signature.
func (r *receiver) signed(h http.Header, body []byte) bool {
	at, err := strconv.ParseInt(h.Get("webhook-timestamp"), 10, 64)
	if err != nil || time.Since(time.Unix(at, 0)).Abs() > time.Minute {
		return false
	}
	mac := hmac.New(sha256.New, r.secret)
	_, _ = fmt.Fprintf(mac, "%s.%d.%s", h.Get("webhook-id"), at, body)
	return h.Get("webhook-signature") == "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// answers sets how posts are answered from now on.
func (r *receiver) answers(answer func(posted) int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

// all gives the posts so far.
func (r *receiver) all() []posted {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]posted(nil), r.posts...)
}

// await waits for n posts.
func (r *receiver) await(t *testing.T, n int) []posted {
	t.Helper()
	var found []posted
	eventually(t, 20*time.Second, fmt.Sprintf("%d posts", n), func() bool {
		found = r.all()
		return len(found) >= n
	})
	return found
}

// hook is a webhook as GET /webhooks shows it.
type hook struct {
	ID        string `json:"id"`
	URL       string `json:"url"`
	Agent     string `json:"agent"`
	Pending   int    `json:"pending"`
	Waiting   bool   `json:"waiting"`
	LastError string `json:"lastError"`
}

// hooked adds a webhook of the acting agent.
func (c *client) hooked(t *testing.T, r *receiver) hook {
	t.Helper()
	secret := "whsec_" + base64.StdEncoding.EncodeToString(r.secret)
	a := c.do(t, http.MethodPost, "/webhooks", fields{"url": r.URL + "/hook", "secret": secret})
	require.Equal(t, http.StatusCreated, a.status, "%s", a)
	require.NotContains(t, string(a.body), "whsec")
	var h hook
	a.into(t, &h)
	require.Equal(t, "/webhooks/"+h.ID, a.header.Get("Location"))
	return h
}

// hooks lists the webhooks of the acting agent; with another agent's token that is no
// call of the agent.
func (c *client) hooks(t *testing.T) []hook {
	t.Helper()
	a := c.do(t, http.MethodGet, "/webhooks", nil)
	require.Equal(t, http.StatusOK, a.status, "%s", a)
	require.NotContains(t, string(a.body), "whsec")
	var list struct {
		Webhooks []hook `json:"webhooks"`
	}
	a.into(t, &list)
	return list.Webhooks
}

// hosts is the variable that lets posts go to the receivers.
func hosts(all ...*receiver) string {
	var list []string
	for _, r := range all {
		u, _ := url.Parse(r.URL)
		list = append(list, u.Host)
	}
	return "AFOOT_WEBHOOK_HOSTS=" + strings.Join(list, ",")
}
