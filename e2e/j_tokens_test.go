package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

func TestJ4ForgedTokens(t *testing.T) {
	t.Parallel()
	d := serve(t, "AFOOT_JWT_AUDIENCE=afoot", "AFOOT_JWT_ISSUER=e2e")
	good := func(more jwt.MapClaims) jwt.MapClaims {
		claims := jwt.MapClaims{
			"exp": time.Now().Add(time.Hour).Unix(), "sid": "j4", "sub": "e2e",
			"aud": "afoot", "iss": "e2e", "scope": "tasks:read tasks:write",
		}
		for name, value := range more {
			if value == nil {
				delete(claims, name)
			} else {
				claims[name] = value
			}
		}
		return claims
	}
	sign := func(method jwt.SigningMethod, key any, claims jwt.MapClaims) string {
		token, err := jwt.NewWithClaims(method, claims).SignedString(key)
		require.NoError(t, err)
		return token
	}
	hs := func(more jwt.MapClaims) string { return sign(jwt.SigningMethodHS256, d.secret, good(more)) }
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	parts := strings.Split(hs(nil), ".")
	header := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	now := time.Now()

	require.Equal(t, http.StatusOK, d.with(hs(nil)).do(t, http.MethodGet, "/tasks", nil).status)
	for name, token := range map[string]string{
		"alg none":                 sign(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, good(nil)),
		"alg None":                 header(`{"alg":"None","typ":"JWT"}`) + "." + parts[1] + ".",
		"alg none, signed":         header(`{"alg":"none"}`) + "." + parts[1] + "." + parts[2],
		"no alg":                   header(`{"typ":"JWT"}`) + "." + parts[1] + "." + parts[2],
		"HS384":                    sign(jwt.SigningMethodHS384, d.secret, good(nil)),
		"HS512":                    sign(jwt.SigningMethodHS512, d.secret, good(nil)),
		"ES256 of a stranger":      sign(jwt.SigningMethodES256, ec, good(nil)),
		"RS256 by name":            header(`{"alg":"RS256","typ":"JWT"}`) + "." + parts[1] + "." + parts[2],
		"another secret":           sign(jwt.SigningMethodHS256, []byte(strings.Repeat("z", 40)), good(nil)),
		"empty secret":             sign(jwt.SigningMethodHS256, []byte{}, good(nil)),
		"no exp":                   hs(jwt.MapClaims{"exp": nil}),
		"exp as text":              hs(jwt.MapClaims{"exp": strconv.FormatInt(now.Add(time.Hour).Unix(), 10)}),
		"exp as true":              hs(jwt.MapClaims{"exp": true}),
		"exp as a list":            hs(jwt.MapClaims{"exp": []int64{now.Add(time.Hour).Unix()}}),
		"exp zero":                 hs(jwt.MapClaims{"exp": 0}),
		"exp negative":             hs(jwt.MapClaims{"exp": -1}),
		"expired":                  hs(jwt.MapClaims{"exp": now.Add(-time.Minute).Unix()}),
		"just expired":             hs(jwt.MapClaims{"exp": now.Add(-2 * time.Second).Unix()}),
		"future nbf":               hs(jwt.MapClaims{"nbf": now.Add(time.Hour).Unix()}),
		"nbf as text":              hs(jwt.MapClaims{"nbf": "soon"}),
		"wrong aud":                hs(jwt.MapClaims{"aud": "other"}),
		"wrong auds":               hs(jwt.MapClaims{"aud": []string{"other", "afoot2"}}),
		"no aud":                   hs(jwt.MapClaims{"aud": nil}),
		"aud as number":            hs(jwt.MapClaims{"aud": 5}),
		"wrong iss":                hs(jwt.MapClaims{"iss": "evil"}),
		"no iss":                   hs(jwt.MapClaims{"iss": nil}),
		"sid as number":            hs(jwt.MapClaims{"sid": 5}),
		"sid empty":                hs(jwt.MapClaims{"sid": ""}),
		"sid too long":             hs(jwt.MapClaims{"sid": strings.Repeat("s", 129)}),
		"sid not ASCII":            hs(jwt.MapClaims{"sid": "sé"}),
		"sid with a newline":       hs(jwt.MapClaims{"sid": "a\nb"}),
		"sid with NUL":             hs(jwt.MapClaims{"sid": "a\x00b"}),
		"scope as a number":        hs(jwt.MapClaims{"scope": 5}),
		"changed payload":          parts[0] + "." + header(`{"sid":"other","exp":9999999999,"scope":"tasks:write"}`) + "." + parts[2],
		"changed signature":        parts[0] + "." + parts[1] + "." + strings.Repeat("A", len(parts[2])),
		"cut signature":            parts[0] + "." + parts[1] + "." + parts[2][:10],
		"no signature":             parts[0] + "." + parts[1] + ".",
		"two parts":                parts[0] + "." + parts[1],
		"four parts":               strings.Join(parts, ".") + "." + parts[2],
		"payload is no object":     parts[0] + "." + header(`[]`) + "." + parts[2],
		"padding":                  parts[0] + "==." + parts[1] + "." + parts[2],
		"not a token":              "abc",
		"dots":                     "..",
		"many dots":                strings.Repeat(".", 30000),
		"a long word":              strings.Repeat("a", 30000),
		"two tokens":               hs(nil) + " " + hs(nil),
		"two tokens with a comma":  hs(nil) + "," + hs(nil),
		"the secret itself":        string(d.secret),
		"key by file name":         header(`{"alg":"HS256","kid":"../../../dev/null"}`) + "." + parts[1] + "." + parts[2],
		"key inside":               header(`{"alg":"HS256","jwk":{"kty":"oct","k":"AAAA"}}`) + "." + parts[1] + "." + parts[2],
		"key elsewhere":            header(`{"alg":"RS256","jku":"http://127.0.0.1:1/k"}`) + "." + parts[1] + "." + parts[2],
		"critical extension":       header(`{"alg":"HS256","crit":["b64"],"b64":false}`) + "." + parts[1] + "." + parts[2],
		"duplicate exp, last good": parts[0] + "." + header(`{"exp":1,"exp":9999999999}`) + "." + parts[2],
	} {
		t.Run(name, func(t *testing.T) {
			for _, path := range []string{"/tasks", "/events", "/agents", "/version"} {
				a := d.with(token).do(t, http.MethodGet, path, nil)
				a.refused(t, http.StatusUnauthorized, "unauthenticated")
				require.True(t, strings.HasPrefix(a.header.Get("WWW-Authenticate"), "Bearer"), "%v", a.header)
				require.NotContains(t, a.String(), string(d.secret))
			}
		})
	}
	t.Run("no token", func(t *testing.T) {
		for _, path := range []string{"/tasks", "/tasks/bash-1", "/tasks/bash-1/output", "/tasks/bash-1/log", "/events", "/agents", "/version", "/metrics"} {
			a := d.with("").do(t, http.MethodGet, path, nil)
			a.refused(t, http.StatusUnauthorized, "unauthenticated")
			require.True(t, strings.HasPrefix(a.header.Get("WWW-Authenticate"), "Bearer"), "%v", a.header)
		}
		for _, value := range []string{"Bearer", "Bearer ", "Bearer  ", "Token " + hs(nil), hs(nil)} {
			a := d.with("").do(t, http.MethodGet, "/tasks", nil, "Authorization: "+value)
			require.Equal(t, http.StatusUnauthorized, a.status, "%.40q: %s", value, a)
		}
	})
	t.Run("open paths", func(t *testing.T) {
		for _, path := range []string{"/healthz", "/readyz", "/openapi.yaml", "/"} {
			a := d.with("").do(t, http.MethodGet, path, nil)
			require.Equal(t, http.StatusOK, a.status, "%s: %s", path, a)
		}
	})
	t.Run("several audiences", func(t *testing.T) {
		a := d.with(hs(jwt.MapClaims{"aud": []string{"x", "afoot"}})).do(t, http.MethodGet, "/tasks", nil)
		require.Equal(t, http.StatusOK, a.status, "%s", a)
	})
}

