package main

import (
	"io"
	"net/http"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestProfiles(t *testing.T) {
	t.Parallel()
	r := newRig(t, "AFOOT_PPROF_ADDR=127.0.0.1:0")
	r.serve()
	found := regexp.MustCompile(`profiles are served without a token" addr=(\S+)`).FindStringSubmatch(r.out.String())
	require.NotNil(t, found, r.out)
	get := func(path, host string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+found[1]+path, nil)
		require.NoError(t, err)
		req.Host = host
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		return res.StatusCode, string(body)
	}
	status, body := get("/debug/pprof/goroutine?debug=1", "")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, "goroutine profile:")
	status, _ = get("/debug/pprof/", "evil.example")
	require.Equal(t, http.StatusMisdirectedRequest, status)
	status, _ = get("/tasks", "")
	require.Equal(t, http.StatusNotFound, status)

	info, err := readListenInfo(r.state)
	require.NoError(t, err)
	res, err := http.Get(info.URL + "/debug/pprof/")
	require.NoError(t, err)
	defer res.Body.Close()
	require.Equal(t, http.StatusNotFound, res.StatusCode, "only where it was asked for")
}

func TestProfilesAreForThisMachine(t *testing.T) {
	t.Parallel()
	for addr, named := range map[string]string{
		"0.0.0.0:6060":     "must be a loopback address",
		":6060":            "must be a loopback address",
		"10.1.2.3:6060":    "must be a loopback address",
		"example.com:6060": "must be a loopback address",
		"unix:/tmp/x":      "must be a loopback address",
		"nonsense":         "not an address",
	} {
		_, stderr, code := newRig(t, "AFOOT_PPROF_ADDR="+addr).afoot("serve")
		require.Equal(t, exitUsage, code, addr)
		require.Contains(t, stderr, "AFOOT_PPROF_ADDR=", addr)
		require.Contains(t, stderr, named, addr)
	}
}
