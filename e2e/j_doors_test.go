package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// paths are some of every sort: open ones, guarded ones, unknown ones.
var paths = []string{
	"/", "/healthz", "/readyz", "/version", "/metrics", "/openapi.yaml", "/tasks", "/tasks/bash-1",
	"/tasks/bash-1/output", "/tasks/bash-1/log", "/events", "/agents", "/auth/exchange", "/no/such/path", "/mcp",
}

func TestJ1ForeignHosts(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("j1")
	port := d.addr[strings.LastIndexByte(d.addr, ':'):]
	for _, host := range []string{
		"evil.example", "evil.example" + port, "localhost.evil.example", "127.0.0.1.evil.example", "localhost.evil.example" + port,
		"evil-localhost", "notlocalhost", "127.0.0.1.nip.io", "localhost..evil", "[::2]", "[2001:db8::1]" + port,
		"192.0.2.1", "192.0.2.1" + port, "8.8.8.8", "2130706433.example", "",
	} {
		for _, path := range paths {
			a := d.raw(t, bare("GET "+path+" HTTP/1.1", "Host: "+host, c.bearer(), "Connection: close"))
			require.Equal(t, http.StatusMisdirectedRequest, a.status, "%q %s: %s", host, path, a)
		}
		a := d.raw(t, bare("GET /tasks HTTP/1.1", "Host: "+host, "Connection: close", "Authorization: Bearer forged"))
		a.refused(t, http.StatusMisdirectedRequest, "foreign_host")
		a = d.raw(t, bare("POST /tasks HTTP/1.1", "Host: "+host, "Origin: http://"+host, c.bearer(),
			"Content-Type: application/json", "Content-Length: 40", "Connection: close")) // the body never comes
		a.refused(t, http.StatusMisdirectedRequest, "foreign_host")
		require.Empty(t, a.header.Get("Access-Control-Allow-Origin"))
		a = d.raw(t, bare("OPTIONS /tasks HTTP/1.1", "Host: "+host, "Origin: http://"+host,
			"Access-Control-Request-Method: POST", "Connection: close"))
		require.Equal(t, http.StatusMisdirectedRequest, a.status)
		require.Empty(t, a.header.Get("Access-Control-Allow-Origin"))
	}
	a := d.raw(t, bare("GET /tasks HTTP/1.0", c.bearer()))
	require.Equal(t, http.StatusMisdirectedRequest, a.status, "no Host at all: %s", a)
	a = d.raw(t, bare("GET http://evil.example/tasks HTTP/1.1", "Host: evil.example", c.bearer(), "Connection: close"))
	require.Equal(t, http.StatusMisdirectedRequest, a.status, "absolute form: %s", a)
	require.Empty(t, c.list(t, ""))
}

func TestJ1LoopbackNamesPass(t *testing.T) {
	t.Parallel()
	d := serve(t, "AFOOT_HOSTS=afoot.example, Other.Example")
	c := d.as("j1")
	for _, host := range []string{
		d.addr, "127.0.0.1", "localhost", "LOCALHOST.", "LocalHost:1", "localhost.:99", "[::1]", "[::1]:7420", "[::1]:1",
		"afoot.example", "AFOOT.Example.:443", "other.example:8080", "OTHER.EXAMPLE.",
	} {
		a := d.raw(t, bare("GET /tasks HTTP/1.1", "Host: "+host, c.bearer(), "Connection: close"))
		require.Equal(t, http.StatusOK, a.status, "%q: %s", host, a)
	}
	for _, host := range []string{"x.afoot.example", "afoot.example.evil", "afoot"} {
		a := d.raw(t, bare("GET /tasks HTTP/1.1", "Host: "+host, c.bearer(), "Connection: close"))
		a.refused(t, http.StatusMisdirectedRequest, "foreign_host")
	}
}

