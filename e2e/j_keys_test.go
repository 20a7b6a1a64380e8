package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"
)

func TestJ4TokenCommand(t *testing.T) {
	t.Parallel()
	d := prepare(t)
	d.unset("AFOOT_JWT_SECRET_FILE") // the daemon makes one, the command finds it
	d.launch()
	d.ready()
	mint := func(args ...string) string {
		t.Helper()
		out, errs, code := d.command(append([]string{"token"}, args...)...)
		require.Equal(t, 0, code, "%s", errs)
		require.Regexp(t, `^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\n$`, out, "the token and nothing else")
		return strings.TrimSpace(out)
	}
	claims := func(token string) map[string]any {
		t.Helper()
		data, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
		require.NoError(t, err)
		var m map[string]any
		require.NoError(t, json.Unmarshal(data, &m))
		return m
	}
	token := mint("--session", "s1", "--ttl", "1h")
	m := claims(token)
	require.Equal(t, "s1", m["sid"])
	require.InDelta(t, float64(time.Now().Add(time.Hour).Unix()), m["exp"], 30)
	c := d.with(token)
	s := c.start(t, "echo hi")
	require.Equal(t, "s1", s.OwnerSession)
	_, text := c.finish(t, s.ID)
	require.Equal(t, "hi\n", text)
	require.Equal(t, "hi\n", c.read(t, s.ID, "").Text, "read and write are granted")

	require.NotContains(t, claims(mint("--ttl", "1h")), "sid")
	require.Empty(t, d.with(mint("--ttl", "5m")).list(t, ""))

	pinned := c.open(t, fields{}).agent
	p := d.with(mint("--session", "s1", "--agent", pinned, "--ttl", "1h"))
	require.Equal(t, pinned, p.start(t, "true").Agent)
	p.acting("default").do(t, http.MethodGet, "/tasks", nil).refused(t, http.StatusForbidden, "forbidden")

	reader := d.with(mint("--session", "s1", "--scope", "tasks:read", "--ttl", "1h"))
	require.Equal(t, http.StatusOK, reader.do(t, http.MethodGet, "/tasks", nil).status)
	reader.do(t, http.MethodPost, "/tasks", startBody("true")).refused(t, http.StatusForbidden, "forbidden")

	for _, args := range [][]string{{"--ttl", "0s"}, {"--ttl", "-1h"}, {"--ttl", "soon"}, {"--session", strings.Repeat("s", 129)}, {"--session", "é"}} {
		out, errs, code := d.command(append([]string{"token"}, args...)...)
		require.NotZero(t, code, "%v", args)
		require.Empty(t, out)
		require.NotEmpty(t, errs)
	}
}

func TestJ4CodesAndRenewal(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("j4")
	none := d.with("")
	var code struct {
		Code      string `json:"code"`
		ExpiresAt int64  `json:"expiresAt"`
	}
	a := c.do(t, http.MethodPost, "/auth/code", nil)
	require.Equal(t, http.StatusCreated, a.status, "%s", a)
	a.into(t, &code)
	require.GreaterOrEqual(t, len(code.Code), 22, "128 bits")
	require.InDelta(t, float64(time.Now().Add(time.Minute).UnixMilli()), code.ExpiresAt, 5000)
	var token struct {
		Token string `json:"token"`
	}
	a = none.do(t, http.MethodPost, "/auth/exchange", fields{"code": code.Code})
	require.Less(t, a.status, 300, "%s", a)
	require.Contains(t, a.header.Get("Cache-Control"), "no-store")
	a.into(t, &token)
	require.Equal(t, "j4", d.with(token.Token).start(t, "true").OwnerSession)
	for _, bad := range []string{code.Code, "", "x", strings.Repeat("A", 22)} {
		a = none.do(t, http.MethodPost, "/auth/exchange", fields{"code": bad})
		require.Contains(t, []int{400, 401}, a.status, "%q: %s", bad, a)
	}
	a = c.do(t, http.MethodPost, "/auth/renew", nil)
	require.Less(t, a.status, 300, "%s", a)
	a.into(t, &token)
	require.Len(t, d.with(token.Token).list(t, ""), 1)
	for _, path := range []string{"/auth/code", "/auth/renew"} {
		none.do(t, http.MethodPost, path, nil).refused(t, http.StatusUnauthorized, "unauthenticated")
	}
	limited := false
	for range 200 {
		a = c.do(t, http.MethodPost, "/auth/code", nil)
		if a.status == http.StatusTooManyRequests {
			a.refused(t, http.StatusTooManyRequests, "limit_reached")
			require.NotEmpty(t, a.header.Get("Retry-After"))
			limited = true
			break
		}
	}
	require.True(t, limited, "codes are rate-limited")
}

