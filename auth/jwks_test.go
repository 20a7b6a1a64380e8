package auth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"
)

const (
	testIssuer   = "https://id.example"
	testAudience = "tasks"
)

// trusting configures a JWKS with the test's issuer and audience.
func trusting(jwks string) func(*Config) {
	return func(c *Config) { c.JWKS, c.Issuer, c.Audience = jwks, testIssuer, testAudience }
}

// by is a token of r's good claims from the test's issuer, signed by s.
func (r *rig) by(tb testing.TB, s signer, extra jwt.MapClaims) string {
	tb.Helper()
	claims := r.claims(jwt.MapClaims{"iss": testIssuer, "aud": testAudience, "sub": "ann"})
	maps.Copy(claims, extra)
	return signed(tb, s.method, s.private, s.kid, claims)
}

func jwksFileOf(tb testing.TB, signers ...signer) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "jwks.json")
	require.NoError(tb, os.WriteFile(path, document(tb, signers...), 0o644))
	return path
}

func TestJWKSFileVerifiesEachAlgorithm(t *testing.T) {
	signers := map[string]signer{"RS256": rsaSigner(t, "r"), "ES256": ecSigner(t, "e"), "EdDSA": edSigner(t, "d")}
	r := newRig(t, trusting(jwksFileOf(t, signers["RS256"], signers["ES256"], signers["EdDSA"])))
	for alg, s := range signers {
		t.Run(alg, func(t *testing.T) {
			p, err := r.Verify(r.by(t, s, nil))
			require.NoError(t, err)
			require.Equal(t, Claims{Session: "s1", Subject: "ann", Scopes: TasksRead | TasksWrite}, p.claims())

			nameless := s
			nameless.kid = ""
			_, err = r.Verify(r.by(t, nameless, nil))
			require.NoError(t, err, "without kid all keys are tried")

			_, err = r.Verify(r.by(t, s, jwt.MapClaims{"aud": "bank"}))
			requireKind(t, KindUnauthenticated, err)
			_, err = r.Verify(r.by(t, s, jwt.MapClaims{"iss": "https://evil.example"}))
			requireKind(t, KindUnauthenticated, err)
		})
	}
	token, _, err := r.Mint(Claims{Session: "s2"}, time.Hour)
	require.NoError(t, err)
	p, err := r.Verify(token)
	require.NoError(t, err, "the daemon's own tokens are good as well")
	require.Equal(t, "s2", p.Session)
}

// TestJ4AlgorithmsAreBoundToTheirKeys: no algorithm reaches another's keys,
// above all not a public key as an HS256 secret.
func TestJ4AlgorithmsAreBoundToTheirKeys(t *testing.T) {
	rs, es, ed := rsaSigner(t, "r"), ecSigner(t, "e"), edSigner(t, "d")
	doc := document(t, rs, es, ed)
	path := filepath.Join(t.TempDir(), "jwks.json")
	require.NoError(t, os.WriteFile(path, doc, 0o644))
	r := newRig(t, trusting(path))
	claims := r.claims(jwt.MapClaims{"iss": testIssuer, "aud": testAudience})
	der, err := x509.MarshalPKIXPublicKey(rs.public)
	require.NoError(t, err)
	rsaKey := rs.private.(*rsa.PrivateKey)
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	require.NoError(t, err)

	as := func(s signer, kid string) signer { s.kid = kid; return s }
	tests := map[string]string{
		"HS256 by the public key's PEM":     signed(t, jwt.SigningMethodHS256, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), "r", claims),
		"HS256 by the public key's DER":     signed(t, jwt.SigningMethodHS256, der, "r", claims),
		"HS256 by the modulus":              signed(t, jwt.SigningMethodHS256, rsaKey.N.Bytes(), "", claims),
		"HS256 by the Ed25519 public key":   signed(t, jwt.SigningMethodHS256, []byte(ed.public.(ed25519.PublicKey)), "d", claims),
		"HS256 by the whole document":       signed(t, jwt.SigningMethodHS256, doc, "", claims),
		"RS256 that names the EC key":       r.by(t, as(rs, "e"), nil),
		"ES256 that names the RSA key":      r.by(t, as(es, "r"), nil),
		"EdDSA that names the EC key":       r.by(t, as(ed, "e"), nil),
		"RS384":                             signed(t, jwt.SigningMethodRS384, rs.private, "r", claims),
		"PS256":                             signed(t, jwt.SigningMethodPS256, rs.private, "r", claims),
		"ES384":                             signed(t, jwt.SigningMethodES384, p384, "e", claims),
		"RS256 of a stranger":               r.by(t, rsaSigner(t, "r"), nil),
		"RS256 of a stranger without kid":   r.by(t, rsaSigner(t, ""), nil),
		"ES256 of a stranger":               r.by(t, ecSigner(t, "e"), nil),
		"EdDSA of a stranger":               r.by(t, edSigner(t, "d"), nil),
		"an unknown kid":                    r.by(t, as(rs, "x"), nil),
		"the daemon's secret, no iss":       r.token(t, jwt.MapClaims{"aud": testAudience}),
		"alg none":                          signed(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, "r", claims) + "AAAA",
		"RS256 header, HS256 by the secret": raw(t, r.secret, `{"alg":"RS256","kid":"r"}`, `{"exp":1900000000}`),
	}
	for name, token := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := r.Verify(token)
			requireKind(t, KindUnauthenticated, err)
		})
	}
	odd := jwt.NewWithClaims(jwt.SigningMethodRS256, claims)
	odd.Header["kid"] = 7
	token, err := odd.SignedString(rs.private)
	require.NoError(t, err)
	_, err = r.Verify(token)
	requireKind(t, KindUnauthenticated, err)
}