func TestJ2CrossSiteRequests(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("j2")
	none := d.with("")
	witness := filepath.Join(t.TempDir(), "ran")
	body := startBody("touch " + witness)
	text := fmt.Sprintf(`{"kind":"bash","command":"touch %s"}`, witness)
	own := "http://" + d.addr
	id := c.start(t, "true").ID

	for name, row := range map[string]struct {
		c       *client
		method  string
		path    string
		body    any
		headers []string
		status  int
		code    string
	}{
		"text/plain":                {c, "POST", "/tasks", text, []string{"Content-Type: text/plain"}, 415, "unsupported_media"},
		"text/plain with a charset": {c, "POST", "/tasks", text, []string{"Content-Type: text/plain; charset=utf-8"}, 415, "unsupported_media"},
		"form":                      {c, "POST", "/tasks", text, []string{"Content-Type: application/x-www-form-urlencoded"}, 415, "unsupported_media"},
		"multipart":                 {c, "POST", "/tasks", text, []string{"Content-Type: multipart/form-data; boundary=x"}, 415, "unsupported_media"},
		"no media type":             {c, "POST", "/tasks", text, []string{"Content-Type:"}, 415, "unsupported_media"},
		"a relative of JSON":        {c, "POST", "/tasks", text, []string{"Content-Type: application/json-seq"}, 415, "unsupported_media"},
		"two in one":                {c, "POST", "/tasks", text, []string{"Content-Type: text/plain, application/json"}, 415, "unsupported_media"},
		"agents by text":            {c, "POST", "/agents", `{}`, []string{"Content-Type: text/plain"}, 415, "unsupported_media"},
		"foreign origin":            {c, "POST", "/tasks", body, []string{"Origin: https://evil.example"}, 403, "foreign_origin"},
		"foreign origin, text":      {none, "POST", "/tasks", text, []string{"Content-Type: text/plain", "Origin: https://evil.example"}, 403, "foreign_origin"},
		"own name, other port":      {c, "POST", "/tasks", body, []string{"Origin: http://127.0.0.1:1"}, 403, "foreign_origin"},
		"own name with a tail":      {c, "POST", "/tasks", body, []string{"Origin: " + own + ".evil.example"}, 403, "foreign_origin"},
		"own name with a path":      {c, "POST", "/tasks", body, []string{"Origin: http://evil.example/" + d.addr}, 403, "foreign_origin"},
		"own name as a user":        {c, "POST", "/tasks", body, []string{"Origin: http://" + d.addr + "@evil.example"}, 403, "foreign_origin"},
		"null":                      {c, "POST", "/tasks", body, []string{"Origin: null"}, 403, "foreign_origin"},
		"null reads":                {c, "GET", "/tasks", nil, []string{"Origin: null"}, 403, "foreign_origin"},
		"null on an open path":      {none, "GET", "/healthz", nil, []string{"Origin: null"}, 403, "foreign_origin"},
		"a file":                    {c, "GET", "/tasks", nil, []string{"Origin: file://"}, 403, "foreign_origin"},
		"an extension":              {c, "GET", "/events", nil, []string{"Origin: chrome-extension://abcdef"}, 403, "foreign_origin"},
		"foreign stream":            {c, "GET", "/events", nil, []string{"Origin: https://evil.example"}, 403, "foreign_origin"},
		"foreign kill":              {c, "DELETE", "/tasks/" + id, nil, []string{"Origin: https://evil.example"}, 403, "foreign_origin"},
		"cookie":                    {none, "POST", "/tasks", body, []string{"Cookie: token=" + c.token + "; Authorization=Bearer " + c.token}, 401, "unauthenticated"},
		"cookie reads":              {none, "GET", "/tasks", nil, []string{"Cookie: afoot=" + c.token}, 401, "unauthenticated"},
		"token in the address":      {none, "GET", "/tasks?access_token=" + c.token + "&token=" + c.token, nil, nil, 401, "unauthenticated"},
		"basic":                     {none, "GET", "/tasks", nil, []string{"Authorization: Basic " + c.token}, 401, "unauthenticated"},
	} {
		t.Run(name, func(t *testing.T) {
			a := row.c.do(t, row.method, row.path, row.body, row.headers...)
			a.refused(t, row.status, row.code)
			require.Empty(t, a.header.Get("Access-Control-Allow-Origin"))
			require.Empty(t, a.header.Get("Access-Control-Allow-Credentials"))
		})
	}

	t.Run("GET with a command", func(t *testing.T) {
		for _, path := range []string{"/tasks?kind=bash&command=touch+" + witness, "/tasks?command=touch+" + witness} {
			c.do(t, http.MethodGet, path, nil)
			c.do(t, http.MethodGet, path, text)
			c.do(t, http.MethodHead, path, nil)
		}
	})
	t.Run("method by another name", func(t *testing.T) {
		c.do(t, http.MethodGet, "/tasks", text, "X-HTTP-Method-Override: POST")
		c.do(t, http.MethodGet, "/tasks/"+id+"?_method=DELETE", nil)
	})
	t.Run("preflight", func(t *testing.T) {
		for _, origin := range []string{"https://evil.example", "null", "http://127.0.0.1:1"} {
			a := none.do(t, http.MethodOptions, "/tasks", nil, "Origin: "+origin,
				"Access-Control-Request-Method: POST", "Access-Control-Request-Headers: authorization, content-type")
			a.refused(t, http.StatusForbidden, "foreign_origin")
			for name := range a.header {
				require.False(t, strings.HasPrefix(name, "Access-Control-"), "%v", a.header)
			}
		}
	})
	t.Run("own origin", func(t *testing.T) {
		a := c.do(t, http.MethodGet, "/tasks", nil, "Origin: "+own)
		require.Equal(t, http.StatusOK, a.status, "%s", a)
		a = c.do(t, http.MethodPost, "/tasks", startBody("true"), "Origin: "+own, "Content-Type: application/json; charset=utf-8")
		require.Equal(t, http.StatusCreated, a.status, "%s", a)
	})
	require.NoFileExists(t, witness)
	require.Len(t, c.list(t, ""), 2, "nothing ran")
	require.False(t, c.get(t, id).Reported)
}

