package main

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// metric gives the value of a line of /metrics; "" if it is not there.
func (r *rig) metric(name string) string {
	r.t.Helper()
	info, err := readListenInfo(r.state)
	require.NoError(r.t, err)
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, info.URL+"/metrics", nil)
	require.NoError(r.t, err)
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(r.ok("token", "--scope", "metrics", "--ttl", "1h")))
	res, err := http.DefaultClient.Do(req)
	require.NoError(r.t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	require.NoError(r.t, err)
	require.Equal(r.t, http.StatusOK, res.StatusCode, "%s", body)
	found := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + ` (\S+)$`).FindSubmatch(body)
	if found == nil {
		return ""
	}
	return string(found[1])
}

// TestMetersOfTheRooms: what the rooms below the API know is told too.
func TestMetersOfTheRooms(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.serve()
	require.Equal(t, "0", r.metric("afoot_leftover_tasks"))
	require.Equal(t, "0", r.metric("afoot_recovered_tasks_total"))
	r.ok("run", "--", "printf 12345; sleep 372 >/dev/null 2>&1 & exit 0")
	require.Equal(t, "1", r.metric("afoot_leftover_tasks"))
	require.Equal(t, "5", r.metric("afoot_output_kept_bytes"))
	require.Equal(t, "0", r.metric("afoot_journal_queue"))
	require.Equal(t, "0", r.metric("afoot_journal_failing"))
	require.Equal(t, "0", r.metric("afoot_journal_failed_commits_total"))
	for _, counted := range []string{"afoot_journal_commit_seconds_count", "afoot_journal_rows_total", "afoot_journal_commit_seconds_sum"} {
		require.NotContains(t, []string{"", "0"}, r.metric(counted), counted)
	}
	r.ok("kill", "bash-1")
	r.eventually("leftovers are gone", func() bool { return r.metric("afoot_leftover_tasks") == "0" })

	r.ok("run", "-d", "--", "sleep 373; true")
	require.NoError(t, r.daemon.Process.Kill())
	require.Error(t, r.ended(r.soon()))
	r.serve()
	require.Equal(t, "1", r.metric("afoot_recovered_tasks_total"))
}