// TestUnusableKeysAreLeftOut: one bad key doesn't spoil a set, and is not used.
func TestUnusableKeysAreLeftOut(t *testing.T) {
	good := ecSigner(t, "good")
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	require.NoError(t, err)
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	require.NoError(t, err)
	encryption, wrongAlg, signs := rsaSigner(t, "enc"), rsaSigner(t, "alg"), edSigner(t, "ops")
	text := func(v any) json.RawMessage {
		data, err := json.Marshal(v)
		require.NoError(t, err)
		return data
	}
	private, err := jwkset.NewJWKFromKey(rsaSigner(t, "private").private, jwkset.JWKOptions{
		Metadata: jwkset.JWKMetadataOptions{KID: "private"}, Marshal: jwkset.JWKMarshalOptions{Private: true},
	})
	require.NoError(t, err)
	keys := []json.RawMessage{
		text(signer{kid: "small", public: &small.PublicKey}.jwk(t, jwkset.JWKMetadataOptions{})),
		text(signer{kid: "p384", public: &p384.PublicKey}.jwk(t, jwkset.JWKMetadataOptions{})),
		text(encryption.jwk(t, jwkset.JWKMetadataOptions{USE: jwkset.UseEnc})),
		text(wrongAlg.jwk(t, jwkset.JWKMetadataOptions{ALG: jwkset.AlgRS512})),
		text(signs.jwk(t, jwkset.JWKMetadataOptions{KEYOPS: []jwkset.KEYOPS{jwkset.KeyOpsSign}})),
		json.RawMessage(`{"kty":"oct","kid":"secret","k":"` + strings.Repeat("A", 43) + `"}`),
		json.RawMessage(`{"kty":"EC","crv":"P-256","kid":"off","x":"AAAA","y":"AAAA"}`),
		json.RawMessage(`{"kty":"OKP","crv":"Ed448","x":"AAAA"}`),
		json.RawMessage(`{"kty":7}`),
		json.RawMessage(`null`),
		json.RawMessage(`"key"`),
		text(private.Marshal()),
		text(good.jwk(t, jwkset.JWKMetadataOptions{USE: jwkset.UseSig, ALG: jwkset.AlgES256, KEYOPS: []jwkset.KEYOPS{jwkset.KeyOpsVerify}})),
	}
	var log logbook
	ring, err := parseKeyset(text(map[string]any{"keys": keys}), "the set", log.logger())
	require.NoError(t, err)
	require.Len(t, ring.byID, 2, "the good one, and the public half of the private one")
	require.Equal(t, len(keys)-2, strings.Count(log.String(), "left out"), log.String())
	for _, k := range ring.byID {
		require.NotImplements(t, (*crypto.Signer)(nil), k.material, "no private half is kept")
	}

	path := filepath.Join(t.TempDir(), "jwks.json")
	require.NoError(t, os.WriteFile(path, text(map[string]any{"keys": keys}), 0o644))
	r := newRig(t, trusting(path))
	_, err = r.Verify(r.by(t, good, nil))
	require.NoError(t, err)
	for _, s := range []signer{encryption, wrongAlg, signs, {"small", jwt.SigningMethodRS256, small, nil}} {
		_, err = r.Verify(r.by(t, s, nil))
		requireKind(t, KindUnauthenticated, err)
	}
}