func TestJ4MillionDots(t *testing.T) {
	t.Parallel()
	d := serve(t)
	c := d.as("j4")
	storm := func() {
		var g errgroup.Group
		for i := range 100 {
			g.Go(func() error {
				n := 1000000
				if i%2 == 1 {
					n = 50000
				}
				w, err := d.dial()
				if err != nil {
					return err
				}
				defer func() { _ = w.conn.Close() }()
				begun := time.Now()
				// The daemon may answer and close before it has taken all of it.
				_, _ = w.conn.Write([]byte("GET /tasks HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + strings.Repeat(".", n) + "\r\n\r\n"))
				res, err := http.ReadResponse(w.r, nil)
				if err != nil {
					if n == 1000000 {
						return nil // reset while it still sent: refused as well
					}
					return err
				}
				_ = res.Body.Close()
				if n == 1000000 && res.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
					return fmt.Errorf("%d dots: %s", n, res.Status)
				}
				if n == 50000 && res.StatusCode != http.StatusUnauthorized {
					return fmt.Errorf("%d dots: %s", n, res.Status)
				}
				if took := time.Since(begun); took > patient(5*time.Second) {
					return fmt.Errorf("%d dots took %v", n, took)
				}
				return nil
			})
		}
		require.NoError(t, g.Wait())
	}
	storm()
	before := d.residentKiB(t)
	for range 3 {
		storm()
	}
	require.Less(t, d.residentKiB(t), before+40<<10, "memory stays flat")
	require.Empty(t, c.list(t, ""))
}

func TestJ4Scopes(t *testing.T) {
	t.Parallel()
	d := serve(t)
	all := d.as("j4")
	id := all.start(t, `echo out; sleep 703`).ID
	all.says(t, id, "out")
	scoped := func(scope any) *client {
		claims := jwt.MapClaims{"sid": "j4", "scope": scope}
		if scope == nil {
			claims = jwt.MapClaims{"sid": "j4", "exp": time.Now().Add(time.Hour).Unix()}
			token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString(d.secret)
			require.NoError(t, err)
			return d.with(token)
		}
		return d.with(d.mint(claims))
	}
	type call struct {
		method, path string
		body         any
	}
	look := []call{
		{"GET", "/tasks", nil},
		{"GET", "/tasks/" + id, nil},
		{"GET", "/tasks/" + id + "/output?offset=0", nil},
		{"GET", "/tasks/" + id + "/output?offset=4&wait=true&timeout_ms=10", nil},
		{"GET", "/tasks/" + id + "/log", nil},
		{"GET", "/agents", nil},
	}
	act := []call{
		{"GET", "/tasks/" + id + "/output", nil},
		{"GET", "/tasks/" + id + "/output?wait=true&timeout_ms=10", nil},
		{"POST", "/tasks", startBody("true")},
		{"POST", "/tasks/" + id + "/ack", fields{"nextOffset": 0}},
		{"DELETE", "/tasks/" + id, nil},
		{"DELETE", "/tasks/" + id + "?purge=true", nil},
		{"POST", "/agents", fields{}},
	}
	metrics := []call{{"GET", "/metrics", nil}}
	for name, row := range map[string]struct {
		scope        any
		allowed, not []call
	}{
		"none":              {nil, nil, append(append(append([]call{}, look...), act...), metrics...)},
		"empty":             {"", nil, append(append([]call{}, look...), act...)},
		"unknown":           {"tasks:readwrite admin *", nil, append(append([]call{}, look...), act...)},
		"a piece of a word": {"xtasks:read tasks:writer", nil, append(append([]call{}, look...), act...)},
		"read":              {"tasks:read", look, append(append([]call{}, act...), metrics...)},
		"metrics":           {"metrics", metrics, append(append([]call{}, look...), act...)},
		"read and metrics":  {"openid tasks:read  metrics", append(append([]call{}, look...), metrics...), act},
		"write":             {"tasks:write", look, metrics},
	} {
		t.Run(name, func(t *testing.T) {
			c := scoped(row.scope)
			for _, x := range row.allowed {
				a := c.do(t, x.method, x.path, x.body)
				require.Equal(t, http.StatusOK, a.status, "%s %s: %s", x.method, x.path, a)
			}
			for _, x := range row.not {
				c.do(t, x.method, x.path, x.body).refused(t, http.StatusForbidden, "forbidden")
			}
		})
	}
	require.Equal(t, "running", all.get(t, id).Status)
	require.Equal(t, "out\n", all.read(t, id, "").Text, "looking consumed nothing")
	require.Len(t, all.list(t, ""), 1)
	writer := scoped("tasks:write")
	require.Equal(t, "requested", writer.kill(t, id).Outcome)
	writer.subscribe(t, "", "").cut()
}