func TestJ4SecretRotation(t *testing.T) {
	t.Parallel()
	d := prepare(t)
	d.unset("AFOOT_JWT_SECRET_FILE")
	d.launch()
	d.ready()
	out, errs, code := d.command("token", "--session", "j4", "--ttl", "1h")
	require.Equal(t, 0, code, errs)
	old := d.with(strings.TrimSpace(out))
	require.Empty(t, old.list(t, ""))
	_, errs, code = d.command("secret", "rotate")
	require.Equal(t, 0, code, errs)
	out, errs, code = d.command("token", "--session", "j4", "--ttl", "1h")
	require.Equal(t, 0, code, errs)
	fresh := d.with(strings.TrimSpace(out))
	require.NotEqual(t, old.token, fresh.token)
	eventually(t, 15*time.Second, "the new secret is taken", func() bool {
		return fresh.do(t, http.MethodGet, "/tasks", nil).status == http.StatusOK
	})
	require.Equal(t, http.StatusOK, old.do(t, http.MethodGet, "/tasks", nil).status, "the old one stays valid for a while")
}

func TestJ4KeySets(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	b64 := base64.RawURLEncoding.EncodeToString
	set, err := json.Marshal(map[string]any{"keys": []any{map[string]any{
		"kty": "EC", "crv": "P-256", "kid": "one", "use": "sig", "alg": "ES256",
		"x": b64(key.X.FillBytes(make([]byte, 32))), "y": b64(key.Y.FillBytes(make([]byte, 32))),
	}}})
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "jwks.json")
	require.NoError(t, os.WriteFile(path, set, 0o600))
	d := serve(t, "AFOOT_JWKS="+path, "AFOOT_JWT_ISSUER=https://issuer.example", "AFOOT_JWT_AUDIENCE=afoot")
	sign := func(method jwt.SigningMethod, with any, kid string, more jwt.MapClaims) *client {
		claims := jwt.MapClaims{
			"exp": time.Now().Add(time.Hour).Unix(), "sid": "j4", "iss": "https://issuer.example",
			"aud": "afoot", "scope": "tasks:read tasks:write",
		}
		maps.Copy(claims, more)
		token := jwt.NewWithClaims(method, claims)
		token.Header["kid"] = kid
		text, err := token.SignedString(with)
		require.NoError(t, err)
		return d.with(text)
	}
	require.Equal(t, "j4", sign(jwt.SigningMethodES256, key, "one", nil).start(t, "true").OwnerSession)
	stranger, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	for name, c := range map[string]*client{
		"a stranger's key":           sign(jwt.SigningMethodES256, stranger, "one", nil),
		"an unknown key":             sign(jwt.SigningMethodES256, stranger, "two", nil),
		"wrong issuer":               sign(jwt.SigningMethodES256, key, "one", jwt.MapClaims{"iss": "https://evil.example"}),
		"wrong audience":             sign(jwt.SigningMethodES256, key, "one", jwt.MapClaims{"aud": "other"}),
		"public key as HMAC secret":  sign(jwt.SigningMethodHS256, set, "one", nil),
		"x coordinate as the secret": sign(jwt.SigningMethodHS256, key.X.Bytes(), "one", nil),
	} {
		a := c.do(t, http.MethodGet, "/tasks", nil)
		require.Equal(t, http.StatusUnauthorized, a.status, "%s: %s", name, a)
	}
}