func TestJ3BadJWKSRefusesToStart(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	_, err := EnsureSecret(secret)
	require.NoError(t, err)
	file := func(name, data string, perm os.FileMode) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(data), 0o600))
		require.NoError(t, os.Chmod(path, perm))
		return path
	}
	good := string(document(t, edSigner(t, "k")))
	many := `{"keys":[` + strings.Repeat(`{},`, maxKeys) + `{}]}`
	tests := map[string]struct{ jwks, issuer, audience, says string }{
		"no issuer":         {file("1", good, 0o644), "", "a", "AFOOT_JWT_ISSUER"},
		"no audience":       {file("2", good, 0o644), "i", "", "AFOOT_JWT_AUDIENCE"},
		"a URL, no issuer":  {"https://id.example/jwks", "", "", "AFOOT_JWT_ISSUER"},
		"missing":           {filepath.Join(dir, "missing"), "i", "a", "no such file"},
		"empty":             {file("3", "", 0o644), "i", "a", "not a JWKS"},
		"not JSON":          {file("4", "keys", 0o644), "i", "a", "not a JWKS"},
		"no keys":           {file("5", `{}`, 0o644), "i", "a", "not a JWKS"},
		"no key":            {file("6", `{"keys":[]}`, 0o644), "i", "a", "no key for RS256"},
		"too many keys":     {file("7", many, 0o644), "i", "a", "101 keys"},
		"too large":         {file("8", strings.Repeat(" ", maxKeyset+1), 0o644), "i", "a", "larger than"},
		"writable by all":   {file("9", good, 0o666), "i", "a", "run chmod o-w"},
		"a directory":       {dir, "i", "a", "not a regular file"},
		"another scheme":    {"ftp://id.example/jwks", "i", "a", "http or https URL"},
		"no host":           {"https:///jwks", "i", "a", "malformed"},
		"malformed":         {"https://user:pa ss@[::1/jwks", "i", "a", "malformed"},
		"a key, not a set":  {file("10", `{"kty":"OKP"}`, 0o644), "i", "a", "not a JWKS"},
		"keys not an array": {file("11", `{"keys":{}}`, 0o644), "i", "a", "not a JWKS"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := New(Config{SecretFile: secret, JWKS: tt.jwks, Issuer: tt.issuer, Audience: tt.audience})
			require.ErrorContains(t, err, tt.says)
			require.NotContains(t, err.Error(), "pa ss")
		})
	}
}

// TestJWKSFileIsReadAgainWhenItChanged: a new key counts at once; a key that is
// gone ends its tokens, remembered ones within a second of use.
func TestJWKSFileIsReadAgainWhenItChanged(t *testing.T) {
	old, stays, fresh := edSigner(t, "old"), ecSigner(t, "stays"), edSigner(t, "new")
	path := jwksFileOf(t, old, stays)
	link := path + ".link"
	require.NoError(t, os.Symlink(path, link))
	r := newRig(t, trusting(link))
	oldToken, staysToken, freshToken := r.by(t, old, nil), r.by(t, stays, nil), r.by(t, fresh, nil)
	for _, token := range []string{oldToken, staysToken} {
		_, err := r.Verify(token)
		require.NoError(t, err)
	}
	_, err := r.Verify(freshToken)
	requireKind(t, KindUnauthenticated, err)

	replace(t, path, document(t, stays, fresh), 0o644)
	_, err = r.Verify(oldToken)
	require.NoError(t, err, "remembered; nobody has looked yet")
	_, err = r.Verify(freshToken)
	require.NoError(t, err, "a miss looks at once")
	_, err = r.Verify(oldToken)
	requireKind(t, KindUnauthenticated, err)
	_, err = r.Verify(staysToken)
	require.NoError(t, err)

	replace(t, path, document(t, old), 0o644)
	r.clock.advance(pollEvery)
	_, err = r.Verify(staysToken)
	requireKind(t, KindUnauthenticated, err)

	require.NoError(t, os.WriteFile(path, []byte("{"), 0o644))
	r.clock.advance(pollEvery)
	_, err = r.Verify(oldToken)
	require.NoError(t, err, "a damaged file leaves the keys")
}