func TestJ2AllowedOrigins(t *testing.T) {
	t.Parallel()
	const app = "https://app.example"
	d := serve(t, "AFOOT_ORIGINS="+app+",http://localhost:5173")
	c := d.as("j2")
	for _, origin := range []string{app, "http://localhost:5173"} {
		a := d.with("").do(t, http.MethodOptions, "/tasks", nil, "Origin: "+origin,
			"Access-Control-Request-Method: POST", "Access-Control-Request-Headers: authorization,content-type,afoot-agent,idempotency-key")
		require.Less(t, a.status, 300, "%s", a)
		require.Equal(t, origin, a.header.Get("Access-Control-Allow-Origin"))
		require.Contains(t, a.header.Get("Access-Control-Allow-Methods"), "POST")
		allowed := strings.ToLower(a.header.Get("Access-Control-Allow-Headers"))
		for _, name := range []string{"authorization", "content-type", "afoot-agent", "idempotency-key"} {
			require.Contains(t, allowed, name)
		}
		require.Empty(t, a.header.Get("Access-Control-Allow-Credentials"), "cookies are never credentials")
		a = c.do(t, http.MethodGet, "/tasks", nil, "Origin: "+origin)
		require.Equal(t, http.StatusOK, a.status)
		require.Equal(t, origin, a.header.Get("Access-Control-Allow-Origin"))
		require.Contains(t, strings.Join(a.header.Values("Vary"), ","), "Origin")
		a = d.with("").do(t, http.MethodGet, "/tasks", nil, "Origin: "+origin)
		require.Equal(t, http.StatusUnauthorized, a.status)
		require.Equal(t, origin, a.header.Get("Access-Control-Allow-Origin"), "a page may read why it was refused")
	}
	for _, origin := range []string{"https://app.example.evil", "http://app.example", app + ":8443", "https://evil.example", "null"} {
		a := c.do(t, http.MethodGet, "/tasks", nil, "Origin: "+origin)
		a.refused(t, http.StatusForbidden, "foreign_origin")
		require.Empty(t, a.header.Get("Access-Control-Allow-Origin"))
	}
}

