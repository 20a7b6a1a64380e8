package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"afoot/api/client"
)

const hookSecret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

// afootWith runs a command with standard input.
func (r *rig) afootWith(stdin string, args ...string) (string, error) {
	r.t.Helper()
	cmd := r.command(args...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// hooks lists the webhooks of the session's default agent.
func (r *rig) hooks() (list client.WebhookList) {
	r.t.Helper()
	require.NoError(r.t, json.Unmarshal([]byte(r.ok("webhooks", "ls", "--json")), &list))
	return list
}

// What is to be posted outlives a sudden death, a reload and a stop.
func TestWebhooksGoOn(t *testing.T) {
	t.Parallel()
	var well atomic.Bool
	posted := make(chan string, 100)
	verifier, err := standardwebhooks.NewWebhook(hookSecret)
	require.NoError(t, err)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if verifier.Verify(body, r.Header) != nil || !well.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, id, _ := strings.Cut(strings.TrimPrefix(r.Header.Get("webhook-id"), "msg_"), "_")
		posted <- id
	}))
	defer receiver.Close()
	next := func() string {
		t.Helper()
		select {
		case id := <-posted:
			return id
		case <-time.After(20 * time.Second):
			require.FailNow(t, "no post came")
			return ""
		}
	}

	file := filepath.Join(t.TempDir(), "afoot.env")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	r := newRig(t, "AFOOT_ENV_FILE="+file, "AFOOT_LOG_LEVEL=debug")
	r.serve()
	said, err := r.afootWith(hookSecret, "webhooks", "add", receiver.URL)
	require.Error(t, err)
	require.Contains(t, said, "AFOOT_WEBHOOK_HOSTS")
	require.NoError(t, os.WriteFile(file, []byte("AFOOT_WEBHOOK_HOSTS=127.0.0.1\n"), 0o600))
	require.Contains(t, r.ok("reload"), "AFOOT_WEBHOOK_HOSTS was taken up")
	id, err := r.afootWith(hookSecret+"\n", "webhooks", "add", receiver.URL)
	require.NoError(t, err, id)
	require.Equal(t, id, r.hooks().Webhooks[0].Id)

	r.ok("run", "-d", "--", "true")
	r.eventually("it is refused", func() bool { return strings.Contains(r.ok("webhooks", "ls"), "answered 503") })
	require.NoError(t, r.daemon.Process.Kill())
	require.Error(t, r.ended(r.soon()))
	out := r.out.String()
	r.serve()
	require.Equal(t, 1, r.hooks().Webhooks[0].Pending)
	r.ok("reload")
	require.Equal(t, 1, r.hooks().Webhooks[0].Pending)
	well.Store(true)
	require.Equal(t, "bash-1", next())
	r.eventually("it is told", func() bool { return r.hooks().Webhooks[0].Pending == 0 })

	// A stop tells nobody; the next start tells of what it ended.
	r.ok("run", "-d", "--", "sleep 391")
	out += r.out.String()
	r.stop()
	require.Empty(t, posted)
	r.serve()
	require.Equal(t, "bash-2", next())
	r.ok("webhooks", "rm", id)
	require.Empty(t, r.hooks().Webhooks)
	require.NotContains(t, out+r.out.String(), hookSecret[6:20], "the secret is in no log")
}

func TestWebhookHostsAreChecked(t *testing.T) {
	t.Parallel()
	r := newRig(t, "AFOOT_WEBHOOK_HOSTS=https://example.com")
	_, stderr, code := r.afoot("serve", "--check")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "AFOOT_WEBHOOK_HOSTS")
}
