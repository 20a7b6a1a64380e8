package auth

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
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

// gate is a log that holds whoever leaves a key out.
type gate struct {
	slog.Handler

	at, on chan struct{}
}

func (g gate) Enabled(context.Context, slog.Level) bool { return true }

func (g gate) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, "left out") {
		g.at <- struct{}{}
		<-g.on
	}
	return nil
}

// TestSetJWKSWhileTheOldOneFetches: what it still fetches, without a key that the new
// set has, ends that key for nobody.
func TestSetJWKSWhileTheOldOneFetches(t *testing.T) {
	k, other := edSigner(t, "k"), edSigner(t, "other")
	old, next := newProvider(t, sends(document(t, k))), newProvider(t, sends(document(t, k)))
	g := gate{slog.DiscardHandler, make(chan struct{}), make(chan struct{})}
	r := newRig(t, trusting(old.URL), func(c *Config) {
		c.JWKSRefresh, c.Logger = 50*time.Millisecond, slog.New(g)
	})
	_, err := r.Verify(r.by(t, k, nil))
	require.NoError(t, err)
	source, ok := r.foreign.Load().keys.(*jwksURL)
	require.True(t, ok)
	without := strings.Replace(string(document(t, other)), "[", `[{"kty":"oct","k":"AAAA"},`, 1)
	old.serve(sends([]byte(without)))
	<-g.at // between its answer and what it makes of that
	done := make(chan error, 1)
	go func() { done <- r.SetJWKS(next.URL) }()
	<-source.ctx.Done() // it is being closed
	close(g.on)
	require.NoError(t, <-done)
	_, err = r.Verify(r.by(t, k, nil))
	require.NoError(t, err)
}

// TestAReplacedFileIsReadNoMore, also by a call that came before.
func TestAReplacedFileIsReadNoMore(t *testing.T) {
	k, other := edSigner(t, "k"), edSigner(t, "other")
	path := jwksFileOf(t, k)
	r := newRig(t, trusting(path))
	_, err := r.Verify(r.by(t, k, nil))
	require.NoError(t, err)
	old := r.foreign.Load()
	require.NoError(t, r.SetJWKS(jwksFileOf(t, k)))
	replace(t, path, document(t, other), 0o644)
	old.keys.missed(t.Context(), r.clock.now(), errNoKey)
	old.keys.poll(r.clock.now().Add(time.Minute))
	_, err = r.Verify(r.by(t, k, nil))
	require.NoError(t, err)
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