func TestJ3RefusalsToStart(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		setup func(t *testing.T, d *daemon)
		words []string
	}{
		"all addresses": {func(_ *testing.T, d *daemon) {
			d.unset("AFOOT_JWT_SECRET_FILE")
			d.env = append(d.env, "AFOOT_ADDR=0.0.0.0:"+port(d))
		}, []string{"0.0.0.0"}},
		"all addresses, no host": {func(_ *testing.T, d *daemon) {
			d.unset("AFOOT_JWT_SECRET_FILE")
			d.env = append(d.env, "AFOOT_ADDR=:"+port(d))
		}, []string{"AFOOT_"}},
		"all IPv6 addresses": {func(_ *testing.T, d *daemon) {
			d.unset("AFOOT_JWT_SECRET_FILE")
			d.env = append(d.env, "AFOOT_ADDR=[::]:"+port(d))
		}, []string{"AFOOT_"}},
		"keys but no hosts": {func(_ *testing.T, d *daemon) {
			d.env = append(d.env, "AFOOT_ADDR=0.0.0.0:"+port(d))
		}, []string{"AFOOT_HOSTS"}},
		"hosts but no keys": {func(_ *testing.T, d *daemon) {
			d.unset("AFOOT_JWT_SECRET_FILE")
			d.env = append(d.env, "AFOOT_ADDR=0.0.0.0:"+port(d), "AFOOT_HOSTS=afoot.example")
		}, []string{"AFOOT_JWT_SECRET_FILE"}},
		"empty key file":          {secretFile("", 0o600), []string{"empty"}},
		"blank key file":          {secretFile("\n \n", 0o600), nil},
		"short key file":          {secretFile("0123456789012345678901234567890", 0o600), []string{"32"}},
		"world-readable key file": {secretFile(strings.Repeat("k", 40), 0o644), []string{"secret"}},
		"readable to others only": {secretFile(strings.Repeat("k", 40), 0o604), []string{"secret"}},
		"writable to all":         {secretFile(strings.Repeat("k", 40), 0o622), []string{"secret"}},
		"a directory as key file": {func(t *testing.T, d *daemon) {
			t.Helper()
			d.env = append(d.env, "AFOOT_JWT_SECRET_FILE="+t.TempDir())
		}, nil},
		"key file of somebody else": {func(t *testing.T, d *daemon) {
			t.Helper()
			if os.Geteuid() != 0 {
				t.Skip("only root can give files away")
			}
			path := filepath.Join(t.TempDir(), "secret")
			require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("k", 40)), 0o600))
			require.NoError(t, os.Chown(path, 12345, 12345))
			d.env = append(d.env, "AFOOT_JWT_SECRET_FILE="+path)
		}, nil},
		"key set without issuer": {func(t *testing.T, d *daemon) {
			t.Helper()
			path := filepath.Join(t.TempDir(), "jwks.json")
			require.NoError(t, os.WriteFile(path, []byte(`{"keys":[]}`), 0o600))
			d.env = append(d.env, "AFOOT_JWKS="+path)
		}, []string{"AFOOT_JWT_ISSUER"}},
		"unknown variable":       {environ("AFOOT_ADRR=127.0.0.1:1"), []string{"AFOOT_ADRR", "AFOOT_ADDR"}},
		"another unknown one":    {environ("AFOOT_MAX_TASK=5"), []string{"AFOOT_MAX_TASK", "AFOOT_MAX_TASKS"}},
		"bad duration":           {environ("AFOOT_KILL_GRACE=banana"), []string{"AFOOT_KILL_GRACE"}},
		"negative duration":      {environ("AFOOT_WAIT_MAX=-5s"), []string{"AFOOT_WAIT_MAX"}},
		"bad number":             {environ("AFOOT_MAX_TASKS_PER_OWNER=many"), []string{"AFOOT_MAX_TASKS_PER_OWNER"}},
		"zero tasks":             {environ("AFOOT_MAX_TASKS_PER_OWNER=0"), []string{"AFOOT_MAX_TASKS_PER_OWNER"}},
		"bad size":               {environ("AFOOT_OUTPUT_MAX_BYTES=64 parsecs"), []string{"AFOOT_OUTPUT_MAX_BYTES"}},
		"bad level":              {environ("AFOOT_LOG_LEVEL=shout"), []string{"AFOOT_LOG_LEVEL"}},
		"bad format":             {environ("AFOOT_LOG_FORMAT=xml"), []string{"AFOOT_LOG_FORMAT"}},
		"bad address":            {environ("AFOOT_ADDR=nonsense"), []string{"AFOOT_ADDR"}},
		"default over maximum":   {environ("AFOOT_WAIT_DEFAULT=11m"), []string{"AFOOT_WAIT_DEFAULT", "AFOOT_WAIT_MAX"}},
		"default over a maximum": {environ("AFOOT_WAIT_MAX=5s"), []string{"AFOOT_WAIT_DEFAULT"}},
		"certificate, no key":    {environ("AFOOT_TLS_CERT=/no/such.pem"), []string{"AFOOT_TLS_KEY"}},
		"missing workdir":        {environ("AFOOT_WORKDIR=/no/such/dir"), []string{"AFOOT_WORKDIR", "/no/such/dir"}},
		"missing env file":       {environ("AFOOT_ENV_FILE=/no/such/file"), []string{"/no/such/file"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := prepare(t)
			row.setup(t, d)
			d.refuses(row.words...)
		})
	}
}

