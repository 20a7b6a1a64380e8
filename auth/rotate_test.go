package auth

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"
)

// rotating is a rig whose clock runs with the wall's, since RotateSecret writes
// wall time, and can be put forward.
func rotating(t *testing.T) (*rig, *clock) {
	t.Helper()
	ahead := &clock{}
	r := newRig(t, func(c *Config) {
		c.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.offset.Load())) }
	})
	return r, ahead
}

func exp(in time.Duration) jwt.MapClaims {
	return jwt.MapClaims{"iat": nil, "exp": time.Now().Add(in).Unix()}
}

func TestARunningAuthorityNoticesARotation(t *testing.T) {
	r, ahead := rotating(t)
	remembered := r.token(t, exp(24*time.Hour))
	fresh := r.token(t, exp(24*time.Hour+time.Second))
	p, err := r.Verify(remembered)
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().Add(24*time.Hour), p.ExpiresAt, 2*time.Second)

	require.NoError(t, RotateSecret(r.path, time.Hour))
	secret, err := LoadSecret(r.path)
	require.NoError(t, err)
	_, err = r.Verify(signed(t, jwt.SigningMethodHS256, secret, "", r.claims(exp(24*time.Hour))))
	require.NoError(t, err, "the new secret is known without a wait")

	for _, token := range []string{remembered, fresh} {
		p, err = r.Verify(token)
		require.NoError(t, err, "the old one is still good")
		require.WithinDuration(t, time.Now().Add(time.Hour), p.ExpiresAt, time.Minute, "but ends with its secret")
	}
	minted, _, err := r.Mint(Claims{Session: "s1"}, 24*time.Hour)
	require.NoError(t, err)

	ahead.advance(time.Hour + time.Second)
	for _, token := range []string{remembered, fresh} {
		_, err = r.Verify(token)
		requireKind(t, KindUnauthenticated, err)
	}
	_, err = r.Verify(minted)
	require.NoError(t, err, "minted after the rotation, so by the new secret")
}

// TestRotationWithoutKeepEndsRememberedTokens: they fail within a second of use,
// without any failed verification to give the rotation away.
func TestRotationWithoutKeepEndsRememberedTokens(t *testing.T) {
	r, ahead := rotating(t)
	token := r.token(t, exp(time.Hour))
	p, err := r.Verify(token)
	require.NoError(t, err)
	code, _, err := r.NewCode(p)
	require.NoError(t, err)

	require.NoError(t, RotateSecret(r.path, 0))
	ahead.advance(pollEvery)
	_, err = r.Verify(token)
	requireKind(t, KindUnauthenticated, err)
	_, _, err = r.Exchange(code)
	requireKind(t, KindUnauthenticated, err)
	_, _, err = r.Renew(p)
	requireKind(t, KindUnauthenticated, err)
	_, _, err = r.NewCode(p)
	requireKind(t, KindUnauthenticated, err)
}

func TestMintUsesASecretThatWasJustRotatedIn(t *testing.T) {
	r, _ := rotating(t)
	require.NoError(t, RotateSecret(r.path, 0))
	token, _, err := r.Mint(Claims{Session: "s1"}, time.Hour)
	require.NoError(t, err)
	secret, err := LoadSecret(r.path)
	require.NoError(t, err)
	_, err = jwt.Parse(token, func(*jwt.Token) (any, error) { return secret, nil })
	require.NoError(t, err)
}

// TestABadSecretFileLeavesTheOldKey: what an operator breaks is logged once and
// tried again; the daemon goes on.
func TestABadSecretFileLeavesTheOldKey(t *testing.T) {
	var log logbook
	r := newRig(t, func(c *Config) { c.Logger = log.logger() })
	token := r.token(t, nil)
	stranger := signed(t, jwt.SigningMethodHS256, []byte(strings.Repeat("x", 32)), "", r.claims(nil))

	replace(t, r.path, []byte(strings.Repeat("x", 32)), 0o644)
	for range 5 {
		_, err := r.Verify(stranger)
		requireKind(t, KindUnauthenticated, err)
		r.clock.advance(pollEvery)
	}
	_, err := r.Verify(token)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(log.String(), "can't be loaded"), log.String())
	require.NotContains(t, log.String(), "xxxx")

	require.NoError(t, os.Remove(r.path))
	_, err = r.Verify(stranger)
	requireKind(t, KindUnauthenticated, err)
	_, err = r.Verify(token)
	require.NoError(t, err)

	replace(t, r.path, []byte(strings.Repeat("x", 32)), 0o600)
	_, err = r.Verify(stranger)
	require.NoError(t, err, "repaired: the new secret counts")
	_, err = r.Verify(token)
	requireKind(t, KindUnauthenticated, err)
}

func TestADamagedFileOfOldSecretsIsRefused(t *testing.T) {
	r := newRig(t)
	for data, says := range map[string]string{"{": "is damaged: remove it", "": "is damaged"} {
		replace(t, r.path+previousSuffix, []byte(data), 0o600)
		_, err := New(Config{SecretFile: r.path})
		require.ErrorContains(t, err, says)
		require.ErrorContains(t, err, r.path+previousSuffix)
	}
	replace(t, r.path+previousSuffix, []byte(`{}`), 0o644)
	_, err := New(Config{SecretFile: r.path})
	require.ErrorContains(t, err, "run chmod 600")
}

// TestNoTokenOutlivesARotation by being exchanged or renewed before anybody has noticed.
func TestNoTokenOutlivesARotation(t *testing.T) {
	r, _ := rotating(t)
	p, err := r.Verify(r.token(t, exp(24*time.Hour)))
	require.NoError(t, err)
	code, _, err := r.NewCode(p)
	require.NoError(t, err)
	require.NoError(t, RotateSecret(r.path, 0))
	_, _, err = r.Exchange(code)
	requireKind(t, KindUnauthenticated, err)

	p, err = r.Verify(r.minted(t))
	require.NoError(t, err)
	require.NoError(t, RotateSecret(r.path, 0))
	_, _, err = r.Renew(p)
	requireKind(t, KindUnauthenticated, err)
}

func (r *rig) minted(tb testing.TB) string {
	tb.Helper()
	token, _, err := r.Mint(Claims{Session: "s1"}, time.Hour)
	require.NoError(tb, err)
	return token
}
