package auth

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"
)

// clock is a clock that only moves when it is told to. It begins on a whole
// second, so that times compare with claims.
type clock struct{ offset atomic.Int64 }

func (c *clock) now() time.Time {
	return time.Unix(1_800_000_000, 0).Add(time.Duration(c.offset.Load()))
}

func (c *clock) advance(d time.Duration) { c.offset.Add(int64(d)) }

// logbook is a logger's output that tests may read while others write.
type logbook struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logbook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (l *logbook) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// rig is an authority with a clock and a secret file of its own.
type rig struct {
	*Authority

	clock  *clock
	path   string
	secret []byte
}

func newRig(tb testing.TB, change ...func(*Config)) *rig {
	tb.Helper()
	r := &rig{clock: &clock{}, path: filepath.Join(tb.TempDir(), "keys", "secret")}
	created, err := EnsureSecret(r.path)
	require.NoError(tb, err)
	require.True(tb, created)
	r.secret, err = LoadSecret(r.path)
	require.NoError(tb, err)
	cfg := Config{SecretFile: r.path, Now: r.clock.now}
	for _, c := range change {
		c(&cfg)
	}
	r.Authority, err = New(cfg)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, r.Close()) })
	return r
}

// claims gives good claims of session s1 that live an hour, changed by extra; a
// nil removes a claim.
func (r *rig) claims(extra jwt.MapClaims) jwt.MapClaims {
	now := r.clock.now().Unix()
	claims := jwt.MapClaims{"sid": "s1", "scope": "tasks:read tasks:write", "iat": now, "exp": now + 3600}
	maps.Copy(claims, extra)
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	return claims
}

// token signs claims with the daemon's secret.
func (r *rig) token(tb testing.TB, extra jwt.MapClaims) string {
	tb.Helper()
	return signed(tb, jwt.SigningMethodHS256, r.secret, "", r.claims(extra))
}

func signed(tb testing.TB, method jwt.SigningMethod, key any, kid string, claims jwt.MapClaims) string {
	tb.Helper()
	token := jwt.NewWithClaims(method, claims)
	if kid != "" {
		token.Header["kid"] = kid
	}
	s, err := token.SignedString(key)
	require.NoError(tb, err)
	return s
}

// raw signs a token whose header and payload are given as text.
func raw(tb testing.TB, secret []byte, header, payload string) string {
	tb.Helper()
	text := base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString([]byte(payload))
	sig, err := jwt.SigningMethodHS256.Sign(text, secret)
	require.NoError(tb, err)
	return text + "." + base64.RawURLEncoding.EncodeToString(sig)
}

func requireKind(tb testing.TB, kind Kind, err error) *Error {
	tb.Helper()
	require.Error(tb, err)
	var e *Error
	require.ErrorAs(tb, err, &e)
	require.Equal(tb, kind, e.Kind, e.Message)
	require.NotEmpty(tb, e.Message)
	return e
}

// signer is a real key pair of an identity provider.
type signer struct {
	kid     string
	method  jwt.SigningMethod
	private any
	public  any
}

func rsaSigner(tb testing.TB, kid string) signer {
	tb.Helper()
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(tb, err)
	return signer{kid, jwt.SigningMethodRS256, k, &k.PublicKey}
}

func ecSigner(tb testing.TB, kid string) signer {
	tb.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(tb, err)
	return signer{kid, jwt.SigningMethodES256, k, &k.PublicKey}
}

func edSigner(tb testing.TB, kid string) signer {
	tb.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(tb, err)
	return signer{kid, jwt.SigningMethodEdDSA, private, public}
}

func (s signer) jwk(tb testing.TB, meta jwkset.JWKMetadataOptions) jwkset.JWKMarshal {
	tb.Helper()
	meta.KID = s.kid
	k, err := jwkset.NewJWKFromKey(s.public, jwkset.JWKOptions{Metadata: meta})
	require.NoError(tb, err)
	return k.Marshal()
}

// document is the JWKS of the signers.
func document(tb testing.TB, signers ...signer) []byte {
	tb.Helper()
	set := jwkset.JWKSMarshal{Keys: []jwkset.JWKMarshal{}}
	for _, s := range signers {
		set.Keys = append(set.Keys, s.jwk(tb, jwkset.JWKMetadataOptions{}))
	}
	data, err := json.Marshal(set)
	require.NoError(tb, err)
	return data
}

// replace puts a file in place in one step, as a careful operator does.
func replace(tb testing.TB, path string, data []byte, perm os.FileMode) {
	tb.Helper()
	draft := path + ".draft"
	require.NoError(tb, os.WriteFile(draft, data, perm))
	require.NoError(tb, os.Chmod(draft, perm))
	require.NoError(tb, os.Rename(draft, path))
}