func port(d *daemon) string { return d.addr[strings.LastIndexByte(d.addr, ':')+1:] }

func environ(kv string) func(*testing.T, *daemon) {
	return func(_ *testing.T, d *daemon) { d.env = append(d.env, kv) }
}

func secretFile(content string, mode os.FileMode) func(*testing.T, *daemon) {
	return func(t *testing.T, d *daemon) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "secret")
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		require.NoError(t, os.Chmod(path, mode))
		d.env = append(d.env, "AFOOT_JWT_SECRET_FILE="+path)
	}
}

func TestJ3OpenAddressWithKeysAndHosts(t *testing.T) {
	t.Parallel()
	d := prepare(t)
	d.env = append(d.env, "AFOOT_ADDR=0.0.0.0:"+port(d), "AFOOT_HOSTS=afoot.example")
	d.launch()
	d.ready()
	c := d.as("j3")
	require.Equal(t, http.StatusOK, c.do(t, http.MethodGet, "/tasks", nil, "Host: afoot.example").status)
}

// What the daemon sets for its children is known, and a file gives what the
// environment doesn't.
func TestJ3KnownVariables(t *testing.T) {
	t.Parallel()
	d := prepare(t, "AFOOT_TASK_ID=bash-1", "AFOOT_SESSION=s", "AFOOT_OUTPUT_MAX_BYTES=1000000")
	file := filepath.Join(t.TempDir(), "env")
	require.NoError(t, os.WriteFile(file, []byte("AFOOT_WAIT_DEFAULT=200ms\nAFOOT_KILL_GRACE=77h\n"), 0o600))
	d.env = append(d.env, "AFOOT_ENV_FILE="+file)
	d.launch()
	d.ready()
	c := d.as("j3")
	id := c.start(t, `trap "" TERM; while :; do sleep 0.703; done`).ID
	begun := time.Now()
	require.Equal(t, "running", c.read(t, id, "wait=true").Snapshot.Status)
	require.Less(t, time.Since(begun), patient(5*time.Second))
	c.kill(t, id)
	c.finish(t, id) // by the environment's grace, not the file's
}
