package auth

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSetJWKS(t *testing.T) {
	stays, goes, comes := ecSigner(t, "stays"), edSigner(t, "goes"), ecSigner(t, "comes")
	r := newRig(t, trusting(jwksFileOf(t, stays, goes)))
	good := func(s signer) {
		t.Helper()
		_, err := r.Verify(r.by(t, s, nil))
		require.NoError(t, err, s.kid)
	}
	bad := func(s signer) {
		t.Helper()
		_, err := r.Verify(r.by(t, s, nil))
		requireKind(t, KindUnauthenticated, err)
	}
	remembered := r.by(t, goes, nil)
	_, err := r.Verify(remembered)
	require.NoError(t, err)
	good(stays)
	bad(comes)

	require.NoError(t, r.SetJWKS(jwksFileOf(t, stays, comes)))
	good(stays)
	good(comes)
	bad(goes)
	_, err = r.Verify(remembered)
	requireKind(t, KindUnauthenticated, err)

	require.ErrorContains(t, r.SetJWKS(filepath.Join(t.TempDir(), "none")), "can't be opened")
	silent := httptest.NewServer(http.NotFoundHandler())
	defer silent.Close()
	require.ErrorContains(t, r.SetJWKS(silent.URL), "the one before it stays")
	good(comes)

	require.NoError(t, r.SetJWKS(""))
	bad(stays)
	bad(comes)
	token, _, err := r.Mint(Claims{Session: "s"}, time.Hour)
	require.NoError(t, err)
	_, err = r.Verify(token)
	require.NoError(t, err, "the daemon's own are good all along")
}

func TestSetJWKSNeedsIssuerAndAudience(t *testing.T) {
	r := newRig(t)
	require.ErrorContains(t, r.SetJWKS(jwksFileOf(t, ecSigner(t, "k"))), "AFOOT_JWT_ISSUER")
}

func TestSecretInMemory(t *testing.T) {
	_, err := New(Config{Secret: []byte("short")})
	require.ErrorContains(t, err, "at least 32")
	a, err := New(Config{Secret: NewSecret()})
	require.NoError(t, err)
	b, err := New(Config{Secret: NewSecret()})
	require.NoError(t, err)
	token, _, err := a.Mint(Claims{Session: "s"}, time.Hour)
	require.NoError(t, err)
	_, err = a.Verify(token)
	require.NoError(t, err)
	_, err = b.Verify(token)
	requireKind(t, KindUnauthenticated, err)
	require.NoError(t, a.Close())
	require.NoError(t, b.Close())
}
